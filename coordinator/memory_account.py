"""One account of what the process holds for clients: by owner, and never more than it may.

    messages being received ┐
    results that wait       │
    transactions' rows      ├─▶ Holding ─▶ MemoryAccount ─ more than `memory_max_mb` ─▶ 53200
    prepared statements     │
    portals                 ┘

INVARIANTS
  M1  what is counted never passes the limit: who would pass it is refused, and holds what it held.
      Only what is there already is counted without being asked for (`note`).
  M2  a large piece is refused, too, if the process itself would pass its limit, whoever has what is
      not counted. Before, memory that is free but not given back is given back.
  M3  a holding that is closed, or that nobody knows any more, holds nothing: nothing is counted for
      ever.

Not counted: the local engine, which has `local_memory_mb` of the process for itself, the JVM, which
is another process, and what the server has without clients (`OWN_BYTES`).
"""

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from sql.errors import SqlError

MIB: Final = 1 << 20

OWN_BYTES: Final = 256 * MIB
"""Of the server without clients: modules, catalog, caches of row groups and plans."""

CHECKED_BYTES: Final = 8 * MIB
"""From so many bytes at once on the process itself is looked at (M2). Smaller: more looks, at some
20 microseconds each."""

GIVEN_BACK_BYTES: Final = 64 * MIB
"""When so many bytes have been let go, the allocator is told to give them back to the system."""

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class MemoryOwner(StrEnum):
    """Whom memory is held for."""

    MESSAGES = "messages"
    RESULTS = "results"
    ROWS = "transaction rows"
    STATEMENTS = "prepared statements"
    PORTALS = "portals"


def memory_exhausted(nbytes: int, owner: MemoryOwner) -> SqlError:
    """53200."""
    return SqlError(
        "53200",
        "out of memory",
        detail=f"Failed on request of {nbytes} bytes for {owner}.",
        hint="The server's setting memory_max_mb bounds what all sessions hold together.",
    )


class MemoryAccount:
    """See the module. All of it is on the loop's thread."""

    def __init__(
        self,
        bytes_max: int = 1 << 62,
        process_bytes_max: int = 1 << 62,
        *,
        resident: "Callable[[], int] | None" = None,
    ) -> None:
        """`bytes_max`: of what is counted; `process_bytes_max`: of the whole (M2)."""
        self._bytes_max = bytes_max
        self._process_bytes_max = process_bytes_max
        self._resident = resident or resident_bytes
        self._held = dict.fromkeys(MemoryOwner, 0)
        self._total = 0
        self._let_go = 0
        self._is_trimming = False

    @property
    def held(self) -> Mapping[MemoryOwner, int]:
        """Bytes by owner, at this moment."""
        return dict(self._held)

    @property
    def total(self) -> int:
        """Bytes of all owners."""
        return self._total

    def holding(self, owner: MemoryOwner) -> "Holding":
        """A part of the account for one holder; nothing yet."""
        return Holding(self, owner)

    def change(self, owner: MemoryOwner, nbytes: int, *, asked: bool) -> None:
        """So much more is held, or less; only holdings call it. Raises 53200 if it is `asked` for
        and too much (M1, M2).
        """
        if asked and nbytes > 0:
            self._check(owner, nbytes)
        self._held[owner] += nbytes
        self._total += nbytes
        assert self._held[owner] >= 0, "M3: a holder gives back what it has"
        if nbytes < 0:
            self._let_go -= nbytes
            if self._let_go >= GIVEN_BACK_BYTES:
                self._let_go = 0
                self._give_back()

    def _check(self, owner: MemoryOwner, nbytes: int) -> None:
        if self._total + nbytes > self._bytes_max:
            raise memory_exhausted(nbytes, owner)
        if nbytes < CHECKED_BYTES or self._resident() + nbytes <= self._process_bytes_max:
            return
        give_back_memory()
        if self._resident() + nbytes > self._process_bytes_max:
            raise memory_exhausted(nbytes, owner)

    def _give_back(self) -> None:
        """In a thread of its own: it takes some milliseconds for each hundred megabytes."""
        if self._is_trimming:
            return
        self._is_trimming = True

        def work() -> None:
            give_back_memory()
            self._is_trimming = False

        threading.Thread(target=work, name="give-back", daemon=True).start()


class Holding:
    """What one holder has of the account: a session, a transaction, a portal."""

    __slots__ = ("_account", "_nbytes", "_owner")

    def __init__(self, account: MemoryAccount, owner: MemoryOwner) -> None:
        self._account = account
        self._owner = owner
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """What it has."""
        return self._nbytes

    def set(self, nbytes: int) -> None:
        """It needs so much, in all. Raises 53200; it has what it had then (M1)."""
        if nbytes != self._nbytes:
            self._account.change(self._owner, nbytes - self._nbytes, asked=True)
            self._nbytes = nbytes

    def add(self, nbytes: int) -> None:
        """It needs so much more, or less. Raises 53200."""
        self.set(self._nbytes + nbytes)

    def note(self, nbytes: int) -> None:
        """It has so much, in all, whether there is room or not (M1)."""
        if nbytes != self._nbytes:
            self._account.change(self._owner, nbytes - self._nbytes, asked=False)
            self._nbytes = nbytes

    def close(self) -> None:
        """It has nothing any more (M3)."""
        self.note(0)

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def resident_bytes() -> int:
    """Of this process, as the kernel counts them."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


# --- the C library's allocator --------------------------------------------------------------------

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 4
_LARGE_BYTES: Final = 512 << 10


def tune_allocator() -> None:
    """Let large pieces go back to the system when they are freed, and let threads share arenas.

    By default glibc learns to keep pieces of up to 32 MiB, and has an arena for each thread, eight
    for each core: what a client has used once would stay with the process.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, _ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back_memory() -> None:
    """Give the system what Python and Arrow have freed."""
    pa.default_memory_pool().release_unused()
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "malloc_trim") else None
    except OSError:
        return None
