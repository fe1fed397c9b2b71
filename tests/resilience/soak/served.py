"""`meridian` with a window: who connects to a Unix socket is told what the process holds.

    python -m tests.resilience.soak.served WINDOW PLANT serve --data-dir ..
    look(window) ─▶ Inside: the memory account, places, runs, stalls of the loop

INVARIANTS
  L1  a look takes nothing from the loop: a thread of its own answers, from plain values.

PLANT is `none`, or a bug that a soak must find (`PLANTS`).
"""

import asyncio
import json
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeVar

from compute.duckdb.executor import LocalExecutor
from compute.duckdb.places import Place, PlaceKind
from coordinator.core import admission
from coordinator.main import main
from coordinator.memory_account import Holding, MemoryAccount, MemoryOwner
from coordinator.server.watchdog import LoopStalls, Watchdog

T = TypeVar("T")

LOOK_SECONDS_MAX: Final = 60
"""Only against hanging for ever."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What the process holds for its clients. `held`: bytes; `longest_s`: of a stall."""

    held: int
    owners: Mapping[str, int]
    places: int
    waiting: int
    runs: int
    stalls: int
    longest_s: float
    cpu_s: float


def look(window: Path) -> Inside:
    """The server's inside at this moment."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(LOOK_SECONDS_MAX)
        asking.connect(str(window))
        told = b""
        while piece := asking.recv(65536):
            told += piece
    return Inside(**json.loads(told))


class _Window:
    """Knows the objects of interest as they are made."""

    def __init__(self) -> None:
        self._seen: dict[type, weakref.WeakSet[object]] = {}

    def watch(self, kind: type) -> None:
        """Remember all instances from now on."""
        made = kind.__init__
        seen = self._seen[kind] = weakref.WeakSet()

        def init(self: object, *arguments: object, **named: object) -> None:
            made(self, *arguments, **named)
            seen.add(self)

        kind.__init__ = init

    def inside(self) -> Inside:
        """All of them together."""
        owners = dict.fromkeys(MemoryOwner, 0)
        for account in self._of(MemoryAccount):
            for owner, nbytes in account.held.items():
                owners[owner] += nbytes
        executors = self._of(LocalExecutor)
        places = [executor.places for executor in executors]
        stalls = next((dog.stalls for dog in self._of(Watchdog)), LoopStalls())
        return Inside(
            held=sum(owners.values()),
            owners={owner.value: nbytes for owner, nbytes in owners.items() if nbytes},
            places=sum(each.taken(kind) for each in places for kind in PlaceKind),
            waiting=sum(each.waiting(kind) for each in places for kind in PlaceKind),
            runs=sum(executor.running for executor in executors),
            stalls=stalls.count,
            longest_s=stalls.longest_s,
            cpu_s=stalls.cpu_s,
        )

    def _of(self, kind: type[T]) -> list[T]:
        return [each for each in list(self._seen[kind]) if isinstance(each, kind)]

    def open(self, path: Path) -> None:
        """Answer whoever connects (L1)."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            while True:
                asking, _ = listener.accept()
                with asking:
                    asking.sendall(json.dumps(asdict(self.inside())).encode())

        threading.Thread(target=answer, name="window", daemon=True).start()


# --- bugs that a soak must find ------------------------------------------------------------------


def _charge_kept() -> None:
    """A result that ends in an error, or is cancelled, stays in the account."""
    leave = Holding.__exit__

    def exit_(self: Holding, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._nbytes = 0
        leave(self, None, None, None)

    Holding.__exit__ = exit_  # type: ignore[method-assign, assignment]


def _place_kept() -> None:
    """A statement that is cancelled keeps its place."""
    leave = Place.leave

    def left(self: Place) -> None:
        if not isinstance(sys.exc_info()[1], asyncio.CancelledError):
            leave(self)

    Place.leave = left  # type: ignore[method-assign]


def _reads_not_validated() -> None:
    """Commits are not refused for what others have changed."""
    admission.conflict_refusal = lambda *_, **__: None  # type: ignore[assignment]


PLANTS: Final[Mapping[str, Callable[[], None]]] = {
    "none": lambda: None,
    "charge": _charge_kept,
    "place": _place_kept,
    "reads": _reads_not_validated,
}


if __name__ == "__main__":
    path, plant, *arguments = sys.argv[1:]
    window = _Window()
    for kind in (MemoryAccount, LocalExecutor, Watchdog):
        window.watch(kind)
    PLANTS[plant]()
    window.open(Path(path))
    sys.exit(main(arguments))
