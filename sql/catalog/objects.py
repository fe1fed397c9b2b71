"""Catalog objects besides tables: sequences, views, indexes, types, sources .., as values.

INVARIANTS
  O1  an object's oid is never given to another one; each new definition has a version one higher.
  O2  sequences, views, indexes and tables of a schema have different names; so have its types.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from sql.types.enums import EnumCast, EnumType
from sql.types.sql_type import SqlType, quoted_name, user_type_name

RELATION_SPACE: Final = "relation"
TYPE_SPACE: Final = "type"
EXTENSION_SPACE: Final = "extension"
STATISTICS_SPACE: Final = "statistics"
SOURCE_SPACE: Final = "source"
CONNECTION_SPACE: Final = "connection"
NAME_SPACES: Final = (RELATION_SPACE, TYPE_SPACE, EXTENSION_SPACE, STATISTICS_SPACE)

INT_BOUNDS: Final = {
    "int2": (-(1 << 15), (1 << 15) - 1),
    "int4": (-(1 << 31), (1 << 31) - 1),
    "int8": (-(1 << 63), (1 << 63) - 1),
}


@dataclass(frozen=True, slots=True)
class ObjectDefinition:
    """The fields that all objects have (O1, O2)."""

    kind: ClassVar[str]
    space: ClassVar[str] = RELATION_SPACE

    oid: int
    schema: str
    name: str
    version: int = field(default=0, kw_only=True)

    @property
    def qualified(self) -> str:
        """Schema and name, for messages."""
        return f"{quoted_name(self.schema)}.{self.shown}"

    @property
    def shown(self) -> str:
        """Its name, for messages that do not quote it."""
        return quoted_name(self.name)


@dataclass(frozen=True, slots=True)
class SequenceDefinition(ObjectDefinition):
    """A sequence. Its current value is not here: `state` names it in the stash, and changes with
    RESTART. `owner`: the oid of the table whose column owns it, 0: none; `owner_field`: that
    column's field. `first`: its first value, if `start` was altered since.
    """

    kind: ClassVar[str] = "sequence"

    state: str
    type: str = "int8"
    start: int = 1
    increment: int = 1
    least: int = 1
    greatest: int = (1 << 63) - 1
    cache: int = 1
    cycle: bool = False
    owner: int = 0
    owner_field: str = ""
    identity: bool = False
    first: int | None = None


TEXT_OPERATOR_CLASSES: Final = ("varchar_ops", "text_pattern_ops", "varchar_pattern_ops")
"""Operator classes of strings that an index may name beside their own."""


@dataclass(frozen=True, slots=True)
class IndexDefinition(ObjectDefinition):
    """CREATE INDEX: a definition that is stored and shown; rows are found without it.

    `elements`: the texts of columns and expressions, each with what followed it in `options`
    (`varchar_pattern_ops`, `DESC`, `NULLS FIRST`). `predicate`: of WHERE, or empty. `unique`: the
    server enforces it; its table names it among its `unique_indexes`.
    """

    kind: ClassVar[str] = "index"

    table: int
    elements: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    method: str = "btree"
    predicate: str = ""
    include: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    """Storage parameters, `fillfactor=70`, which are only shown."""
    unique: bool = False
    nulls_distinct: bool = True


@dataclass(frozen=True, slots=True)
class StatisticsDefinition(ObjectDefinition):
    """CREATE STATISTICS: a definition that is shown, and goes with its table.

    `columns`: the numbers of the table's columns; `kinds`: as pg_statistic_ext has them; `target`:
    of SET STATISTICS.
    """

    kind: ClassVar[str] = "statistics object"
    space: ClassVar[str] = STATISTICS_SPACE

    table: int
    columns: tuple[int, ...] = ()
    expressions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    target: int | None = None


@dataclass(frozen=True, slots=True)
class ViewDefinition(ObjectDefinition):
    """A view: the text of its query, the names of its columns, and what its names mean.

    `relations`: schema as written (or empty), name as written, oid, and the columns' names and
    numbers of that time. `uses`: oid and number of each column that it reads, 0 for a relation
    that it names by a constant.
    """

    kind: ClassVar[str] = "view"

    text: str
    columns: tuple[str, ...] = ()
    relations: tuple[tuple[str, str, int, tuple[str, ...], tuple[int, ...]], ...] = ()
    uses: tuple[tuple[int, int], ...] = ()
    check_option: str = ""
    """`local` or `cascaded`."""
    defaults: tuple[tuple[int, str], ...] = ()
    """Places of columns, and the texts of their defaults."""


@dataclass(frozen=True, slots=True)
class MaterializedView(ViewDefinition):
    """The definition of a materialized view, as a view has it. It is not stored: its table has it
    (`StoredQuery`), under the same oid and name (`Catalog.materialized_views`).
    """

    kind: ClassVar[str] = "materialized view"


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """The query of a materialized view, whose rows a table stores. `text`, `relations`, `uses`: as
    a view has them. `is_populated`: False after WITH NO DATA; no query reads the table then.
    """

    text: str
    relations: tuple[tuple[str, str, int, tuple[str, ...], tuple[int, ...]], ...] = ()
    uses: tuple[tuple[int, int], ...] = ()
    is_populated: bool = True
    on_commit: bool = False
    """Its rows are used only where they are exact (V4 of `coordinator/core/views`)."""
    state: tuple[tuple[str, SqlType], ...] = ()
    """Names and types of hidden columns, which the table stores behind its own: what maintenance
    adds to (`sql/incremental/hidden_state.py`)."""


@dataclass(frozen=True, slots=True)
class ExactView:
    """That a materialized view is exact: from the catalog's timestamp on its stored rows are those
    of its query (V1 of `coordinator/core/views`).

    `inputs`: the oids of the tables that its query reads, through whatever views. `definitions`:
    those of all relations that its meaning rests on. `computed_at`: where its rows were computed,
    never the same twice.
    """

    inputs: frozenset[int]
    definitions: frozenset[int]
    computed_at: int


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a comment, owner or list of privileges belongs to. These are not part of its
    definition: changing them changes no version.

    `kind`: `relation` and `of` its oid; `column`, and `part` its number; `constraint` or `index`
    of a key, `of` its table's oid and `part` its name; `schema` or `database` by its name; `type`
    or `role` and `of` its oid; `domain constraint` like one of a table; `default` the privileges
    that things of a role get when they are made, `of` its oid and `part` a letter for their kind
    and the schema that they are made in, or nothing.
    """

    kind: str
    of: int | str
    part: int | str = 0

    @property
    def schema(self) -> str:
        """Of a `default`: the schema where it applies, empty for all."""
        return str(self.part)[1:]


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON .. IS; None: the comment is removed."""

    subject: Subject
    text: str | None


@dataclass(frozen=True, slots=True)
class TypeDefinition(ObjectDefinition):
    """An object whose name is in the name space of types."""

    space: ClassVar[str] = TYPE_SPACE


@dataclass(frozen=True, slots=True)
class EnumDefinition(TypeDefinition):
    """CREATE TYPE .. AS ENUM. `array`: the oid of its array type; `casts`: those of CREATE CAST."""

    kind: ClassVar[str] = "enum"

    labels: tuple[str, ...] = ()
    array: int = 0
    casts: tuple[EnumCast, ...] = ()

    @property
    def type(self) -> SqlType:
        """The type that columns of this enum have."""
        enum = EnumType(self.oid, self.array, self.schema, self.name, self.labels, self.casts)
        return SqlType(enum.type_name)


@dataclass(frozen=True, slots=True)
class Domain:
    """The rules of a domain for its columns. `checks`: names and texts over VALUE; `default`: the
    text of DEFAULT, or empty.
    """

    oid: int
    schema: str
    name: str
    not_null: bool = False
    checks: tuple[tuple[str, str], ...] = ()
    default: str = ""

    @property
    def shown(self) -> str:
        """The name in messages."""
        return user_type_name(self.schema, self.name)


@dataclass(frozen=True, slots=True)
class DomainDefinition(TypeDefinition):
    """CREATE DOMAIN. `base`: the fields of the SqlType that its values are of."""

    kind: ClassVar[str] = "domain"

    base: tuple[str, int, int | None, int | None, bool] = ("text", -1, None, None, False)
    not_null: bool = False
    checks: tuple[tuple[str, str], ...] = ()
    default: str = ""
    null_rule: str = ""
    """The name of its NOT NULL, if that is not as PostgreSQL would call it."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of its constraints, NOT NULL before all."""
        names = tuple(name for name, _ in self.checks)
        return (self.not_null_name, *names) if self.not_null else names

    @property
    def not_null_name(self) -> str:
        """The name of its NOT NULL constraint."""
        return self.null_rule or f"{self.name}_not_null"

    @property
    def type(self) -> SqlType:
        """The type of its values."""
        return SqlType(*self.base)

    @property
    def domain(self) -> Domain:
        """The rules that columns of this domain have."""
        return Domain(self.oid, self.schema, self.name, self.not_null, self.checks, self.default)


