"""What the kernel knows of a process: those that it has started, and its memory."""

import contextlib
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes that a process has started, and that live."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end while it is looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text().split())
    return found


def command_line(pid: int) -> str:
    """The words that a process was started with, a NUL behind each."""
    return Path(f"/proc/{pid}/cmdline").read_text()


def peak_mb(pid: int) -> int | None:
    """The most memory that a process has had, in MiB; None: it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM:")), None)
