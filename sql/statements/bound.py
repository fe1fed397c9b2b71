"""Bound statements: what a session executes. One dataclass per kind; the union is `Bound`.

Data-modifying statements carry a `source` plan whose output has a fixed shape:
    Insert   the table's columns, in order, with their exact types (defaults filled in)
    Update   source, index (identity of the old row), then the table's columns with the new values,
             then the old values of the columns that are assigned (`old`)
    Delete   source, index, then the old values of some columns (`old`; with RETURNING: of all)
    Merge    source, index (NULL for INSERT), action (int4: `MergeAction`), then the table's columns
             with the new values (DELETE: the old ones), then all old values (INSERT: NULL)
    all      and then the `extras`: values of other tables' columns, for RETURNING
NOT NULL is checked by the session on the rows (23502), lengths and ranges by the casts in the plan.
`returning` is a plan over `Scan(relation="new")` whose input has the table's columns (DELETE: as
they were), with `returning_old` once more as they were before, and then the extras.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import TypeAlias

from sql.catalog.acl import Rights
from sql.catalog.catalog import (
    SYSTEM_TIMELINE,
    Check,
    Column,
    ForeignKey,
    Key,
    LookUp,
    Table,
    Timeline,
)
from sql.catalog.objects import CatalogObject, Comment, IndexDefinition, SequenceDefinition, Subject
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.plan.nodes import Expr, Plan, PlanColumn, Project, RelationId, Values
from sql.statements.ddl import (
    ChangeObjects,
    ChangeRights,
    CreateObject,
    CreateSequence,
    Redefinition,
    Validation,
)
from sql.statements.explain_options import ExplainOptions
from sql.statements.literals import ReadLiterals
from sql.statements.session import (
    Discard,
    ResetVariable,
    SetConstraints,
    SetVariable,
    ShowVariable,
    TransactionControl,
)
from sql.statements.supplied import Filled, Supplied
from sql.statements.view_checks import ViewChecks
from sql.types.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a result for RowDescription. table_oid 0: not a plain column of a table."""

    name: str
    type: SqlType
    table_oid: int = 0
    attribute: int = 0


@dataclass(frozen=True, slots=True)
class RowCall:
    """A function that acts, called for each row for which `guard` is true, or for all. Arguments
    are over the columns of the plan and of the calls before it, `sequence` is what the first of
    them names if that is known; `column` has what it answers.
    """

    name: str
    sequence: SequenceDefinition | None
    args: tuple[Expr, ...]
    guard: Expr | None
    column: PlanColumn


@dataclass(frozen=True, slots=True)
class RowCalls:
    """What is called for each row of a plan, in turn, and what is shown: `after` is a plan over
    `Scan(relation="called")`, which has the plan's columns and those of the calls.
    """

    calls: tuple[RowCall, ...]
    after: Project


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, VALUES, WITH. `tables`: what it reads. `as_of`: a timestamp expression (timestamptz
    or int8). `locked`: the tables, by oid, whose rows stand under FOR UPDATE or its kin.
    """

    plan: Plan
    columns: tuple[OutputColumn, ...]
    tables: tuple[Table, ...]
    as_of: Expr | None = None
    as_of_at_least: bool = False
    locked: frozenset[int] = frozenset()
    calls: RowCalls | None = None


class ModifyKind(StrEnum):
    """What a data-modifying statement does."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    MERGE = "merge"


class MergeAction(IntEnum):
    """What MERGE does with a row of its source plan."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """ON CONFLICT. `arbiters`: places in `table.keys`; a row that has another row's key of one of
    them is not inserted.

    `update`: what becomes of the other row instead, for DO UPDATE; a plan over
    `Scan(relation="conflicts")`, whose input has one row a conflict: its place (int8), the table's
    columns as they are, and as they were to be. It makes the place and the table's columns.
    `tables`: what that plan reads. `assigned`: the ordinals that it assigns.
    """

    arbiters: tuple[int, ...]
    update: Plan | None = None
    assigned: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Modify:
    """INSERT, UPDATE, DELETE, MERGE. `tables`: what `source` reads (empty for INSERT VALUES:
    blind); `returning_tables`: what `returning` does.

    `old`: the ordinals whose old values stand in the source's columns. `extras`: how many further
    columns it has, for RETURNING.
    """

    kind: ModifyKind
    table: Table
    source: Plan
    tables: tuple[Table, ...]
    returning: Plan | None = None
    columns: tuple[OutputColumn, ...] = ()
    old: tuple[int, ...] = ()
    extras: int = 0
    returning_old: bool = False
    returning_tables: tuple[Table, ...] = ()
    conflict: Conflict | None = None
    view_checks: ViewChecks | None = None
    calls: RowCalls | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A data-modifying WITH query; what it returns is the input `relation` of whoever reads it."""

    relation: RelationId
    modify: Modify


