"""The library between a server and its libc: built on demand, steered through a mapped file.

    Faults(directory) ── environment ──▶ server: preload.c
         └──── control file (mapped by both) ────┘        ▶ journal

INVARIANTS
  F1  a fault is armed before it can strike, by one aligned store: the server sees all of it or
      nothing.
  F2  the library that is loaded was built from the source that lies here.

Not here: what the journal means (`journal.py`).
"""

import hashlib
import mmap
import os
import shutil
import subprocess
import venv
from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from pathlib import Path

SOURCE = Path(__file__).with_name("preload.c")
CACHE = Path(__file__).parents[3] / ".cache"
ZIG = "ziglang==0.17.1"

US = 1_000
SECOND = 1_000_000_000


class Kind(IntFlag):
    """What a file below the root belongs to."""

    STASH = 1
    WAREHOUSE = 2
    ANY = 3


class _Slot(IntEnum):
    """As in preload.c."""

    CLOCK_OFFSET_NS = 0
    SYNC_FAILURES = 1
    SYNC_KINDS = 2
    WRITE_FAILURES = 3
    WRITE_KINDS = 4
    SPACE_LEFT = 5
    LYING_KINDS = 6
    SYNCS = 7
    REFUSED = 8
    FULL = 9


FULL_PATH = 2048
"""As in preload.c: where the path stands that FULL is about."""


class Faults:
    """The control of one server, over all its starts. The server's data lies in `root`."""

    def __init__(self, directory: Path, *, journal: bool = False) -> None:
        self.root = directory / "root"
        self.root.mkdir(parents=True, exist_ok=True)
        self.journal = directory / "journal"
        self._with_journal = journal
        self._path = directory / "control"
        self._path.write_bytes(bytes(mmap.PAGESIZE))
        with self._path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._slots = memoryview(self._memory).cast("q")
        self._slots[_Slot.SPACE_LEFT] = -1

    @property
    def environment(self) -> Mapping[str, str]:
        """What the server needs to find us."""
        found = {
            "LD_PRELOAD": str(library()),
            "FAULTS_CONTROL": str(self._path),
            "FAULTS_ROOT": str(self.root),
        }
        return {**found, "FAULTS_JOURNAL": str(self.journal)} if self._with_journal else found

    def set_clock(self, offset_s: float) -> None:
        """Move the server's wall clock so far away from ours."""
        self._slots[_Slot.CLOCK_OFFSET_NS] = int(offset_s * SECOND)

    def fail_syncs(self, count: int, kinds: Kind) -> None:
        """Let the next syncs of these files fail with EIO."""
        self._slots[_Slot.SYNC_KINDS] = kinds
        self._slots[_Slot.SYNC_FAILURES] = count

    def fail_writes(self, count: int, kinds: Kind) -> None:
        """Let the next writes to these files fail with EIO."""
        self._slots[_Slot.WRITE_KINDS] = kinds
        self._slots[_Slot.WRITE_FAILURES] = count

    def leave_space(self, size: int | None) -> None:
        """Let the disk take so many bytes more; None: as many as it has."""
        self._slots[_Slot.SPACE_LEFT] = -1 if size is None else size

    def fill(self, directory: Path | None) -> None:
        """Let nothing more be made below this directory; None: there is space everywhere."""
        self._slots[_Slot.FULL] = 0
        if directory is not None:
            path = os.fsencode(directory.resolve()) + b"\0"
            self._memory[FULL_PATH : FULL_PATH + len(path)] = path
            self._slots[_Slot.FULL] = 1

    def lie_about_syncs(self, kinds: Kind) -> None:
        """Plant the worst bug: syncs that report success and do nothing."""
        self._slots[_Slot.LYING_KINDS] = kinds

    @property
    def refused(self) -> int:
        """How many operations have failed because of us."""
        return self._slots[_Slot.REFUSED]

    @property
    def syncs(self) -> int:
        """How many syncs were asked for."""
        return self._slots[_Slot.SYNCS]

    @property
    def space_left(self) -> int:
        """Bytes until the disk is full; negative: no limit."""
        return self._slots[_Slot.SPACE_LEFT]


def library() -> Path:
    """The built library (F2)."""
    source = SOURCE.read_bytes()
    path = CACHE / f"faults-{hashlib.sha256(source).hexdigest()[:16]}.so"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        command = [*_compiler(), "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([*command, "-o", unfinished, SOURCE, "-ldl", "-lpthread"], check=True)
        unfinished.rename(path)
    return path


def _compiler() -> Sequence[str | Path]:
    """The machine's C compiler, or one from a package, in an environment of its own."""
    if shutil.which("cc"):
        return ["cc"]
    home = CACHE / ZIG.replace("==", "-")
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", ZIG], check=True)
        (home / "installed").touch()
    return [python, "-m", "ziglang", "cc"]
