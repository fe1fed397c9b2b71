"""Places to compute in: few for long statements, and others that only short ones and checks take.

    estimated long  ─▶ LONG ──┐
    estimated short ─▶ SHORT ─┼─▶ a thread      overdue ─▶ counts as LONG, its place is free again
    of a commit     ─▶ CHECK ─┘

INVARIANTS
  Q1  a statement that is estimated to be short never waits for one that is long: whoever is in its
      place for OVERDUE_S turns out to be long, and gives the place back while it goes on.
  Q2  those of one kind come in in the order in which they came.
  Q3  whoever is cancelled has no place any more, whether its thread has noticed or not.

All of it is on one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from compute.compared_rows import compared_pairs
from compute.executor import Run
from compute.identity_cache import REMEMBERED_NODES_MAX, IdentityCache
from compute.read_size import read_size
from compute.reference.cost import series_rows
from sql.plan.nodes import Plan, Recursive, SetScan
from sql.plan.traverse import has_more_nodes, walk

OVERDUE_S: Final = 0.05
"""A statement that computes for longer is no short one. Larger: short ones wait longer for those
that were taken for short. Smaller: on a busy machine more threads compute at once."""

SHORT_ROWS_MAX: Final = 250_000
SHORT_BYTES_MAX: Final = 8 << 20
"""Rows, and bytes of files, that a short statement reads: some 10 ms. Larger: more of those that
turn out to be long begin at once. Smaller: more statements wait behind long ones."""

SHORT_PAIRS_MAX: Final = 10_000_000
"""Pairs of rows that a short statement compares: some 20 ms. Larger and smaller: as above."""


class PlaceKind(Enum):
    """What a place is for."""

    LONG = auto()
    SHORT = auto()
    CHECK = auto()


class Place:
    """One that is taken."""

    def __init__(self, places: "Places", kind: PlaceKind) -> None:
        self._places = places
        self._kind = kind
        self._timer: asyncio.TimerHandle | None = None
        if kind is not PlaceKind.LONG:
            self._timer = asyncio.get_running_loop().call_later(OVERDUE_S, self._overdue)

    def _overdue(self) -> None:
        """It turns out to be long (Q1)."""
        kind, self._kind = self._kind, PlaceKind.LONG
        self._places.move(kind, PlaceKind.LONG)

    def leave(self) -> None:
        """It computes no more, or nobody waits for it any more (Q3)."""
        if self._timer is not None:
            self._timer.cancel()
        self._places.free(self._kind)


class Places:
    """See the module. `limits`: how many compute at once of each kind."""

    def __init__(self, limits: Mapping[PlaceKind, int]) -> None:
        self._limits = limits
        self._taken = dict.fromkeys(PlaceKind, 0)
        self._waiting: dict[PlaceKind, deque[asyncio.Future[None]]] = {
            kind: deque() for kind in PlaceKind
        }

    def taken(self, kind: PlaceKind) -> int:
        """How many compute; of LONG, it may be more than the limit (Q1)."""
        return self._taken[kind]

    def waiting(self, kind: PlaceKind) -> int:
        """How many wait."""
        return len(self._waiting[kind])

    async def enter(self, kind: PlaceKind, tell: Callable[[bool], None] | None = None) -> Place:
        """A place; waits until one is free. `tell`: is told when that begins, and when it ends."""
        free = self.enter_now(kind)
        if free is not None:
            return free
        turn = asyncio.get_running_loop().create_future()
        self._waiting[kind].append(turn)
        if tell is not None:
            tell(True)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.free(kind)  # it had come in at this moment
            elif turn in self._waiting[kind]:
                self._waiting[kind].remove(turn)
            raise
        finally:
            if tell is not None:
                tell(False)
        return Place(self, kind)

    def enter_now(self, kind: PlaceKind) -> Place | None:
        """A place, if one is free."""
        if self._taken[kind] >= self._limits[kind] or self._waiting[kind]:
            return None
        self._taken[kind] += 1
        return Place(self, kind)

    def move(self, kind: PlaceKind, to: PlaceKind) -> None:
        """One is of another kind now, whether there is room or not."""
        self._taken[to] += 1
        self.free(kind)

    def free(self, kind: PlaceKind) -> None:
        """One less; the next one comes in (Q2)."""
        self._taken[kind] -= 1
        assert self._taken[kind] >= 0, "Q3: a place is left once"
        while self._waiting[kind] and self._taken[kind] < self._limits[kind]:
            turn = self._waiting[kind].popleft()
            if not turn.done():
                self._taken[kind] += 1
                turn.set_result(None)


_endless: IdentityCache[Plan, bool] = IdentityCache()


def place_kind(run: Run) -> PlaceKind:
    """Where a run belongs, by what it reads and makes."""
    if run.is_check:
        return PlaceKind.CHECK
    size = read_size(run.plan, run.inputs)
    if size.rows > SHORT_ROWS_MAX or size.nbytes > SHORT_BYTES_MAX or _makes_many(run.plan):
        return PlaceKind.LONG
    if size.held and compared_pairs(run.plan, run.inputs) > SHORT_PAIRS_MAX:
        return PlaceKind.LONG
    return PlaceKind.SHORT


def _makes_many(plan: Plan) -> bool:
    """Whether the plan makes many rows of nothing, or nobody knows how many."""
    known = _endless.get(plan)
    if known is None:
        known = any(map(_is_large_source, walk(plan)))
        if not has_more_nodes(plan, REMEMBERED_NODES_MAX):
            _endless.put(plan, known)
    return known


def _is_large_source(node: object) -> bool:
    if isinstance(node, Recursive):
        return True
    return isinstance(node, SetScan) and series_rows(node) > SHORT_ROWS_MAX