@dataclass(frozen=True, slots=True)
class ExtensionDefinition(ObjectDefinition):
    """CREATE EXTENSION. Its functions are built in; they are found while it is there, in its
    schema. No other extension of any schema has its name.
    """

    kind: ClassVar[str] = "extension"
    space: ClassVar[str] = EXTENSION_SPACE

    release: str


@dataclass(frozen=True, slots=True)
class ConnectionDefinition(ObjectDefinition):
    """CREATE CONNECTION: where another system is, and who we are there. `options` name where the
    password is (`password env`, `password file`), and never have it.
    """

    kind: ClassVar[str] = "connection"
    space: ClassVar[str] = CONNECTION_SPACE

    connector: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceDefinition(ObjectDefinition):
    """CREATE SOURCE: one ordered feed of an upstream's records. How far it is read is not here: the
    stash has that beside the rows (F1 of `coordinator/core/sources`).

    `connector`: the kind of upstream, `options`: what was given for it. `feed_id`: names what is
    made upstream; no other source of any server has it. `paused`: ALTER SOURCE .. PAUSE.
    `connection`: the oid of the connection, 0: it needs none. `generation`: of what stands
    upstream; RESNAPSHOT begins another one. `skip`: the places of records, as JSON, that SKIP
    RECORD leaves out.
    """

    kind: ClassVar[str] = "source"
    space: ClassVar[str] = SOURCE_SPACE

    connector: str
    options: tuple[tuple[str, str], ...] = ()
    feed_id: str = ""
    paused: bool = False
    connection: int = 0
    generation: int = 1
    skip: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feed:
    """What brings the rows of a table: the oid of its source, and the table's name upstream. An
    empty `reference`: it is the table of the source's errors.

    Of a table upstream, `columns` has the names there of the table's columns, in their order;
    empty: they are called alike. `key`: those that identify a row. `seen`: all of its columns when
    it was looked at, with the names of their types.
    """

    source: int
    reference: str
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    seen: tuple[tuple[str, str], ...] = ()


