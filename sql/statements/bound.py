"""Bound statements, as the binder makes and a session executes them: `BoundStatement`.

One dataclass per kind. Data-modifying statements carry a `source` plan with fixed output columns:
    Insert   the table's columns, in order, with their exact types (defaults filled in)
    Update   source, index (identity of the old row), then the table's columns with the new values,
             then the old values of the columns that are assigned (`old`)
    Delete   source, index, then the old values of some columns (`old`; with RETURNING: of all)
    Merge    source, index (NULL for INSERT), action (int4: `MergeAction`), then the table's columns
             with the new values (DELETE: the old ones), then all old values (INSERT: NULL)
    all      and then the `extras`: values of other tables' columns, for RETURNING
The session checks NOT NULL on the rows (23502); casts in the plan check lengths and ranges.
`returning` is a plan over `Scan(relation="new")` whose input has the table's columns (DELETE: as
they were), with `returning_old` once more as they were before, and then the extras.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import TypeAlias

from sql.catalog.acl import ObjectPrivileges
from sql.catalog.catalog import (
    SYSTEM_TIMELINE,
    CheckConstraint,
    Column,
    ForeignKey,
    Key,
    NameDependency,
    Table,
)
from sql.catalog.objects import (
    CatalogObject,
    Comment,
    IndexDefinition,
    SequenceDefinition,
    StoredQuery,
    Subject,
    ViewDefinition,
)
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.plan.nodes import Expr, Plan, PlanColumn, Project, RelationId, Values
from sql.statements.change_streams import ChangeEnvelope, ChangeOrder
from sql.statements.copy_options import CopyOptions
from sql.statements.ddl import (
    ChangeObjects,
    ChangePrivileges,
    CreateObject,
    CreateSequence,
    Redefinition,
    Validation,
)
from sql.statements.explain_options import ExplainOptions
from sql.statements.literals import ResolvedLiterals
from sql.statements.locking import LockingQuery, LockTables
from sql.statements.maintenance import MaintenanceStatement
from sql.statements.runtime_parameters import RowDefault, RuntimeParameter
from sql.statements.session import (
    Discard,
    NotificationStatement,
    ResetVariable,
    SetConstraints,
    SetVariable,
    ShowVariable,
    TransactionControl,
)
from sql.statements.sources import FeedingStatement
from sql.statements.timelines import (
    AdvanceReadHold,
    AdvanceTimeline,
    CreateReadHold,
    CreateTimeline,
    DropReadHold,
    DropTimeline,
)
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
    """A call of a function with side effects, for each row for which `guard` is true, or for all.
    Arguments are over the columns of the plan and of the calls before it. `sequence`: the one that
    the first argument names, if known. `column`: its result.
    """

    name: str
    sequence: SequenceDefinition | None
    args: tuple[Expr, ...]
    guard: Expr | None
    column: PlanColumn


@dataclass(frozen=True, slots=True)
class RowCalls:
    """Calls for each row of a plan, in turn, and the output: `after` is a plan over
    `Scan(relation="called")`, which has the plan's columns and those of the calls.
    """

    calls: tuple[RowCall, ...]
    after: Project


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """SELECT, VALUES, WITH. `tables`: those that it reads. `as_of`: a timestamp expression
    (timestamptz or int8). `locking`: its parts that lock rows.
    """

    plan: Plan
    columns: tuple[OutputColumn, ...]
    tables: tuple[Table, ...]
    as_of: Expr | None = None
    as_of_at_least: bool = False
    calls: RowCalls | None = None
    locking: tuple[LockingQuery, ...] = ()


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
class OnConflict:
    """ON CONFLICT. `arbiters`: indexes into `table.keys`; `indexes`: oids of its other unique
    indexes. A row with the key of an existing row is not inserted.

    `update`: the new version of the existing row, for DO UPDATE. It is a plan over
    `Scan(relation="conflicts")`, whose input has one row a conflict: its number (int8), the
    existing row's columns, and those of the proposed row. It outputs the number and the table's
    columns. `tables`: those that this plan reads. `assigned`: the ordinals that it assigns.
    """

    arbiters: tuple[int, ...]
    update: Plan | None = None
    assigned: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()
    indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Modify:
    """INSERT, UPDATE, DELETE, MERGE. `tables`: those that `source` reads (empty for INSERT VALUES:
    blind); `returning_tables`: those that `returning` reads.

    `old`: the ordinals whose old values are among the source's columns. `extras`: how many further
    columns it has, for RETURNING. `xmins`: the places of `returning`'s output that show xmin of the
    new rows, where the plan has NULL.
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
    xmins: tuple[int, ...] = ()
    conflict: OnConflict | None = None
    view_checks: ViewChecks | None = None
    calls: RowCalls | None = None
    locking: tuple[LockingQuery, ...] = ()
    """Its parts that lock rows, and run first."""


@dataclass(frozen=True, slots=True)
class ModifyingCte:
    """A data-modifying WITH query; other parts read its RETURNING rows as `relation`."""

    relation: RelationId
    modify: Modify


