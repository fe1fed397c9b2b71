"""The catalog as the binder sees it: an immutable value with all objects at one timestamp.

The coordinator keeps the versions (`coordinator/core/catalog.py`); this module only says what a
schema, a table and a column are, and how a name is found along the search path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sql.catalog.acl import ObjectPrivileges
from sql.catalog.objects import (
    RELATION_SPACE,
    TYPE_SPACE,
    CatalogObject,
    Domain,
    DomainDefinition,
    EnumDefinition,
    ExactView,
    Feed,
    IndexDefinition,
    MaterializedView,
    SequenceDefinition,
    StatisticsDefinition,
    StoredQuery,
    Subject,
    UserType,
    ViewDefinition,
)
from sql.catalog.roles import Role
from sql.catalog.stored_settings import SettingScope, StoredSettings
from sql.types.sql_type import SqlType, Value, quoted_name


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `default` is a constant; `has_default` tells NULL from none.

    `expression`: the text of a default that is no constant, as it stands in SQL; it is bound anew
    by every statement that uses it.
    """

    name: str
    type: SqlType
    not_null: bool = False
    has_default: bool = False
    default: Value = None
    expression: str | None = None
    number: int = 0
    """Its number in the table, never used twice; 0: its place, in a table that was never altered
    so that it matters."""
    stored: str = ""
    """The name of its field in files and batches, if that is not the column's own."""

    sequence: int = 0
    """The oid of the sequence whose next value is its default, 0: none."""
    identity: str = ""
    """`always` or `by default`, if it is GENERATED AS IDENTITY."""
    generated: str | None = None
    """The text of GENERATED ALWAYS AS (..) STORED."""
    not_null_name: str = ""
    """Of its NOT NULL, if that is not what table and column are called (`constraint_names.py`)."""

    domain: Domain | None = None
    """The domain that it is of; `type` is that of its values."""
    default_of_domain: bool = False
    """Its default is its domain's: it has none of its own."""
    collation: str = ""
    """What COLLATE names, if that is not its type's own (`collations.py`)."""

    default_text: str = ""
    """The text of a default that is a constant, if it is known; it is only shown."""
    invariant: str = ""
    """What its table's checks say of it, as Delta has it (`delta_invariants.py`)."""

    @property
    def field(self) -> str:
        """The name of its field in files and batches."""
        return self.stored or self.name


