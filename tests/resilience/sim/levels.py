"""Weaker levels: what `docs/reference/consistency.md` promises of them, and no more.

    read committed   every statement reads what is committed when it begins
    repeatable read  all statements read at one timestamp
    both             nothing uncommitted is read; of two who replace a row one gets 40001

Registers always have one row, which counts how often it was replaced (`counters.py`). What such a
transaction reads is judged at the timestamps that it reads at (`Memory.travelled`), and these by
when its statements began (`Session.look`); its writes have a place in the history. Write skew is
allowed, so nobody looks.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from coordinator.core.messages.identities import Isolation
from tests.resilience.history.events import Add, Key, Operation, Read, ReadSet, Write
from tests.resilience.sim.counters import Counter
from tests.resilience.sim.rows import Row
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Plan, told_of

LEVELS = (
    Isolation.READ_COMMITTED,
    Isolation.READ_COMMITTED,
    Isolation.REPEATABLE_READ,
    Isolation.REPEATABLE_READ,
    Isolation.SERIALIZABLE,
    Isolation.STRICT_SERIALIZABLE,
)


class Levels(Counter):
    """See the module."""

    tables = ("r0", "r1", "s0")
    KEYS = ("r0_1", "r0_2", "r1_1")
    SET = "s0_1"

    def plan(self) -> Plan:
        rng, values = self._draw.random, self._draw.values
        if rng.random() < 0.15:
            return self.read_all()
        statements: list[Operation | None] = []
        for key in rng.sample((*self.KEYS, self.SET), rng.randint(1, 4)):
            if rng.random() < 0.5:
                statements.append(None)
            if key == self.SET:
                statements.append(Add(key, values.next()))
            elif rng.random() < 0.6:
                statements.append(Write(key, values.next()))
        return self._weak(statements or [None], rng.choice(LEVELS))

    def read_all(self) -> Plan:
        asked = (*map(Read, self.KEYS), ReadSet(self.SET))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*self.KEYS, self.SET)
            self._look(session, found, {})
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def _weak(self, statements: Sequence[Operation | None], level: Isolation) -> Plan:
        """Statements one by one; None is a query of everything."""
        writes = tuple(statement for statement in statements if statement is not None)

        async def body(session: Session) -> tuple[Operation, ...]:
            written: dict[Key, int] = {}
            for number, statement in enumerate(statements):
                if number:
                    await session.think()
                    await session.look()
                if isinstance(statement, Write):
                    await session.statement(partial(self._update, session, statement))
                    written[statement.key] = statement.value
                elif isinstance(statement, Add):
                    await session.insert(statement.key, (0, statement.value))
                else:
                    found = await session.rows(*self.KEYS, self.SET)
                    self._look(session, found, written)
            return writes

        return Plan(writes, body, level)

    async def _update(self, session: Session, write: Write) -> None:
        (rows,) = await session.rows(write.key)
        await self._replace(session, write, rows)

    def _look(
        self, session: Session, found: Sequence[Sequence[Row]], written: Mapping[Key, int]
    ) -> None:
        for key, rows in zip(self.KEYS, found, strict=False):
            if key not in written:
                self._one(session, key, rows)
                continue
            # If others have replaced the row since, the look is refused: at read committed, too.
            seen = [row.value for row in rows] == [written[key]]
            session.expect(seen, "own-writes", f"{key} is {rows} after {written[key]}")
