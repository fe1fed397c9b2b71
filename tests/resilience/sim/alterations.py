"""ALTER TABLE beside writers: columns come and go, and old rows are rewritten.

    add     ADD COLUMN without a value: rows from now on have one (`n<number>`)
    fill    ADD COLUMN with a value for every row: all of them are rewritten (`f<number>`)
    drop    DROP COLUMN of one that was added

Every added column of a row holds the row's value, or nothing. In every snapshot a row has the
columns of the definition that it was written under, as far as they are still there, and every
column that was filled: also a row that came while the table was altered.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from coordinator.core.messages.catalog_changes import PutTable
from sql.binder.stored.table_changes import with_added_column, without_column
from sql.catalog.catalog import Column, Table
from sql.types.sql_type import INT8
from tests.resilience.history.events import Add, Operation, ReadSet
from tests.resilience.sim.levels import LEVELS
from tests.resilience.sim.rows import COLUMNS, Row
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, told_of

TABLE = "s0"
KEYS = ("s0_1", "s0_2")

ADDED_MAX = 5
"""More columns show nothing more."""


class Alterations(Usual):
    """See the module."""

    tables = (TABLE,)
    upkeep = 0.3

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._fields: dict[int, frozenset[str]] = {}

    def plan(self) -> Plan:
        match self._draw.random.randrange(10):
            case 0 | 1:
                return self.read_all()
            case 2:
                return self._add_column(fill=False)
            case 3:
                return self._add_column(fill=True)
            case 4:
                return self._drop_column()
            case _:
                return self._insert()

    def read_all(self) -> Plan:
        asked = tuple(map(ReadSet, KEYS))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*KEYS)
            self._look(session, found)
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def _look(self, session: Session, found: Sequence[Sequence[Row]]) -> None:
        fields = {column.field for column in added_columns(session.table(TABLE))}
        filled = {
            column.field for column in added_columns(session.table(TABLE)) if column.name[0] == "f"
        }
        for row in (row for rows in found for row in rows):
            missing = (self._fields[row.value] & fields | filled) - row.added
            why = f"{row} has no {sorted(missing)} of {sorted(fields)}"
            session.expect(not missing, "column", why)

    def _insert(self) -> Plan:
        add = self._add()

        async def body(session: Session) -> tuple[Operation, ...]:
            await self._write(session, add)
            await session.think()
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS))

    def _add_column(self, *, fill: bool) -> Plan:
        add = self._add()
        column = Column(f"{'f' if fill else 'n'}{add.value}", INT8)

        async def add_column(session: Session) -> Sequence[Sequence[Row]]:
            found = await session.rows(*KEYS)
            self._look(session, found)
            table = session.table(TABLE)
            if len(added_columns(table)) == ADDED_MAX:
                return ()
            await session.define(PutTable(next_version(with_added_column(table, column))))
            return found if fill else ()

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.statement(partial(add_column, session))
            await session.think()
            for rows in filter(None, found):
                contents = [(row.position, row.value) for row in rows]
                await session.insert(f"{TABLE}_{rows[0].key}", *contents, instead_of=rows)
            await self._write(session, add)
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS))

    def _drop_column(self) -> Plan:
        add = self._add()

        async def drop(session: Session) -> None:
            table = session.table(TABLE)
            if added := added_columns(table):
                gone = table.columns.index(session.random.choice(added))
                await session.define(PutTable(next_version(without_column(table, gone))))

        async def body(session: Session) -> tuple[Operation, ...]:
            await session.statement(partial(drop, session))
            await session.think()
            await self._write(session, add)
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS))

    def _add(self) -> Add:
        return Add(self._draw.random.choice(KEYS), self._draw.values.next())

    async def _write(self, session: Session, add: Add) -> None:
        async def work() -> None:
            added = added_columns(session.table(TABLE))
            self._fields[add.value] = frozenset(column.field for column in added)
            await session.insert(add.key, (0, add.value))

        await session.statement(work)


def added_columns(table: Table) -> Sequence[Column]:
    """Those beyond the three."""
    return table.columns[len(COLUMNS) :]


def next_version(table: Table) -> Table:
    """The same definition, as ALTER TABLE leaves it."""
    return replace(table, version=table.version + 1)
