"""The data directory: where its files lie, and the lock that lets one process serve it.

    <data directory>/
        lock         held as long as somebody serves it
        stash.db     the stash (with its log and its own lock beside it)
        warehouse/   tables, one directory each: what Delta readers open
        tmp/         scratch of the server; emptied at every start

INVARIANTS
  G1  nothing below is read or changed before the lock is held.
  G2  everything made here is for the owner only.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from storage.directory_lock import DirectoryLock
from storage.errors import Determinate


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A data directory that this process holds; made by `open`."""

    root: Path
    lock: DirectoryLock

    @property
    def stash(self) -> Path:
        """The stash's file."""
        return self.root / "stash.db"

    @property
    def warehouse(self) -> Path:
        """The root of the local object store."""
        return self.root / "warehouse"

    @property
    def scratch(self) -> Path:
        """Files that need not outlive the process."""
        return self.root / "tmp"

    @classmethod
    def open(cls, root: Path, *, make: bool = True) -> "DataDirectory":
        """Lock the directory and lay it out; without `make` it must exist, and stays as it is.

        Raises Locked, or Determinate with a line that tells what to mend.
        """
        root = root.absolute()
        if make:
            _make(root)
        _refuse_unusable(root)
        directory = cls(root, DirectoryLock.take(root / "lock"))
        try:
            if make:
                _make(directory.warehouse)
                shutil.rmtree(directory.scratch, ignore_errors=True)
                _make(directory.scratch)
        except BaseException:
            directory.close()
            raise
        return directory

    def close(self) -> None:
        """Let the next process in."""
        self.lock.release()


def _refuse_unusable(root: Path) -> None:
    if not root.is_dir():
        raise Determinate(f"data directory {root} is not a directory")
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise Determinate(f"data directory {root} cannot be read and written")


def _make(path: Path) -> None:
    """Make a directory, and those above it, durably; one that is there stays as it is (G2)."""
    if path.is_dir():
        return
    if path.parent != path:
        _make(path.parent)
    try:
        path.mkdir(0o700, exist_ok=True)
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
    except OSError as error:
        raise Determinate(f"cannot make directory {path}: {error.strerror}") from error
