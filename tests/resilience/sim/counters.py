"""Rows that count how often they were replaced: no update is lost, and single statements finish.

    counter   one hot row, incremented by transactions of several levels
    hot       two of them, incremented by single statements, which start again by themselves

The `position` of a row is its count. At every level that they run at a lost update is impossible:
at repeatable read the first committer wins the row.
"""

from collections.abc import Mapping, Sequence

from coordinator.core.messages.identities import Isolation
from tests.resilience.history.events import (
    Finding,
    History,
    Key,
    Kind,
    Operation,
    Read,
    Transaction,
    Write,
)
from tests.resilience.sim.rows import Row
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, told_of

STRICT = Isolation.STRICT_SERIALIZABLE


class Counter(Usual):
    """See the module."""

    tables: Sequence[str] = ("c",)
    KEYS: tuple[Key, ...] = ("c_1",)
    LEVELS = (STRICT, Isolation.SERIALIZABLE, Isolation.REPEATABLE_READ, Isolation.REPEATABLE_READ)

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._counts: dict[int, int] = {}
        """How often a row had been replaced when it got a value."""

    def first(self) -> Sequence[Plan]:
        """The rows, so that increments replace them: inserts of two rows are no conflict."""
        writes = tuple(Write(key, self._draw.values.next()) for key in self.KEYS)

        async def body(session: Session) -> tuple[Operation, ...]:
            for write in writes:
                self._counts[write.value] = 0
                await session.insert(write.key, (0, write.value))
            return writes

        return (Plan(writes, body),)

    def plan(self) -> Plan:
        if self._draw.random.random() < 0.2:
            return self.read_all()
        return self._increment(self._draw.random.choice(self.LEVELS))

    def read_all(self) -> Plan:
        asked = tuple(map(Read, self.KEYS))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*self.KEYS)
            for key, rows in zip(self.KEYS, found, strict=True):
                self._one(session, key, rows)
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def judge(self, history: History) -> Sequence[Finding]:
        return lost_updates(history, self._counts)

    def _increment(self, level: Isolation, *, alone: bool = False) -> Plan:
        rng, values = self._draw.random, self._draw.values
        keys = rng.sample(self.KEYS, rng.randint(1, len(self.KEYS)))
        reads = tuple(map(Read, keys))
        writes = tuple(Write(key, values.next()) for key in keys)

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*keys)
            await session.think()
            for write, rows in zip(writes, found, strict=True):
                await self._replace(session, write, rows)
            told = tuple(told_of(session, *pair) for pair in zip(reads, found, strict=True))
            return (*told, *writes)

        return Plan((*reads, *writes), body, level, alone=alone)

    async def _replace(self, session: Session, write: Write, rows: Sequence[Row]) -> None:
        self._one(session, write.key, rows)
        count = max((row.position for row in rows), default=0) + 1
        self._counts[write.value] = count
        await session.insert(write.key, (count, write.value), instead_of=rows)

    def _one(self, session: Session, key: Key, rows: Sequence[Row]) -> None:
        session.expect(len(rows) == 1, "counter", f"{key} is {rows}")
        for row in rows:
            known = self._counts.get(row.value)
            session.expect(row.position == known, "counter", f"{key} is {row}, made as {known}")


class Hot(Counter):
    """See the module."""

    KEYS = ("c_1", "c_2")

    def plan(self) -> Plan:
        match self._draw.random.randrange(10):
            case 0:
                return self.read_all()
            case 1:
                return self._increment(STRICT)
            case _:
                return self._increment(STRICT, alone=True)

    def crowd(self) -> tuple[int, int]:
        """Now and then very many clients."""
        return self._draw.random.choice(((4, 10), (8, 8), (8, 8), (16, 4), (16, 4), (64, 2)))


def lost_updates(history: History, counts: Mapping[int, int]) -> list[Finding]:
    """A register has counted its writes, give or take those of unknown outcome.

    `counts`: what it counted when it got a value; its first row counts 0.
    """
    transactions = history.transactions()
    reads = [t for t in transactions if t.is_ok and not t.writes and _registers(t)]
    last = max(reads, key=lambda t: t.began, default=None)
    if last is None:
        return []
    found: list[Finding] = []
    for read in _registers(last):
        written = [t for t in transactions if _writes(t, read.key)]
        least = sum(t.is_ok and t.ended_before(last) for t in written)
        most = sum(t.status is not Kind.FAIL for t in written)
        count = 0 if read.value is None else counts[read.value] + 1
        if not least <= count <= most:
            why = f"{read.key} counts {count} writes of {least} to {most}"
            found.append(Finding("lost-update", why, (last,)))
    return found


def _registers(transaction: Transaction) -> list[Read]:
    return [operation for operation in transaction.operations if isinstance(operation, Read)]


def _writes(transaction: Transaction, key: Key) -> bool:
    return any(isinstance(op, Write) and op.key == key for op in transaction.operations)
