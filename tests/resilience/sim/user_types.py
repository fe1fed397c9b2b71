"""Types change beside writers: a domain's rules, an enum's values, and whether they are there.

    create    CREATE TYPE or DOMAIN, and a column of it in a table that has none
    column    a column of a type that is there
    forbid    ALTER DOMAIN .. ADD CONSTRAINT: rows that break it are changed first
    permit    ALTER DOMAIN .. DROP CONSTRAINT
    add       ALTER TYPE .. ADD VALUE
    rename    ALTER TYPE .. RENAME VALUE: rows that have it get the other name
    drop      DROP TYPE .. CASCADE: the columns go

Every column of a type holds the row's position, or nothing if the row is older than the column.
In every snapshot no row holds what the type, as it is defined there, forbids; and every column's
type is the one that is defined. Two tables have columns of the same types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveObject,
)
from sql.binder.stored.table_changes import (
    with_added_column,
    with_column_definition,
    without_column,
)
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import TYPE_SPACE, DomainDefinition, EnumDefinition, UserType
from sql.types.enums import enum_of, is_enum
from sql.types.sql_type import INT8
from tests.resilience.history.events import Add, Key, Operation, ReadSet
from tests.resilience.sim.levels import LEVELS
from tests.resilience.sim.rows import COLUMNS, Row, table_of
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, told_of

TABLES = ("s0", "s1")
KEYS = ("s0_1", "s0_2", "s1_1")
POSITIONS = frozenset(range(8))
NAMES = ("limit", "level")
"""A domain and an enum."""


class UserTypes(Usual):
    """See the module."""

    tables = TABLES
    upkeep = 0.3

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._columns = 0

    def plan(self) -> Plan:
        chance = self._draw.random.randrange(10)
        if chance < 2:
            return self.read_all()
        add = Add(self._draw.random.choice(KEYS), self._draw.values.next())
        level = self._draw.random.choice(LEVELS)

        async def insert(session: Session) -> tuple[Operation, ...]:
            await self._write(session, add)
            await session.think()
            return (add,)

        async def change(session: Session) -> tuple[Operation, ...]:
            await self._change(session)
            await session.think()
            await self._write(session, add)
            return (add,)

        return Plan((add,), insert if chance < 6 else change, level)

    def read_all(self) -> Plan:
        asked = tuple(map(ReadSet, KEYS))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*KEYS)
            _look(session, found)
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    async def _write(self, session: Session, add: Add) -> None:
        async def work() -> None:
            allowed = _allowed(session.table(table_of(add.key)))
            await session.insert(add.key, (session.random.choice(sorted(allowed)), add.value))

        await session.statement(work)

    async def _change(self, session: Session) -> None:
        """DDL of one kind, and what it asks of the rows."""
        forbidden = await session.statement(partial(self._define, session))
        await session.think()
        for key, rows in forbidden:
            allowed = _allowed(session.table(table_of(key)))
            position = session.random.choice(sorted(allowed))
            contents = [(position, row.value) for row in rows]
            await session.insert(key, *contents, instead_of=rows)

    async def _define(self, session: Session) -> Sequence[tuple[Key, Sequence[Row]]]:
        """DDL of one kind, if it leaves every table some position that it may hold; the rows that
        it forbids.
        """
        found = await session.rows(*KEYS)
        _look(session, found)
        catalog, name = session.snapshot.catalog, session.random.choice(NAMES)
        known = catalog.objects.get((TYPE_SPACE, "public", name))
        if known is None:
            await self._create(session, name)
            return ()
        assert isinstance(known, DomainDefinition | EnumDefinition), "it was made as one"
        match session.random.randrange(6):
            case 0:
                await _drop(session, known)
            case 1:
                await self._add_column(session, known)
            case 2 | 3 if isinstance(known, DomainDefinition):
                return await _put(session, _forbidding(session, known), found)
            case _:
                return await _put(session, _permitting(session, known), found)
        return ()

    async def _create(self, session: Session, name: str) -> None:
        oid = (await session.new_table("any")).oid
        made: UserType = DomainDefinition(oid, "public", name, ("int8", -1, None, None, False))
        if name == "level":
            array = (await session.new_table("any")).oid
            labels = tuple(str(position) for position in range(0, 8, 2))
            made = EnumDefinition(oid, "public", name, labels, array)
        await session.define(PutObject(made))
        await self._add_column(session, made)

    async def _add_column(self, session: Session, of: UserType) -> None:
        table = session.table(session.random.choice(TABLES))
        if any(_type_name(column) == of.name for column in table.columns):
            return
        self._columns += 1
        after = with_added_column(table, _typed(Column(f"p{self._columns}", INT8), of))
        if _allowed(after):
            await session.define(PutTable(_next(after)))


def _look(session: Session, found: Sequence[Sequence[Row]]) -> None:
    catalog = session.snapshot.catalog
    for key, rows in zip(KEYS, found, strict=True):
        for column in session.table(table_of(key)).columns[len(COLUMNS) :]:
            name = _type_name(column)
            known = catalog.objects.get((TYPE_SPACE, "public", name))
            session.expect(known is not None, "type", f"{column.name} is of a {name} that is gone")
            if known is None:
                continue
            assert isinstance(known, DomainDefinition | EnumDefinition), "it was made as one"
            session.expect(column == _typed(column, known), "type", f"{column} is not of {known}")
            wrong = [
                row
                for row in rows
                if column.field in row.added and row.position not in _values(known)
            ]
            session.expect(not wrong, "value", f"{known} forbids {wrong}")


async def _drop(session: Session, known: UserType) -> None:
    changes: list[CatalogChange] = []
    for table in _tables(session.snapshot.catalog):
        gone = [at for at, column in enumerate(table.columns) if _type_name(column) == known.name]
        if gone:
            changes.append(PutTable(_next(without_column(table, *gone))))
    await session.define(*changes, RemoveObject(known))


async def _put(
    session: Session, after: UserType, found: Sequence[Sequence[Row]]
) -> Sequence[tuple[Key, Sequence[Row]]]:
    """The type and all of its columns; the rows that it forbids."""
    before: Mapping[str, Table] = {t.name: t for t in _tables(session.snapshot.catalog)}
    tables = {name: _with_type(table, after) for name, table in before.items()}
    if not all(_allowed(table) for table in tables.values()):
        return ()
    changed = [_next(table) for name, table in tables.items() if table != before[name]]
    await session.define(PutObject(after), *map(PutTable, changed))
    forbidden: list[tuple[Key, Sequence[Row]]] = []
    for key, rows in zip(KEYS, found, strict=True):
        allowed = _allowed(tables[table_of(key)])
        wrong = [row for row in rows if row.added and row.position not in allowed]
        if wrong:
            forbidden.append((key, wrong))
    return forbidden


def _forbidding(session: Session, known: DomainDefinition) -> DomainDefinition:
    """ADD CONSTRAINT."""
    value = session.random.choice(sorted(POSITIONS))
    checks = dict(known.checks) | {f"not_{value}": f"value <> {value}"}
    return replace(known, checks=tuple(sorted(checks.items())), version=known.version + 1)


def _permitting(session: Session, known: UserType) -> UserType:
    """DROP CONSTRAINT, ADD VALUE or RENAME VALUE."""
    version = known.version + 1
    if isinstance(known, DomainDefinition):
        return replace(known, checks=known.checks[1:], version=version)
    others = sorted({str(position) for position in POSITIONS} - {*known.labels})
    if not others:
        return replace(known, version=version)
    label = session.random.choice(others)
    if session.random.random() < 0.4:
        return replace(known, labels=(*known.labels, label), version=version)
    old = session.random.choice(known.labels)
    labels = tuple(label if other == old else other for other in known.labels)
    return replace(known, labels=labels, version=version)


# --- what columns may hold ---------------------------------------------------------------------


def _values(of: UserType) -> frozenset[int]:
    """The positions that a type has."""
    if isinstance(of, EnumDefinition):
        return frozenset(map(int, of.labels))
    return POSITIONS - {int(name.removeprefix("not_")) for name, _ in of.checks}


def _allowed(table: Table) -> frozenset[int]:
    """What a writer may give a row, by the definition that it was bound to."""
    allowed = POSITIONS
    for column in table.columns:
        if column.domain is not None:
            allowed -= {int(name.removeprefix("not_")) for name, _ in column.domain.checks}
        elif is_enum(column.type.name):
            allowed &= {*map(int, enum_of(column.type.name).labels)}
    return allowed


def _type_name(column: Column) -> str:
    if column.domain is not None:
        return column.domain.name
    return enum_of(column.type.name).name if is_enum(column.type.name) else ""


def _typed(column: Column, of: UserType) -> Column:
    if isinstance(of, EnumDefinition):
        return replace(column, type=of.type)
    return replace(column, type=of.type, domain=of.domain)


def _with_type(table: Table, of: UserType) -> Table:
    for at, column in enumerate(table.columns):
        if _type_name(column) == of.name:
            table = with_column_definition(table, at, _typed(column, of))
    return table


def _tables(catalog: Catalog) -> Sequence[Table]:
    return [catalog.tables["public", name] for name in TABLES]


def _next(table: Table) -> Table:
    return replace(table, version=table.version + 1)