@dataclass(frozen=True, slots=True)
class ModifyingWith:
    """A statement with data-modifying WITH queries. `parts` in the order of their effects;
    `before`: how many of them come before `main`. All see the same snapshot of the tables.
    """

    parts: tuple[ModifyingCte, ...]
    main: BoundQuery | Modify
    before: int
    locking: tuple[LockingQuery, ...] = ()

    @property
    def modifications(self) -> tuple[Modify, ...]:
        """All parts that write, `main` among them."""
        found = tuple([part.modify for part in self.parts])
        return found if isinstance(self.main, BoundQuery) else (*found, self.main)


@dataclass(frozen=True, slots=True)
class CopyIn:
    """COPY t (columns) FROM STDIN. `ordinals`: the table's columns in the data, in its order.
    `defaults`: values of the others. `where`: a plan over `Scan(relation="new")`: what to insert.
    """

    table: Table
    ordinals: tuple[int, ...]
    options: CopyOptions
    defaults: Values | None = None
    where: Plan | None = None
    freeze: bool = False  # the table must be new


@dataclass(frozen=True, slots=True)
class CopyOut:
    """COPY t TO STDOUT or COPY (query) TO STDOUT; `table`: t."""

    query: BoundQuery
    options: CopyOptions
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE: the changes of `query` before `up_to` (int8 or timestamptz). `columns`: of the
    changes. `snapshot`: its rows come first. `views`: those that the query is made of.

    `is_compared`: the answers at two timestamps tell what has changed between them. Otherwise the
    query over the rows that came and went with a commit is what came and went of its answer.
    """

    query: BoundQuery
    columns: tuple[OutputColumn, ...]
    snapshot: bool = True
    progress: bool = False
    up_to: Expr | None = None
    up_to_place: int | None = None
    views: tuple[ViewDefinition, ...] = ()
    is_compared: bool = False
    envelope: ChangeEnvelope | None = None
    order: ChangeOrder | None = None


@dataclass(frozen=True, slots=True)
class CopySubscription:
    """COPY (SUBSCRIBE ..) TO STDOUT."""

    subscribe: Subscribe
    options: CopyOptions


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The session gives the table its oid and shard. `exists`: IF NOT EXISTS found one."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    exists: bool = False
    timeline: str = SYSTEM_TIMELINE.name
    history_us: int | None = None
    keys: tuple[Key, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
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
    parameters: tuple[str, ...] = ()
    unlogged: bool = False
    notices: tuple[str, ...] = ()
    """That some of it changes nothing."""
    query: StoredQuery | None = None
    """Of a materialized view."""
    change_feed: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE TABLE AS, SELECT INTO, CREATE MATERIALIZED VIEW (`is_view`): the rows of `source`,
    which reads `tables`, as `table` stores them.
    """

    table: CreateTable
    source: Plan
    tables: tuple[Table, ...]
    with_data: bool = True
    calls: RowCalls | None = None
    locking: tuple[LockingQuery, ...] = ()
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class RefreshMaterializedView:
    """REFRESH MATERIALIZED VIEW: the rows of `source`, which reads `tables`, replace those of
    `table`; None: there are none. `after`: the table's definition then. `validations`: of the new
    rows, unless `is_concurrent`: then they are checked as rows that are inserted.
    """

    table: Table
    after: Table
    source: Plan | None = None
    tables: tuple[Table, ...] = ()
    validations: tuple[Validation, ...] = ()
    is_concurrent: bool = False
    calls: RowCalls | None = None
    locking: tuple[LockingQuery, ...] = ()
    difference: Plan | None = None
    """Of a view that follows its inputs: the rows that only one of stored rows and query has."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE; each table once. `restarted`: the sequences that RESTART IDENTITY restarts.
    `cascades`: the names of tables that CASCADE adds, for the notices.
    """

    tables: tuple[Table, ...]
    restarted: "ChangeObjects | None" = None
    cascades: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE. `missing`: the notices of IF EXISTS. `changed`: tables that lose foreign keys by
    CASCADE; `cascades` names them for the notice.
    """

    tables: tuple[Table, ...]
    missing: tuple[str, ...] = ()
    changed: tuple[Redefinition, ...] = ()
    cascades: tuple[str, ...] = ()
    objects: tuple[CatalogObject, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA. `exists`: IF NOT EXISTS found one; notice only. `owner`: of AUTHORIZATION.
    `elements`: the statements that create its objects.
    """

    name: str
    exists: bool = False
    owner: int | None = None
    elements: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP SCHEMA. `tables`, `objects`: dropped with it by CASCADE. `changed`: tables that lose
    foreign keys, defaults or columns. `outside`: objects of other schemas that are dropped, too:
    what goes with the columns, and views. `told` names both in the notice.
    """

    names: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    missing: tuple[str, ...] = ()
    objects: tuple[CatalogObject, ...] = ()
    changed: tuple[Redefinition, ...] = ()
    told: tuple[str, ...] = ()
    outside: tuple[CatalogObject, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, ALTER SCHEMA RENAME: tables that get another definition.

    `new_schema`, `old_schema`: created before, dropped after. `missing`: the name that IF EXISTS
    did not find. `rewrite`: source, index and all columns of the new table, for rows that replace
    old ones. `validations`: of the new table. `notices`: SQLSTATE, text, detail. `fresh`: oids of
    sequences that restart.
    """

    tables: tuple[Redefinition, ...] = ()
    new_schema: str | None = None
    old_schema: str | None = None
    missing: str | None = None
    tag: str = "ALTER TABLE"
    objects: tuple[CatalogObject, ...] = ()
    dropped: tuple[CatalogObject, ...] = ()
    parents: tuple[Table, ...] = ()
    """Other tables of foreign keys that are new or validated; they are touched."""
    rewrite: Plan | None = None
    unused: str = ""
    """The command that PostgreSQL refuses while deferred checks of the tables are pending."""
    sequences: tuple[tuple[int, SequenceDefinition], ...] = ()
    """Sequences of new serial and identity columns, by ordinal in the new table."""
    validations: tuple[Validation, ...] = ()
    fresh: frozenset[int] = frozenset()
    notices: tuple[tuple[str, str, str | None], ...] = ()
    comments: tuple[Comment, ...] = ()
    """Comments on objects known by name, under their new names."""
    rights: tuple[tuple[Subject, ObjectPrivileges], ...] = ()
    unique_index: IndexDefinition | None = None
    """A new one that is no key; the session allocates its oid."""
    recomputed: tuple[IndexDefinition, ...] = ()
    """Unique indexes whose rows may have other values now."""


