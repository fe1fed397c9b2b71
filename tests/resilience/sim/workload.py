"""What clients do: plans of transactions, in the words of the judges.

    Workload ── plan ──▶ operations (what is asked) + body (what a session does) ──▶ told

A workload may leave out what most of them have in common (`Usual`).

INVARIANTS
  L1  a value is written at most once in a run, whoever writes it (E,
      `tests/resilience/history/events.py`).
  L2  a body asserts only what must hold in every snapshot, whatever becomes of its transaction.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from coordinator.core.messages.identities import Isolation
from sql.catalog.catalog import SYSTEM_TIMELINE
from tests.resilience.history.events import (
    Add,
    Append,
    Finding,
    History,
    Key,
    Operation,
    Read,
    ReadList,
    ReadSet,
    Write,
)
from tests.resilience.sim.rows import Row, timeline_of
from tests.resilience.sim.server import Server
from tests.resilience.sim.session import Body, Session


class Values:
    """Values and process numbers, each used once (L1)."""

    def __init__(self) -> None:
        self._value = 0
        self._process = 0

    def next(self) -> int:
        """A value nobody has written."""
        self._value += 1
        return self._value

    def process(self) -> int:
        """A process number nobody has used."""
        self._process += 1
        return self._process


@dataclass(frozen=True, slots=True)
class Plan:
    """One transaction: what is asked, and how."""

    operations: tuple[Operation, ...]
    body: Body
    isolation: Isolation = Isolation.STRICT_SERIALIZABLE
    timeline: str = SYSTEM_TIMELINE.name
    alone: bool = False
    """A single statement: it starts again by itself, with a lease, and always finishes."""
    refusals: tuple[str, ...] = ()
    """SQLSTATEs that it may be refused with, and that others are not."""
    plain: bool = False
    """It takes the locks that its body says, and no others, and waits however long it takes."""
    sure: bool = False
    """Nothing of it is refused for a conflict in calm weather: its locks keep it from that."""


class Workload(Protocol):
    """See the module. One object for each run."""

    @property
    def tables(self) -> Sequence[str]:
        """Made before the run, each in its timeline (`pgwire/rows.py`)."""
        ...

    @property
    def refusals(self) -> Sequence[str]:
        """SQLSTATEs that whatever reads its tables may be refused with."""
        ...

    @property
    def guards(self) -> bool:
        """Whether locks of serializable transactions keep weaker ones from losing updates."""
        ...

    @property
    def upkeep(self) -> float:
        """The share of maintenance in what clients do aside."""
        ...

    def crowd(self) -> tuple[int, int]:
        """How many clients there are, and how many transactions each of them does at most."""
        ...

    def first(self) -> Sequence[Plan]:
        """What stands there before the run."""
        ...

    def plan(self) -> Plan:
        """What a client does next."""
        ...

    def read_all(self) -> Plan:
        """Everything, in one transaction."""
        ...

    async def settle(self, leader: Server) -> str | None:
        """Wait, in calm weather, for what goes on by itself; why it is not done, if so."""
        ...

    def judge(self, history: History) -> Sequence[Finding]:
        """What only this workload knows about its histories."""
        ...


@dataclass(slots=True)
class Draw:
    """What workloads draw from."""

    random: random.Random
    values: Values


class Usual:
    """What a workload does unless it has reasons to do something else."""

    guards = False
    upkeep = 0.1
    refusals: Sequence[str] = ()

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def first(self) -> Sequence[Plan]:
        """Nothing stands there before."""
        return ()

    async def settle(self, leader: Server) -> str | None:
        """Nothing goes on by itself."""
        return None

    def judge(self, history: History) -> Sequence[Finding]:
        """There is nothing that only this workload knows."""
        return ()

    def crowd(self) -> tuple[int, int]:
        """A few clients."""
        rng = self._draw.random
        return rng.randint(3, 6), rng.randint(8, 14)


def one_by_one(operations: Sequence[Operation]) -> Plan:
    """A plan that performs its operations, all of one timeline, in order."""
    asked = tuple(operations)

    async def body(session: Session) -> tuple[Operation, ...]:
        told: list[Operation] = []
        for operation in asked:
            told.append(await perform(session, operation))
            await session.think()
        return tuple(told)

    return Plan(asked, body, timeline=timeline_of(asked[0].key).name)


async def perform(session: Session, operation: Operation) -> Operation:
    """One operation; what was told."""
    key = operation.key
    if isinstance(operation, Add):
        await session.insert(key, (0, operation.value))
        return operation
    (rows,) = await session.rows(key)
    match operation:
        case Write(value=value):
            await session.insert(key, (0, value), instead_of=rows)
        case Append(value=value):
            await session.insert(key, (len(rows), value))
    return told_of(session, operation, rows)


def told_of(session: Session, operation: Operation, rows: Sequence[Row]) -> Operation:
    """The operation with the answer that some rows are."""
    values = tuple(row.value for row in rows)
    match operation:
        case ReadSet(key=key):
            return ReadSet(key, values)
        case ReadList(key=key):
            places = [row.position for row in rows]
            in_order = places == [*range(len(places))]
            session.expect(in_order, "positions", f"{key} has rows at {places}")
            return ReadList(key, values)
        case Read(key=key):
            session.expect(len(values) <= 1, "register", f"{key} is {values} at once")
            return Read(key, values[0] if values else None)
        case _:
            return operation


def value_of(rows: Sequence[Row]) -> int | None:
    """A register's value."""
    return rows[0].value if rows else None


def keys_of(operations: Sequence[Operation]) -> tuple[Key, ...]:
    """The keys that they touch."""
    return tuple(operation.key for operation in operations)
