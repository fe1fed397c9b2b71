"""An exclusive file lock, so that one process serves a data directory or a stash.

INVARIANTS
  K1  the kernel lets go of it when the process ends, however it ends: no stale locks.
  K2  no child process inherits it, so that a JVM that outlives us keeps nobody out.

The file stays when the lock is released: removing it would let two processes lock two files of one
name. It tells the holder's process id, for the message only.
"""

import fcntl
import os
from pathlib import Path

from storage.errors import Determinate, Locked


class DirectoryLock:
    """See the module; made by `take`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> "DirectoryLock":
        """Lock the file, making it if need be. Raises Locked, Determinate."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise Determinate(f"cannot open {path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "?"
            os.close(descriptor)
            raise Locked(f"{path.parent} is in use by process {holder}") from error
        except OSError as error:
            os.close(descriptor)
            raise Determinate(f"cannot lock {path}: {error.strerror}") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Let the next one in."""
        os.close(self._descriptor)