@dataclass(frozen=True, slots=True)
class Compound:
    """A statement with data-modifying WITH queries. `parts` in the order of their effects;
    `before`: how many of them come before `main`. All see the tables as they were at first.
    """

    parts: tuple[Part, ...]
    main: Query | Modify
    before: int

    @property
    def modifications(self) -> tuple[Modify, ...]:
        """Everything that writes."""
        found = tuple([part.modify for part in self.parts])
        return found if isinstance(self.main, Query) else (*found, self.main)


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """Options of COPY as given, checked. `format` is `text`, `csv` or `binary`."""

    format: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    header_match: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()
    force_not_null: tuple[str, ...] = ()
    skips: bool = False
    """ON_ERROR ignore: rows with a value that cannot be read are passed over."""
    skipped_max: int | None = None
    """REJECT_LIMIT."""
    verbosity: str = "default"
    """LOG_VERBOSITY: `default`, `verbose`, `silent`."""

    @property
    def is_binary(self) -> bool:
        """Fields with lengths; no other option means anything then."""
        return self.format == "binary"


@dataclass(frozen=True, slots=True)
class CopyIn:
    """COPY t (columns) FROM STDIN. `ordinals`: the table's columns that the data has, in its
    order. `defaults`: one row of what the others get, in the table's order. `where`: a plan over
    `Scan(relation="new")` that makes the rows to be kept. `freeze`: the table must be new.
    """

    table: Table
    ordinals: tuple[int, ...]
    options: CopyOptions
    defaults: Values | None = None
    where: Plan | None = None
    freeze: bool = False


