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

from coordinator.core.messages import PutTable
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
        fields = {column.field for column in _added(session.table(TABLE))}
        filled = {column.field for column in _added(session.table(TABLE)) if column.name[0] == "f"}
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

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*KEYS)
            self._look(session, found)
            table = session.table(TABLE)
            if len(_added(table)) < ADDED_MAX:
                await session.define(PutTable(_next(with_added_column(table, column))))
                await session.think()
                for key, rows in zip(KEYS, found, strict=True):
                    if fill and rows:
                        contents = [(row.position, row.value) for row in rows]
                        await session.insert(key, *contents, instead_of=rows)
            await self._write(session, add)
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS))

    def _drop_column(self) -> Plan:
        add = self._add()

        async def body(session: Session) -> tuple[Operation, ...]:
            table = session.table(TABLE)
            if added := _added(table):
                gone = table.columns.index(session.random.choice(added))
                await session.define(PutTable(_next(without_column(table, gone))))
            await session.think()
            await self._write(session, add)
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS))

    def _add(self) -> Add:
        return Add(self._draw.random.choice(KEYS), self._draw.values.next())

    async def _write(self, session: Session, add: Add) -> None:
        added = _added(session.table(TABLE))
        self._fields[add.value] = frozenset(column.field for column in added)
        await session.insert(add.key, (0, add.value))


def _added(table: Table) -> Sequence[Column]:
    return table.columns[len(COLUMNS) :]


def _next(table: Table) -> Table:
    return replace(table, version=table.version + 1)