def _without_names(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Without the names of their NOT NULLs."""
    return tuple(replace(column, not_null_name="") for column in columns)


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key or unique constraint. `columns`: ordinals into the table's columns."""

    name: str
    columns: tuple[int, ...]
    primary: bool = False
    nulls_distinct: bool = True
    index: bool = False
    """It was made by CREATE UNIQUE INDEX, and is no constraint by name."""
    deferrable: bool = False
    deferred: bool = False
    """INITIALLY DEFERRED; nothing without `deferrable`."""
    orders: tuple[str, ...] = ()
    """Of an index, its columns' `DESC` and `NULLS ..`, if any has one: they are shown."""
    parameters: tuple[str, ...] = ()
    """Storage parameters of its index, which are only shown."""
    include: tuple[int, ...] = ()
    """Ordinals of the columns that INCLUDE names; they are only shown."""


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """A CHECK constraint. `expression`: its text, over the table's columns."""

    name: str
    expression: str
    validated: bool = True
    """False after NOT VALID: nothing is promised of rows that were there before."""
    no_inherit: bool = False
    """It says NO INHERIT, which is only shown."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key. `columns`: ordinals of its table; `table`: the oid of the other one, and
    `references` the numbers of its columns. Actions: `no action`, `restrict`, `cascade`, `set
    null`, `set default`.
    """

    name: str
    columns: tuple[int, ...]
    table: int
    references: tuple[int, ...]
    on_delete: str = "no action"
    on_update: str = "no action"
    deferrable: bool = False
    deferred: bool = False
    """INITIALLY DEFERRED; nothing without `deferrable`."""
    match_full: bool = False
    set_columns: tuple[int, ...] = ()
    """Which of `columns`, by place, ON DELETE SET NULL or SET DEFAULT changes, if not all."""
    validated: bool = True
    """As a CHECK's."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A unit of consistency. `manual`: it moves by writes and ADVANCE, not by a
    clock. `part`: tells it from an earlier one of the same name; "" if there can be none.
    """

    name: str
    manual: bool = False
    part: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """The part of the stash where it stores its data."""
        return f"{self.name}@{self.part}" if self.part else self.name


SYSTEM_TIMELINE: Final = Timeline("system")
"""The timeline of the wall clock, in microseconds; it always exists, and DDL is ordered by it."""


@dataclass(frozen=True, slots=True)
class ReadHold:
    """A named read hold: its timeline stays readable at `ts` until it is dropped."""

    name: str
    timeline: str
    ts: int


_PLACE: Final = (
    "schema", "name", "history_us", "clustered", "parameters", "unlogged", "change_feed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its shard (opaque here), and a definition version that changes with every DDL on
    it. `history_us`: how far back it stays readable, if not as the server's default says.
    """

    oid: int
    schema: str
    name: str
    shard: str
    columns: tuple[Column, ...]
    version: int = 0
    timeline: str = SYSTEM_TIMELINE.name
    history_us: int | None = None
    keys: tuple[Key, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    numbers: int = 0
    """The largest number that a column has had; 0: as many as there are columns."""
    foreign_keys: tuple[ForeignKey, ...] = ()
    on_commit: str = ""
    """Of a temporary table: `delete`, if its rows, or `drop`, if the table goes with COMMIT."""
    clustered: tuple[int, ...] = ()
    """The numbers of the columns by which the rows of large writes are laid down in order."""
    parameters: tuple[str, ...] = ()
    """PostgreSQL's storage parameters, `fillfactor=70`, which are only shown."""
    unlogged: bool = False
    """It was made UNLOGGED, which is only shown."""
    unique_indexes: tuple[int, ...] = ()
    """The oids of its unique indexes that are no keys (`ComputedKey`)."""
    query: StoredQuery | None = None
    """Of a materialized view: the query whose rows it stores."""
    feed: Feed | None = None
    """What brings its rows, if that is a source."""
    change_feed: bool = False
    """Readers of its Delta files are told what each version changes."""

    @property
    def kind(self) -> str:
        """The kind of relation, as messages name it."""
        return "table" if self.query is None else MaterializedView.kind

    @property
    def materialized_view(self) -> MaterializedView | None:
        """Its definition in the form of a view, if it is a materialized one."""
        query = self.query
        if query is None:
            return None
        names = tuple([column.name for column in self.columns])
        return MaterializedView(
            self.oid,
            self.schema,
            self.name,
            query.text,
            names,
            query.relations,
            query.uses,
            version=self.version,
        )

    @property
    def stored_columns(self) -> tuple[Column, ...]:
        """The columns of its shard: its own, and those that a view hides; all by names, or none."""
        named, made = any(c.stored for c in self.columns), [*self.columns]
        for name, type_ in () if self.query is None else self.query.state:
            made.append(Column(name, type_, number=len(made) + 1, stored=name if named else ""))
        return tuple(made)

    def number_of(self, ordinal: int) -> int:
        """A column's number, which never changes."""
        return self.columns[ordinal].number or ordinal + 1

    def ordinal_of(self, number: int) -> int:
        """The ordinal of the column with this number."""
        return next(at for at in range(len(self.columns)) if self.number_of(at) == number)

    def column_numbered(self, number: int) -> Column | None:
        """The column with this number, if there is one."""
        numbered = enumerate(self.columns)
        return next((found for at, found in numbered if self.number_of(at) == number), None)

    @property
    def qualified(self) -> str:
        """Schema and name, for messages."""
        return f"{quoted_name(self.schema)}.{self.shown}"

    @property
    def shown(self) -> str:
        """Its name, for messages that do not quote it."""
        return quoted_name(self.name)

    def is_elsewhere(self, other: "Table") -> bool:
        """Whether another definition differs in name, schema, history, file order or in what is
        only shown.
        """
        return self._place() != other._place()

    def _place(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in _PLACE])

    def is_same_but_for_name(self, other: "Table") -> bool:
        """Whether another definition differs only in names and in what `is_elsewhere` compares."""
        known = replace(
            other,
            version=self.version,
            columns=_without_names(other.columns),
            **dict(zip(_PLACE, self._place(), strict=True)),
        )
        return known == replace(self, columns=_without_names(self.columns))

    def rule_names(self) -> Iterator[str]:
        """The names of checks and foreign keys, and those of NOT NULLs that are stored."""
        yield from (check.name for check in self.checks)
        yield from (key.name for key in self.foreign_keys)
        yield from (column.not_null_name for column in self.columns if column.not_null_name)

    def column(self, name: str) -> Column | None:
        """The column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


class NamedTables(dict[tuple[str, str], Table]):
    """Tables by schema and name, which are found by oid and by names of their constraints, too.

    A change costs what it changes: a copy is made without a look at the tables. Items are set and
    deleted, one by one; other ways to change a dictionary are not for it.
    """

    __slots__ = ("by_oid", "fed", "keys_named", "materialized", "rules_named", "with_history")

    def __init__(self, tables: Mapping[tuple[str, str], Table]) -> None:
        super().__init__()
        self.by_oid: dict[int, Table] = {}
        self.keys_named: dict[tuple[str, str], tuple[tuple[Table, Key], ...]] = {}
        """By schema and name; a catalog that fits has one of each."""
        self.rules_named: dict[tuple[str, str], int] = {}
        """How many checks, foreign keys and NOT NULLs with a stored name have schema and name."""
        self.with_history: dict[int, Table] = {}
        """By oid, those with a history of their own."""
        self.materialized: dict[int, Table] = {}
        """By oid, those that are materialized views."""
        self.fed: dict[int, Table] = {}
        """By oid, those that a source feeds."""
        if isinstance(tables, NamedTables):
            super().update(tables)
            for found_by in self.__slots__:
                getattr(self, found_by).update(getattr(tables, found_by))
        else:
            for name, table in tables.items():
                self[name] = table

    def __setitem__(self, name: tuple[str, str], table: Table) -> None:
        if name in self:
            self._forget(self[name])
        super().__setitem__(name, table)
        self.by_oid[table.oid] = table
        if table.history_us is not None:
            self.with_history[table.oid] = table
        if table.query is not None:
            self.materialized[table.oid] = table
        if table.feed is not None:
            self.fed[table.oid] = table
        for key in table.keys:
            named = (table.schema, key.name)
            self.keys_named[named] = (*self.keys_named.get(named, ()), (table, key))
        for rule in table.rule_names():
            named = (table.schema, rule)
            self.rules_named[named] = self.rules_named.get(named, 0) + 1

    def __delitem__(self, name: tuple[str, str]) -> None:
        self._forget(self[name])
        super().__delitem__(name)

    def _forget(self, table: Table) -> None:
        if self.by_oid.get(table.oid) is table:
            del self.by_oid[table.oid]
            self.with_history.pop(table.oid, None)
            self.materialized.pop(table.oid, None)
            self.fed.pop(table.oid, None)
        for key in table.keys:
            named = (table.schema, key.name)
            others = tuple(one for one in self.keys_named.pop(named, ()) if one[0] is not table)
            if others:
                self.keys_named[named] = others
        for rule in table.rule_names():
            named = (table.schema, rule)
            self.rules_named[named] -= 1
            if not self.rules_named[named]:
                del self.rules_named[named]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All objects at one timestamp. `version` grows with every DDL."""

    version: int = 0
    schemas: frozenset[str] = frozenset({"public"})
    tables: Mapping[tuple[str, str], Table] = field(default_factory=dict[tuple[str, str], Table])
    timelines: Mapping[str, Timeline] = field(
        default_factory=lambda: {SYSTEM_TIMELINE.name: SYSTEM_TIMELINE}
    )
    read_holds: Mapping[str, ReadHold] = field(default_factory=dict[str, ReadHold])
    objects: Mapping[tuple[str, str, str], CatalogObject] = field(
        default_factory=dict[tuple[str, str, str], CatalogObject]
    )
    """By space of names, schema and name."""
    comments: Mapping[Subject, str] = field(default_factory=dict[Subject, str])
    roles: Mapping[int, Role] = field(default_factory=dict[int, Role])
    """By oid; those that have always been there only if they were changed (`catalog/roles.py`)."""
    rights: Mapping[Subject, ObjectPrivileges] = field(
        default_factory=dict[Subject, ObjectPrivileges]
    )
    """Owner and privileges of objects that differ from the defaults (R1 of `ownership.py`)."""
    settings: StoredSettings = field(default_factory=dict[SettingScope, tuple[str, ...]])
    exact_views: Mapping[int, ExactView] = field(default_factory=dict[int, ExactView])
    """By oid, the materialized views whose stored rows are exact at this timestamp."""

    def relation(self, schema: str, name: str) -> CatalogObject | None:
        """A sequence, view or index by its name."""
        return self.objects.get((RELATION_SPACE, schema, name)) if self.objects else None

    def sequences(self) -> Iterator[SequenceDefinition]:
        """All sequences."""
        return (o for o in self.objects.values() if isinstance(o, SequenceDefinition))

    def views(self) -> Iterator[ViewDefinition]:
        """All views that are not materialized."""
        return (o for o in self.objects.values() if isinstance(o, ViewDefinition))

    def materialized_views(self) -> Iterator[MaterializedView]:
        """The definitions of all materialized views."""
        found = (table.materialized_view for table in self.named_tables.materialized.values())
        return (view for view in found if view is not None)

    def defined_views(self) -> Iterator[ViewDefinition]:
        """All views, materialized or not: whatever has a query that is stored."""
        yield from self.views()
        yield from self.materialized_views()

    def enums(self) -> Iterator[EnumDefinition]:
        """All enums."""
        return (o for o in self.objects.values() if isinstance(o, EnumDefinition))

    def domains(self) -> Iterator[DomainDefinition]:
        """All domains."""
        return (o for o in self.objects.values() if isinstance(o, DomainDefinition))

    def type_named(self, schema: str, name: str) -> UserType | None:
        """A user-defined type by its name."""
        found = self.objects.get((TYPE_SPACE, schema, name)) if self.objects else None
        return found if isinstance(found, EnumDefinition | DomainDefinition) else None

    def indexes(self, oid: int) -> Iterator[IndexDefinition]:
        """The indexes of a table that belong to no constraint."""
        for found in self.objects.values():
            if isinstance(found, IndexDefinition) and found.table == oid:
                yield found

    def statistics(self, oid: int) -> Iterator[StatisticsDefinition]:
        """The statistics objects of a table."""
        for found in self.objects.values():
            if isinstance(found, StatisticsDefinition) and found.table == oid:
                yield found

    def sequence_by_oid(self, oid: int) -> SequenceDefinition | None:
        """The sequence with this oid."""
        return next((found for found in self.sequences() if found.oid == oid), None)

    def find(self, name: str, *, schema: str | None, search_path: Sequence[str]) -> Table | None:
        """The table by qualified name, or the first of that name along the search path."""
        if schema is not None:
            return self.tables.get((schema, name))
        found = (self.tables.get((candidate, name)) for candidate in search_path)
        return next((table for table in found if table is not None), None)

    @property
    def named_tables(self) -> NamedTables:
        """The tables, with ways to find them; at no cost in a catalog that the core has made."""
        found = self.tables
        return found if isinstance(found, NamedTables) else NamedTables(found)

    def by_oid(self, oid: int) -> Table | None:
        """The table with this oid."""
        if isinstance(self.tables, NamedTables):
            return self.tables.by_oid.get(oid)
        return next((table for table in self.tables.values() if table.oid == oid), None)

    def times_named(self, schema: str, name: str) -> int:
        """How many tables, keys and other relations have this name: at most one, if all fits."""
        keys = self.named_tables.keys_named.get((schema, name), ())
        found = ((schema, name) in self.tables, self.relation(schema, name) is not None)
        return sum(found) + len(keys)


@dataclass(frozen=True, slots=True)
class NameDependency:
    """A name dependency: what a statement found a name to be. A table's oid, or None for missing.

    `name` None: the schema itself, 0 if it exists; with no schema either: see `whole_catalog`. A
    type is its oid and version, since its meaning changes with its definition:
    `type_dependency_state`. `version`: that of a relation's definition that was read; None: only
    its existence matters.
    """

    schema: str
    name: str | None
    oid: int | None
    space: str = RELATION_SPACE
    version: int | None = None


def type_dependency_state(found: UserType | None) -> int | None:
    """The value that a name dependency on a type records: oid and version, None if missing."""
    return None if found is None else found.oid + (found.version << 32)


def type_dependency(schema: str, name: str, found: UserType | None) -> NameDependency:
    """The dependency on what a name was found to be among types."""
    return NameDependency(schema, name, type_dependency_state(found), TYPE_SPACE)


def definition_of(found: Table | ViewDefinition) -> NameDependency:
    """The dependency of a statement that is made of a table's or view's definition."""
    return NameDependency(found.schema, found.name, found.oid, version=found.version)


_WHOLE_CATALOG: Final = ""
"""In place of a schema's name."""


def whole_catalog(catalog: Catalog) -> NameDependency:
    """The dependency of a statement that reads this catalog: on all definitions, by version."""
    return NameDependency(_WHOLE_CATALOG, None, catalog.version)


def is_whole_catalog(name: NameDependency) -> bool:
    """Whether it is a dependency on all definitions."""
    return name.schema == _WHOLE_CATALOG