UserType: TypeAlias = EnumDefinition | DomainDefinition
CatalogObject: TypeAlias = (
    SequenceDefinition | IndexDefinition | StatisticsDefinition | ViewDefinition
    | ExtensionDefinition | SourceDefinition | ConnectionDefinition | UserType
)  # fmt: skip


def relations_used_by(thing: CatalogObject) -> tuple[int, ...]:
    """The oids of relations that a definition depends on, or names in regclass constants."""
    match thing:
        case ViewDefinition():
            named = (oid for oid, number in thing.uses if not number)
            return tuple(dict.fromkeys([*(relation[2] for relation in thing.relations), *named]))
        case IndexDefinition() | StatisticsDefinition():
            return (thing.table,)
        case SequenceDefinition() | ExtensionDefinition() | EnumDefinition() | DomainDefinition():
            return ()
        case SourceDefinition() | ConnectionDefinition():
            return ()


OBJECT_CLASSES: Final[dict[str, type[CatalogObject]]] = {
    SequenceDefinition.kind: SequenceDefinition,
    IndexDefinition.kind: IndexDefinition,
    StatisticsDefinition.kind: StatisticsDefinition,
    ViewDefinition.kind: ViewDefinition,
    EnumDefinition.kind: EnumDefinition,
    DomainDefinition.kind: DomainDefinition,
    ExtensionDefinition.kind: ExtensionDefinition,
    SourceDefinition.kind: SourceDefinition,
    ConnectionDefinition.kind: ConnectionDefinition,
}


def object_kind_name(thing: CatalogObject) -> str:
    """The kind of an object as messages name it."""
    return "type" if thing.space == TYPE_SPACE else thing.kind