@dataclass(frozen=True, slots=True)
class ExplainTimestamp:
    """EXPLAIN TIMESTAMP FOR a query, which is not executed. `json`: FORMAT JSON."""

    query: BoundQuery
    json: bool = False


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a statement with a plan, which ANALYZE executes."""

    statement: "BoundQuery | Modify | ModifyingWith | CreateTableAs"
    options: ExplainOptions = field(default_factory=ExplainOptions)
    views: tuple[str, ...] = ()  # how it reads each materialized view that follows its inputs

    @property
    def runs(self) -> "BoundQuery | Modify | ModifyingWith | CreateTableAs | None":
        """The explained statement, as if it stood alone."""
        return self.statement if self.options.analyze else None


@dataclass(frozen=True, slots=True)
class EmptyStatement:
    """Nothing but blanks and comments."""


Definition: TypeAlias = (
    CreateTable | DropTable | CreateSchema | DropSchema | AlterTable | CreateTimeline
    | DropTimeline | CreateReadHold | AdvanceReadHold | DropReadHold | CreateSequence
    | ChangeObjects | CreateObject | ChangePrivileges | FeedingStatement
)  # fmt: skip
UtilityStatement: TypeAlias = (
    Definition | AdvanceTimeline | CopyIn | CopyOut | CreateTableAs | Explain | ExplainTimestamp
    | LockTables | MaintenanceStatement | RefreshMaterializedView | Subscribe | CopySubscription
    | Truncate
)  # fmt: skip
BoundStatement: TypeAlias = (
    UtilityStatement | BoundQuery | Modify | ModifyingWith | TransactionControl | SetVariable
    | ShowVariable | ResetVariable | SetConstraints | Discard | NotificationStatement
    | EmptyStatement
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParameterizedStatement:
    """A bound statement with the resolved types of its parameters, $1 first."""

    bound: BoundStatement
    parameters: tuple[SqlType, ...]
    tag: str
    """The first word or words of the command tag, e.g. `SELECT`, `INSERT 0`, `CREATE TABLE`."""
    uses_now: bool = False
    """The transaction's start is a constant in it: bind again in another transaction."""
    rebind: bool = False
    """It names sessions' state (user, settings, pid): bind again when that changes."""
    tells_timestamp: bool = False
    """It answers the transaction's timestamp, which must not move then."""
    look_ups: frozenset[NameDependency] = frozenset()
    uses: frozenset[NameDependency] = frozenset()
    """Its name dependencies besides its tables, and the uses (Q3 of `catalog_lookup.py`)."""
    supplied: tuple[RuntimeParameter, ...] = ()
    """Values that the session finds before it runs: parameters after the client's."""
    filled: Mapping[int, Mapping[int, RowDefault]] = field(
        default_factory=dict[int, Mapping[int, RowDefault]]
    )
    """Columns, by their table's oid, that get values of sequences when rows are written."""
    fails: SqlError | None = None
    """What its constants come to: it cannot be planned."""
    read: ResolvedLiterals | None = None
    """Literals that settings or the clock have decided about."""

    @property
    def planned(self) -> BoundStatement:
        """The statement to execute; raises SqlError if it cannot be executed."""
        if self.fails is not None:
            raise replace(self.fails)
        return self.bound
