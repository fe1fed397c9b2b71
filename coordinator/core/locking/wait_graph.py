"""Who waits for whom, over all timelines of a process, and the search for deadlocks.

    waiter ──▶ a holder whose mode conflicts        (hard)
           └─▶ a waiter ahead of it, likewise       (soft: only its place in the line is in the way)

A circle of hard edges is a deadlock: the waiter that closes it is refused. A circle with a soft
edge is dissolved: the waiter behind moves ahead of the one that stood in its way.

INVARIANTS
  G1  a session waits for at most one lock at a time, in whatever timeline.
  G2  every circle is found in the step that closes it, since a search begins where a wait begins.

The search costs a look at each waiter and holder that can be reached, however long the lines.
Source: PostgreSQL's `deadlock.c`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from coordinator.core.locking.modes import LockMode, LockTag
from coordinator.core.messages.identities import ConnectionId


class Line(Protocol):
    """The part of a tag's lock queue that the graph looks at."""

    @property
    def tag(self) -> LockTag:
        """What is locked."""
        ...

    def blocking_holders(self, session: ConnectionId) -> Iterator[ConnectionId]:
        """Other sessions that hold a mode against what this one waits for."""
        ...

    def blocking_waiters(self, session: ConnectionId) -> Iterator[ConnectionId]:
        """Sessions ahead of this one in the line that wait for a conflicting mode."""
        ...

    def place(self, session: ConnectionId) -> int:
        """Its place in the line."""
        ...


@dataclass(frozen=True, slots=True)
class Wait:
    """A session waits in a line for a mode. `single`: as LockRequest of `lock_table.py`."""

    line: Line
    mode: LockMode
    single: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """`waiter` waits for `blocker`; `hard`: it holds the lock, and does not merely stand ahead."""

    waiter: ConnectionId
    blocker: ConnectionId
    hard: bool


class WaitGraph:
    """See the module. One for all timelines of a process, changed inside their steps only."""

    def __init__(self) -> None:
        self._waits: dict[ConnectionId, Wait] = {}
        self._tickets = 0

    @property
    def waits(self) -> Mapping[ConnectionId, Wait]:
        """All sessions that wait; for observation."""
        return self._waits

    @property
    def newest(self) -> int:
        """The last ticket that was given."""
        return self._tickets

    def ticket(self) -> int:
        """The next place in all lines."""
        self._tickets += 1
        return self._tickets

    def begin(self, session: ConnectionId, wait: Wait) -> None:
        """The session waits."""
        assert session not in self._waits, "G1: a session waits for one lock at a time"
        self._waits[session] = wait

    def end(self, session: ConnectionId) -> None:
        """It waits no more."""
        del self._waits[session]

    def is_one_line(self, line: Line) -> bool:
        """Whether all who wait do so in this line."""
        return all(wait.line is line for wait in self._waits.values())

    def blockers(self, session: ConnectionId) -> Sequence[ConnectionId]:
        """The sessions that it waits for, holders first; none if it does not wait."""
        wait = self._waits.get(session)
        if wait is None:
            return ()
        found = [edge.blocker for edge in _edges(session, wait, {})]
        return list(dict.fromkeys(found))

    def find_circle(self, start: ConnectionId, *, hard_only: bool) -> Sequence[Edge] | None:
        """A circle of waiters through `start`, in the order of its edges."""
        came_by: dict[ConnectionId, Edge] = {}
        expanded: dict[tuple[int, LockMode, bool], int] = {}
        pending = [start]
        while pending:
            session = pending.pop()
            wait = self._waits.get(session)
            if wait is None:
                continue
            for edge in _edges(session, wait, expanded):
                if hard_only and not edge.hard:
                    continue
                if edge.blocker == start:
                    return _path(came_by, edge)
                if edge.blocker not in came_by:
                    came_by[edge.blocker] = edge
                    pending.append(edge.blocker)
        return None

    def describe(self, circle: Sequence[Edge]) -> str:
        """PostgreSQL's detail of 40P01."""
        return "\n".join(map(self._described, circle))

    def _described(self, edge: Edge) -> str:
        wait = self._waits[edge.waiter]
        return (
            f"Process {edge.waiter} waits for {wait.mode.shown} on {wait.line.tag.describe()};"
            f" blocked by process {edge.blocker}."
        )


def _edges(
    session: ConnectionId, wait: Wait, expanded: dict[tuple[int, LockMode, bool], int]
) -> Iterator[Edge]:
    """`expanded`: by line and kind of wait, up to which place waiters ahead have been looked at."""
    for holder in wait.line.blocking_holders(session):
        yield Edge(session, holder, hard=True)
    # Those ahead of an earlier place are among those ahead of a later one.
    key, place = (id(wait.line), wait.mode, wait.single), wait.line.place(session)
    if place > expanded.get(key, -1):
        expanded[key] = place
        for waiter in wait.line.blocking_waiters(session):
            yield Edge(session, waiter, hard=False)


def _path(came_by: Mapping[ConnectionId, Edge], last: Edge) -> Sequence[Edge]:
    path = [last]
    while path[-1].waiter in came_by:
        path.append(came_by[path[-1].waiter])
    return path[::-1]
