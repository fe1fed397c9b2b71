"""Counters that a lock guards: at every level no update is lost, and nobody is refused.

    a   pg_advisory_xact_lock            d   FOR UPDATE of the counter's row
    b   pg_advisory_lock, of the session e   FOR UPDATE of another row
    c   LOCK TABLE

    increment   the lock, SELECT, time passes, UPDATE to what the client has computed
    look        the lock in a shared mode, and two SELECTs that must answer the same

At read committed the UPDATE takes the newest row, whatever the client has seen: only the lock keeps
it from losing updates. In calm weather nobody gets 40001: whoever has got a lock reads what the
holder before it has left.
"""

from collections.abc import Sequence
from functools import partial

from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.identities import Isolation
from sql.errors import SqlError
from tests.resilience.history.events import Key, Operation, Read, Write
from tests.resilience.sim.counters import Counter
from tests.resilience.sim.levels import LEVELS
from tests.resilience.sim.rows import Row, table_of
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Plan, told_of

GUARD = "r0_1"
"""The row that stands for the counter of table `e`; nobody ever changes it."""

STRONG = (LockMode.SHARE_ROW_EXCLUSIVE, LockMode.EXCLUSIVE, LockMode.ACCESS_EXCLUSIVE)


class Guarded(Counter):
    """See the module."""

    guards = True
    tables: Sequence[str] = ("a", "b", "c", "d", "e", "r0")
    COUNTERS: Sequence[Key] = ("a_1", "b_1", "c_1", "d_1", "e_1")
    KEYS = ("a_1", "b_1", "c_1", "d_1", "e_1", GUARD)

    def crowd(self) -> tuple[int, int]:
        """Lines are long if many wait for few locks."""
        return self._draw.random.choice(((5, 10), (8, 8), (16, 4), (24, 3)))

    def plan(self) -> Plan:
        rng = self._draw.random
        if rng.random() < 0.1:
            return self.read_all()
        # Sometimes all of them want the same.
        counters = self.COUNTERS[: rng.choice((1, 5, 5))]
        key, level = rng.choice(counters), rng.choice(LEVELS)
        return self._look(key, level) if rng.random() < 0.2 else self._count(key, level)

    def _count(self, key: Key, level: Isolation) -> Plan:
        read, write = Read(key), Write(key, self._draw.values.next())
        tries, undoes = self._draw.random.random() < 0.1, self._draw.random.random() < 0.15
        # What was read behind a savepoint stays read, and may have changed when the lock is free.
        sure = _is_sure(key, level) and not (undoes and key in self.COUNTERS[2:])

        async def update(session: Session, count: int) -> None:
            (rows,) = await session.rows(key)
            await session.insert(key, (count, write.value), instead_of=rows)

        async def body(session: Session) -> tuple[Operation, ...]:
            if undoes:
                await session.undone(_guard(session, key, wait=False))
            await _guard(session, key, wait=not tries)
            await session.look()
            (rows,) = await session.rows(key)
            self._one(session, key, rows)
            count = max((row.position for row in rows), default=0) + 1
            self._counts[write.value] = count
            await session.think()
            await session.look()
            await session.statement(partial(update, session, count))
            return (told_of(session, read, rows), write)

        return Plan((read, write), body, level, plain=True, sure=sure)

    def _look(self, key: Key, level: Isolation) -> Plan:
        read = Read(key)

        async def body(session: Session) -> tuple[Operation, ...]:
            await _guard(session, key, shared=True)
            seen: list[Sequence[Row]] = []
            for _ in range(2):
                await session.look()
                seen += await session.rows(key)
                await session.think()
            why = f"{key} was {seen[0]} and {seen[1]} under a lock"
            session.promise([r.value for r in seen[0]] == [r.value for r in seen[1]], "guard", why)
            return (told_of(session, read, seen[1]),)

        return Plan((read,), body, level, plain=True, sure=_is_sure(key, level))


def _is_sure(key: Key, level: Isolation) -> bool:
    """A guard that is another row says nothing of what was committed before it was free."""
    return key != "e_1" or level is Isolation.READ_COMMITTED


async def _guard(session: Session, key: Key, *, shared: bool = False, wait: bool = True) -> None:
    """Take the lock of a counter. Raises 55P03."""
    row_mode = LockMode.ROW_SHARED if shared else _update(session)
    table = table_of(key)
    if table in "ab" or not session.world.settings.locks:
        number = ord(table)
        await _advisory(session, number, shared=shared, wait=wait, by_session=table == "b")
        return
    match table:
        case "c":
            mode = LockMode.SHARE if shared else session.random.choice(STRONG)
            await session.lock_table("c", mode, wait=wait)
        case "d":
            await session.statement(partial(session.locked, key, mode=row_mode, wait=wait))
        case _:
            await session.statement(partial(session.locked, GUARD, mode=row_mode, wait=wait))


def _update(session: Session) -> LockMode:
    return session.random.choice((LockMode.ROW_UPDATE, LockMode.ROW_NO_KEY_UPDATE))


async def _advisory(
    session: Session, number: int, *, shared: bool, wait: bool, by_session: bool = False
) -> None:
    async def work() -> None:
        held = await session.advisory(number, shared=shared, wait=wait, by_session=by_session)
        if not held:
            raise SqlError("55P03", "somebody else holds it")

    await session.statement(work)
