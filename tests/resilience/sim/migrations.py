"""Migrations beside writers: DDL and UPDATE in one block, which take the table for themselves.

    migrate   pg_advisory_xact_lock; the version that is there; ALTER TABLE, UPDATE of old rows, the
              next version. Or LOCK TABLE and UPDATE
    write     INSERT of some rows, statement by statement, or alone

In calm weather all go through at their first try, and every row is as in `alterations.py`.
"""

from collections.abc import Sequence
from functools import partial

from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.catalog_changes import PutTable
from sql.binder.stored.table_changes import with_added_column, without_column
from sql.catalog.catalog import Column
from sql.types.sql_type import INT8
from tests.resilience.history.events import Operation, Read, ReadSet, Write
from tests.resilience.sim.alterations import (
    ADDED_MAX,
    KEYS,
    TABLE,
    Alterations,
    added_columns,
    next_version,
)
from tests.resilience.sim.levels import LEVELS
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Plan, told_of, value_of

VERSION = "r0_1"
MIGRATING = 77
"""The advisory lock that tools take before they look at the version."""


class Migrations(Alterations):
    """See the module."""

    tables: Sequence[str] = (TABLE, "r0")

    def plan(self) -> Plan:
        rng = self._draw.random
        match rng.randrange(10):
            case 0:
                return self.read_all()
            case 1 | 2:
                return self._migrate(drops=rng.random() < 0.3)
            case 3:
                return self._lock()
            case 4 | 5 | 6:
                return self._write_rows(rng.randint(1, 3))
            case _:
                return self._write_alone()

    def read_all(self) -> Plan:
        asked = (*map(ReadSet, KEYS), Read(VERSION))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*KEYS, VERSION)
            self._look(session, found[: len(KEYS)])
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def _migrate(self, *, drops: bool) -> Plan:
        values, level = self._draw.values, self._draw.random.choice(LEVELS)
        read, write = Read(VERSION), Write(VERSION, values.next())

        async def alter(session: Session) -> None:
            table = session.table(TABLE)
            added = added_columns(table)
            if added and (drops or len(added) == ADDED_MAX):
                after = without_column(table, table.columns.index(session.random.choice(added)))
            else:
                after = with_added_column(table, Column(f"n{write.value}", INT8))
            await session.define(PutTable(next_version(after)))

        async def put_version(session: Session) -> None:
            (rows,) = await session.rows(VERSION)
            await session.insert(VERSION, (0, write.value), instead_of=rows)

        async def body(session: Session) -> tuple[Operation, ...]:
            await session.statement(partial(session.advisory, MIGRATING))
            await session.look()
            (before,) = await session.rows(VERSION)
            await session.think()
            await session.look()
            await session.statement(partial(alter, session))
            await session.think()
            await self._rewrite(session)
            await session.look()
            await session.statement(partial(put_version, session))
            return (Read(VERSION, value_of(before)), write)

        return Plan((read, write), body, level, plain=True, sure=True)

    def _lock(self) -> Plan:
        """LOCK TABLE, and UPDATE of some rows; then one more."""
        add = self._add()
        mode = self._draw.random.choice((LockMode.ACCESS_EXCLUSIVE, LockMode.SHARE_ROW_EXCLUSIVE))

        async def body(session: Session) -> tuple[Operation, ...]:
            await session.lock_table(TABLE, mode)
            await self._rewrite(session)
            await session.look()
            await self._write(session, add)
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS), plain=True, sure=True)

    async def _rewrite(self, session: Session) -> None:
        """UPDATE of the rows of one key."""
        key = session.random.choice(KEYS)

        async def work() -> None:
            (rows,) = await session.rows(key)
            if rows:
                contents = [(row.position, row.value) for row in rows]
                await session.insert(key, *contents, instead_of=rows)

        await session.look()
        await session.statement(work)

    def _write_rows(self, count: int) -> Plan:
        adds = tuple(self._add() for _ in range(count))

        async def body(session: Session) -> tuple[Operation, ...]:
            for add in adds:
                await session.look()
                await self._write(session, add)
                await session.think()
            return adds

        return Plan(adds, body, self._draw.random.choice(LEVELS), plain=True, sure=True)

    def _write_alone(self) -> Plan:
        add = self._add()

        async def body(session: Session) -> tuple[Operation, ...]:
            await self._write(session, add)
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS), alone=True, sure=True)