@dataclass(frozen=True, slots=True)
class CopyOut:
    """COPY t TO STDOUT or COPY (query) TO STDOUT."""

    query: Query
    options: CopyOptions


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The session gives the table its oid and shard. `exists`: IF NOT EXISTS found one; notice
    only.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    exists: bool = False
    timeline: str = SYSTEM_TIMELINE.name
    history_us: int | None = None
    keys: tuple[Key, ...] = ()
    checks: tuple[Check, ...] = ()
    sequences: tuple[tuple[int, SequenceDefinition], ...] = ()
    """Those of serial and identity columns, by ordinal."""
    foreign_keys: tuple[ForeignKey, ...] = ()
    parents: tuple[Table, ...] = ()
    """The tables that they refer to, which are touched."""
    indexes: tuple[IndexDefinition, ...] = ()
    comments: tuple[Comment, ...] = ()
    """Of the table, whose oid is 0 in them, and of the indexes: -1, -2 .."""
    on_commit: str = ""
    clustered: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE TABLE AS, SELECT INTO: the rows of `source`, which reads `tables`, as `table` stores
    them.
    """

    table: CreateTable
    source: Plan
    tables: tuple[Table, ...]
    with_data: bool = True
    calls: RowCalls | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE; each table once. `restarted`: RESTART IDENTITY, the sequences that begin anew.
    `cascades`: the names of tables that CASCADE has brought, for the notices.
    """

    tables: tuple[Table, ...]
    restarted: "ChangeObjects | None" = None
    cascades: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockTables:
    """LOCK TABLE. `from_writers`: nobody else may write to them meanwhile; `alone`: nor hold such a
    lock.
    """

    tables: tuple[Table, ...]
    from_writers: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class DropTable:
    """`missing`: what IF EXISTS says of those it did not find. `changed`: tables that lose
    foreign keys with CASCADE, of which `cascades` tells.
    """

    tables: tuple[Table, ...]
    missing: tuple[str, ...] = ()
    changed: tuple[Redefinition, ...] = ()
    cascades: tuple[str, ...] = ()
    objects: tuple[CatalogObject, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """`exists`: IF NOT EXISTS found one; notice only. `owner`: of AUTHORIZATION. `elements`: the
    statements that make what is in it.
    """

    name: str
    exists: bool = False
    owner: int | None = None
    elements: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class DropSchema:
    """`tables`, `objects`: what CASCADE drops with it; `changed`: tables that lose foreign keys,
    defaults or columns, which the notice tells by `told`; `of_columns`: what goes with the columns.
    """

    names: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    missing: tuple[str, ...] = ()
    objects: tuple[CatalogObject, ...] = ()
    changed: tuple[Redefinition, ...] = ()
    told: tuple[str, ...] = ()
    of_columns: tuple[CatalogObject, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, ALTER SCHEMA RENAME: tables that get another definition.

    `new_schema`, `old_schema`: made before, dropped after. `missing`: what IF EXISTS did not find.
    `rewrite`: source, index and all columns of the table after, for rows that replace old ones.
    `validations`: of the table after. `notices`: SQLSTATE, text, detail. `fresh`: begin anew.
    """

    tables: tuple[Redefinition, ...] = ()
    new_schema: str | None = None
    old_schema: str | None = None
    missing: str | None = None
    tag: str = "ALTER TABLE"
    objects: tuple[CatalogObject, ...] = ()
    dropped: tuple[CatalogObject, ...] = ()
    parents: tuple[Table, ...] = ()
    """Tables beside it of foreign keys that are new or looked at again; they are touched."""
    rewrite: Plan | None = None
    unused: str = ""
    """The command that PostgreSQL refuses as long as checks of the tables' rows wait."""
    sequences: tuple[tuple[int, SequenceDefinition], ...] = ()
    """Those of new serial and identity columns, by ordinal in the table after."""
    validations: tuple[Validation, ...] = ()
    fresh: frozenset[int] = frozenset()
    notices: tuple[tuple[str, str, str | None], ...] = ()
    comments: tuple[Comment, ...] = ()
    """Of things that are known by their names, which they get anew."""
    rights: tuple[tuple[Subject, Rights], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTimeline:
    """`exists`: IF NOT EXISTS found one; notice only."""

    timeline: Timeline
    exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTimeline:
    """`missing`: names that IF EXISTS did not find, for the notices."""

    names: tuple[str, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdvanceTimeline:
    """ADVANCE TIMELINE .. TO an int8: part of the transaction's commit, like a write."""

    name: str
    to: Expr


@dataclass(frozen=True, slots=True)
class CreateReadHold:
    """`at` None: the transaction's timestamp. Else int8 or timestamptz."""

    name: str
    timeline: str
    at: Expr | None = None


@dataclass(frozen=True, slots=True)
class DropReadHold:
    """`missing`: names that IF EXISTS did not find, for the notices."""

    names: tuple[str, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainTimestamp:
    """EXPLAIN TIMESTAMP FOR a query, which is not run. `json`: FORMAT JSON."""

    query: Query
    json: bool = False


class MaintenanceKind(StrEnum):
    """What maintenance does; the values are command tags."""

    OPTIMIZE = "OPTIMIZE"
    VACUUM = "VACUUM"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True)
class Maintenance:
    """OPTIMIZE, VACUUM, ANALYZE. `tables` None: all. They run outside of transactions. `problem`:
    with a table, told when it runs.
    """

    kind: MaintenanceKind
    tables: tuple[Table, ...] | None
    problem: SqlError | None = None


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a statement with a plan, which ANALYZE runs."""

    statement: "Query | Modify | Compound | CreateTableAs"
    options: ExplainOptions = field(default_factory=ExplainOptions)

    @property
    def runs(self) -> "Query | Modify | Compound | CreateTableAs | None":
        """What is executed, as if it stood alone."""
        return self.statement if self.options.analyze else None


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing but blanks and comments."""


Bound: TypeAlias = (
    CreateSequence | CreateObject | ChangeObjects | ChangeRights | Query | Modify
    | Compound | CopyIn | CopyOut | CreateTable | DropTable | CreateSchema | DropSchema | AlterTable
    | CreateTimeline | DropTimeline | AdvanceTimeline | CreateReadHold | DropReadHold
    | ExplainTimestamp | Maintenance | CreateTableAs | Truncate | LockTables | TransactionControl
    | SetConstraints | SetVariable | ShowVariable | ResetVariable | Discard | Explain | Empty
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prepared:
    """A bound statement with the types its parameters were found to have, $1 first."""

    bound: Bound
    parameters: tuple[SqlType, ...]
    tag: str
    """The first word or words of the command tag, e.g. `SELECT`, `INSERT 0`, `CREATE TABLE`."""
    uses_now: bool = False
    """The transaction's start is a constant in it: bind again in another transaction."""
    rebind: bool = False
    """It names sessions' state (user, settings, pid): bind again when that changes."""
    look_ups: frozenset[LookUp] = frozenset()
    """Names that its meaning rests on, apart from the definitions of the tables that it uses."""
    supplied: tuple[Supplied, ...] = ()
    """Values that the session finds before it runs: parameters after the client's."""
    filled: Mapping[int, Mapping[int, Filled]] = field(
        default_factory=dict[int, Mapping[int, Filled]]
    )
    """Columns, by their table's oid, that get values of sequences when rows are written."""
    fails: SqlError | None = None
    """What its constants come to: it cannot be planned."""
    read: ReadLiterals | None = None
    """Literals that settings or the clock have decided about."""

    @property
    def planned(self) -> Bound:
        """The statement, to be run; raises SqlError if it cannot be."""
        if self.fails is not None:
            raise replace(self.fails)
        return self.bound
