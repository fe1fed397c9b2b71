"""State of one `bind` call: column ids, parameters, scopes, positions, and names looked up.

INVARIANTS
  B1  a column id is given out once in a statement (P1 of `nodes.py`).
  B2  a parameter has one type in a statement. The first use that needs a type decides; a later
      conflicting use is 42P08.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Final

from sql.binder.catalog_results import CatalogResults
from sql.binder.collation import Collation
from sql.binder.scanned_tables import ScannedTable
from sql.catalog.acl import OWNER
from sql.catalog.catalog import Catalog, Column, NameDependency, Table, whole_catalog
from sql.catalog.objects import Domain
from sql.catalog.view_reads import ViewReads
from sql.errors import SqlError
from sql.functions.postgresql_settings import NoSettings, SessionSettings
from sql.parser.syntax import Node, offset_to_position
from sql.plan.nodes import (
    Aggregate,
    ColumnId,
    ColumnRef,
    Const,
    CteId,
    Expr,
    Frame,
    Param,
    Plan,
    PlanColumn,
    SetCall,
    SortKey,
    WindowCall,
)
from sql.statements.bound import ModifyingCte
from sql.statements.locking import LockingQuery
from sql.statements.runtime_parameters import RowDefault, RuntimeParameter
from sql.types.bpchar import column_type
from sql.types.datetime.timezones import find_zone
from sql.types.sql_type import BOOL, UNKNOWN, SqlType, format_type, held_type
from sql.types.styles import DEFAULT_STYLES, Styles

PARAMETERS_MAX: Final = 65_535

RUNTIME_PARAMETER_BASE: Final = 1 << 20
"""Parameters above it are runtime parameters; they get their final numbers at the end."""


@dataclass(frozen=True, slots=True)
class BindContext:
    """Everything that a statement's meaning depends on besides its text.

    `now`: microseconds, the transaction's start: now() and its kin become constants, so a statement
    that uses it must be bound again in every transaction (`Prepared.uses_now`). `settings`: what
    `current_setting(name)` of a constant name and pg_settings show. `parameters_fixed`: the
    statement runs now, so it has the parameters whose types were given and no others.
    `logical_now`: the timestamp to read at. `started_at`: the server's start. `ports`: the client's
    and the server's end. `exported`: what pg_export_snapshot() answers, None in a subtransaction.
    """

    catalog: Catalog
    search_path: Sequence[str]
    now: int
    timezone: str = "UTC"
    styles: Styles = DEFAULT_STYLES
    user: str = "meridian"
    user_oid: int = OWNER
    database: str = "meridian"
    session_user: str | None = None
    login: str = ""
    """The name that the client connected under, if it is not `user`."""
    backend_pid: int = 0
    version: str = "PostgreSQL 18.0 (Meridian)"
    statement_now: int | None = None
    settings: SessionSettings = field(default_factory=NoSettings)
    parameters_fixed: bool = False
    logical_now: int = 0
    started_at: int = 0
    ports: tuple[int | None, int | None] = (None, None)
    exported: str | None = ""
    temporary: str = ""
    """The schema of the session's temporary relations, whether it exists yet or not."""
    temporary_first: bool = False
    """The temporary schema stands first in `search_path` although the setting does not name it."""
    view_reads: ViewReads = ViewReads.AUTO

    @property
    def creation_path(self) -> Sequence[str]:
        """The search path for creating relations that are not temporary."""
        return self.search_path[1:] if self.temporary_first else self.search_path


@dataclass(slots=True)
class Binding:
    """The mutable state of one call of `bind`."""

    context: BindContext
    bind_expression: "Callable[[Binding, Scope, Node], Expr]"
    bind_query: "Callable[[Binding, Node, Scope | None], SelectResult]"
    bind_modifying: "Callable[[Binding, Scope, Node, Node], SelectResult]"
    """A data-modifying query of a WITH clause: scope, query, clause."""
    parameters: list[SqlType | None]
    next_id: int = 0
    uses_now: bool = False
    uses_session: bool = False
    tells_timestamp: bool = False
    tables: dict[tuple[str, str], Table] = field(default_factory=dict[tuple[str, str], Table])
    origins: dict[ColumnId, tuple[int, int]] = field(
        default_factory=dict[ColumnId, tuple[int, int]]
    )
    """Columns that are a plain column of a table: its oid and number."""
    domains: dict[ColumnId, Domain] = field(default_factory=dict[ColumnId, Domain])
    """The domains of columns that are not plain columns of a table (`expression_domain.py`)."""
    row_asked: "Node | None" = None
    """The target whose row a subquery yields as JSON (`json_row_subqueries.py`), until it does."""
    rows: dict[int, Expr] = field(default_factory=dict[int, Expr])
    """JSON of rows that json_agg() gets, by identity; other JSON looks like it."""
    casts: dict[int, tuple[Expr, Domain | None]] = field(
        default_factory=dict[int, tuple[Expr, Domain | None]]
    )
    """The domain of a cast's result, by its identity; the expression is kept alive."""
    shown: CatalogResults = field(default_factory=CatalogResults)
    collated: dict[int, tuple[Expr, Collation | None]] = field(
        default_factory=dict[int, tuple[Expr, Collation | None]]
    )
    """The collation of an expression under COLLATE, or of a call over one (`collations.py`), by its
    identity; the expression is kept alive.
    """
    collations: dict[ColumnId, Collation] = field(default_factory=dict[ColumnId, Collation])
    """Columns whose collation is not the default one."""
    inexact: set[ColumnId] = field(default_factory=set[ColumnId])
    """Numeric columns that were rounded already (N2 of `numeric.py`)."""
    beside: set[Expr] = field(default_factory=set[Expr])
    """Operands of ANY and ALL of the outer query, which are compared inside the subquery."""
    places: dict[int, tuple[Expr, int]] = field(default_factory=dict[int, tuple[Expr, int]])
    """Where an expression stands in the text, by its identity; the expression is kept alive."""
    look_ups: set[NameDependency] = field(default_factory=set[NameDependency])
    """Names that were looked up, and what they were found to be (Q3 of `catalog_lookup.py`)."""
    uses: set[NameDependency] = field(default_factory=set[NameDependency])
    """Definitions that the statement's plan is made of, besides those of its tables (Q3)."""
    top_with: "Node | None" = None
    """The WITH clause of the statement itself: only there a query may modify data."""
    parts: "list[ModifyingCte]" = field(default_factory=list[Any])
    """Data-modifying WITH queries, in the order of the text (`modifying_ctes.py`)."""
    explains: bool = False  # the statement's plan is shown, as if it locked nothing
    locking: "list[LockingQuery]" = field(default_factory=list[Any])
    """Queries that lock rows (`locked_rows.py`)."""
    work_tables: set[CteId] = field(default_factory=set[CteId])
    """The recursive queries whose recursive terms are being bound."""
    outer_bound: set[CteId] = field(default_factory=set[CteId])
    """WITH queries that refer to an outer query or a recursion, directly or through another one."""
    substitutes: list[tuple[Expr, ...]] = field(default_factory=list[tuple[Expr, ...]])
    """The values of $1, $2 .. in the body of a SQL-bodied function (`sql_functions.py`)."""
    supplied: list[RuntimeParameter] = field(default_factory=list[RuntimeParameter])
    """Runtime parameters: values that the session computes before the statement runs."""
    filled: dict[int, dict[int, RowDefault]] = field(default_factory=dict[int, Any])
    """Per-row defaults, by table oid and ordinal, of columns that get sequence values."""
    taken: list[ColumnRef] | None = None
    """The columns that stand for the next calls of nextval(), in their order (`filled_plan`)."""
    inserted: set[int] = field(default_factory=set[int])
    """Tables, by oid, that the statement inserts into."""
    pinned: Mapping[tuple[str, str], tuple[int, tuple[str, ...], tuple[int, ...]]] | None = None
    """While a view's text is bound: the relation of each name, by schema as written and name."""
    recorded: dict[tuple[str, str], tuple[int, tuple[str, ...], tuple[int, ...]]] | None = None
    """For CREATE VIEW: the same mapping, filled as names are resolved."""
    kept: bool = False
    """The text being bound is stored with a table and is read in the default styles."""
    literals: "dict[int, tuple[Const, Node]]" = field(default_factory=dict[int, Any])
    """The node of each untyped literal, by its identity; the literal is kept alive."""
    read: "list[tuple[Node, Const]]" = field(default_factory=list[Any])
    """Literals whose value depended on settings or on the clock (`setting_literals.py`)."""
    read_clock: bool = False  # the value of some literal depended on the clock
    makes_rows: bool = False
    """Rows are bound one by one, so a default belongs to exactly one row."""
    assigns: bool = False  # a list of SET is being bound
    acts_in: "Node | None" = None
    """The SELECT whose target list may call functions for each row (`row_calls.py`)."""
    acts: bool = False
    """The statement contains such a per-row call."""
    sets_for_rows: bool = False
    reads_settings: bool = False
    """The statement contains set_config() for each row; it contains current_setting()."""
    undetermined: dict[int, int] = field(default_factory=dict[int, int])
    """The positions of parameters whose type was unknown and not needed there (B2)."""

    @property
    def of_kept_text(self) -> bool:
        """Whether the text being bound is that of a table or view, not the client's."""
        return self.kept or self.pinned is not None

    def clock(self) -> tuple[int, tzinfo]:
        """The transaction's start and the session's time zone, for a literal that needs them."""
        self.read_clock = True
        zone = find_zone(self.context.timezone)
        assert zone is not None, "SET has looked the zone up"
        return self.context.now, zone

    def expression(self, scope: "Scope", node: "Node") -> Expr:
        """Bind an expression: `expressions/expression.py`, reached from the modules that it
        calls.
        """
        return self.bind_expression(self, scope, node)

    def read_catalog(self) -> None:
        """Record that the statement reads the catalog, not just some names in it (Q3)."""
        self.look_ups.add(whole_catalog(self.context.catalog))

    def fresh(self, context: BindContext) -> "Binding":
        """A new binding for a separate statement under that context."""
        return Binding(context, self.bind_expression, self.bind_query, self.bind_modifying, [])

    def new_id(self) -> ColumnId:
        """A fresh column id (B1)."""
        self.next_id += 1
        return ColumnId(self.next_id)

    def new_column(self, name: str, type_: SqlType) -> PlanColumn:
        """A fresh column."""
        self.next_id += 1
        return PlanColumn(ColumnId(self.next_id), name, type_)

    def table_column(self, column: Column) -> PlanColumn:
        """A fresh column for one of a table."""
        made = self.new_column(column.name, column.type)
        if column.collation:
            self.collations[made.id] = Collation(column.collation)
        return made

    def reference(self, column: PlanColumn, place: int) -> ColumnRef:
        """An expression for a column, recorded with its position."""
        ref = ColumnRef(column.id, column.type)
        self.places[id(ref)] = (ref, place)
        return ref

    def origin(self, id_: ColumnId) -> Column | None:
        """The table column that this plan column passes through unchanged, if it does."""
        oid, number = self.origins.get(id_, (0, 0))
        table = self.context.catalog.by_oid(oid) if oid else None
        # A table that is just being altered has columns that the catalog's does not have.
        return None if table is None else table.column_numbered(number)

    def domain(self, id_: ColumnId) -> Domain | None:
        """The domain of a column."""
        known = self.domains.get(id_)
        origin = self.origin(id_) if known is None else None
        return known if origin is None else origin.domain

    def follow(self, made: ColumnId, column: ColumnId) -> None:
        """Copy what is known of `column` to `made`, which is the same column under another id."""
        if column in self.origins:
            self.origins[made] = self.origins[column]
        self.shown.set_column(made, self.shown.of_column(column))
        if column in self.domains:
            self.domains[made] = self.domains[column]
        if column in self.collations:
            self.collations[made] = self.collations[column]
        if column in self.inexact:
            self.inexact.add(made)

    def place(self, expr: Expr) -> int | None:
        """The position of the expression in the statement's text."""
        found = self.places.get(id(expr))
        return None if found is None else offset_to_position(found[1])

    def parameter(self, index: int, place: int) -> Param:
        """`$index`, with its type as far as it is known."""
        limit = len(self.parameters) if self.context.parameters_fixed else PARAMETERS_MAX
        if not 1 <= index <= limit:
            raise SqlError("42P02", f"there is no parameter ${index}", offset_to_position(place))
        while len(self.parameters) < index:
            self.parameters.append(None)
        known = self.parameters[index - 1]
        param = Param(index, UNKNOWN if known is None else held_type(known))
        if known is not None and known.name != param.type.name:
            self.shown.note(param, known)
        self.places[id(param)] = param, place
        return param

    def give_type(self, param: Param, shown: SqlType, held: SqlType) -> Param:
        """Give an untyped parameter a type that only catalogs have (B2)."""
        self.parameters[param.index - 1] = shown
        made = Param(param.index, held)
        self.shown.note(made, shown)
        return made

    def resolve_parameter(self, param: Param, type_: SqlType) -> Param:
        """Give an untyped parameter its type (B2)."""
        known = self.parameters[param.index - 1]
        if known is None:
            self.parameters[param.index - 1] = known = column_type(type_)
        elif known.name != type_.name:
            raise SqlError(
                "42P08",
                f"inconsistent types deduced for parameter ${param.index}",
                self.place(param),
                detail=f"{format_type(known)} versus {format_type(type_)}",
            )
        return Param(param.index, known)

    def parameter_types(self) -> tuple[SqlType, ...]:
        """The types of all parameters.

        Raises 42P18 for a parameter whose type nothing decided. Raises 42P08 for one that also
        stands where nothing decides it.
        """
        types: list[SqlType] = []
        for index, type_ in enumerate(self.parameters, 1):
            message = f"could not determine data type of parameter ${index}"
            if type_ is None:
                raise SqlError("42P18", message)
            if index in self.undetermined:
                raise SqlError("42P08", message, offset_to_position(self.undetermined[index]))
            types.append(type_)
        return tuple(types)


@dataclass(frozen=True, slots=True)
class WindowDefinition:
    """The contents of the parentheses of OVER or WINDOW."""

    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    framed: bool
    """Whether the statement writes a frame, other than by spelling out the default."""


@dataclass(slots=True, eq=False)
class NullSupplyingSide:
    """The null-supplying side of an outer join. `ids`: the columns of its query level."""

    plan: Plan
    ids: set[ColumnId]
    there: PlanColumn | None = None
    """A column that is true in real rows and NULL in null-extended ones; None until it is
    demanded.
    """

    def asked(self, binding: Binding, place: int) -> ColumnRef:
        """The column that is NULL in a null-extended row, created on first demand."""
        if self.there is None:
            self.there = binding.new_column("there", BOOL)
            self.ids.add(self.there.id)
        return binding.reference(self.there, place)

    def is_of(self, column: ColumnId) -> bool:
        """Whether the column is this side's presence column."""
        return self.there is not None and self.there.id == column


@dataclass(frozen=True, slots=True)
class GroupingCall:
    """A GROUPING call: its column, its arguments' positions, and whether HAVING contains it."""

    column: PlanColumn
    places: tuple[int | None, ...]
    in_having: bool


@dataclass(slots=True)
class FromItem:
    """An entry of FROM (a range table entry).

    `columns` are expressions over the plan's columns: a merged column of FULL JOIN USING is a
    COALESCE. A join without an alias has no name; it only exposes the names of its parts.
    """

    name: str | None
    columns: Sequence[tuple[str, Expr]]
    schema: str | None = None
    relation: str | None = None
    """The table's own name, when an alias hides it."""
    declared: Sequence[str] = ()
    """The column names in its row type, where an alias may rename them."""
    names_visible: bool = True
    columns_visible: bool = True
    lateral_only: bool = False
    lateral_ok: bool = True
    """Whether a LATERAL reference to it is legal; not from the right side of RIGHT and FULL
    joins.
    """
    unexpanded: Sequence[tuple[str, Expr]] = ()
    """Columns that a name finds, but `*` does not show."""
    whole: Expr | None = None
    """The value of the bare name, where it is not a whole row."""
    is_target: bool = False
    """The table that an UPDATE or DELETE changes, which its FROM cannot see."""
    nullable: bool = False
    """Whether an outer join may null-extend it."""
    side: NullSupplyingSide | None = None
    """The innermost such join's side; None if its plan is not available."""
    scanned: ScannedTable | None = None
    again: bool = False
    """A second name for another item: OLD and NEW, or a join's alias."""

    @property
    def is_lateral(self) -> bool:
        """Whether it could be referred to if LATERAL were written (rte_visible_if_lateral)."""
        return self.lateral_only and self.lateral_ok and not self.is_target


@dataclass(slots=True)
class Scope:
    """One query level. `clause` names the part being bound, as messages call it."""

    parent: "Scope | None" = None
    items: list[FromItem] = field(default_factory=list[FromItem])
    ctes: dict[str, "SelectResult"] = field(default_factory=dict[str, "SelectResult"])
    ids: set[ColumnId] = field(default_factory=set[ColumnId])
    clause: str = "SELECT"
    aggregates: dict[Aggregate, PlanColumn] = field(default_factory=dict[Aggregate, PlanColumn])
    in_aggregate: bool = False
    acts: bool = False
    """The expression being bound is computed once for each row that the statement yields."""
    reads_itself: bool = False
    """Whether this level is a recursive term, with its own recursive query in FROM."""
    windows: dict[WindowCall, PlanColumn] = field(default_factory=dict[WindowCall, PlanColumn])
    named_windows: "dict[str, WindowDefinition]" = field(
        default_factory=dict[str, "WindowDefinition"]
    )
    groupings: dict[tuple[Expr, ...], GroupingCall] = field(
        default_factory=dict[tuple[Expr, ...], GroupingCall]
    )
    """GROUPING calls by their arguments."""
    set_calls: dict[SetCall, PlanColumn] = field(default_factory=dict[SetCall, PlanColumn])
    """Set-returning functions of the target list, a column each."""
    grouped_sets: dict[ColumnId, SetCall] = field(default_factory=dict[ColumnId, SetCall])
    """Set-returning functions that are GROUP BY keys, by their columns."""
    without_sets: str | None = None
    """The construct around that forbids set-returning functions: CASE or COALESCE."""
    set_ordinality: PlanColumn | None = None
    window_part: str | None = None
    """`arguments` or `definition`, while such a part of a window is bound."""
    sides: list[NullSupplyingSide] = field(default_factory=list[NullSupplyingSide])
    """The null-supplying sides of outer joins in FROM."""
    scanned: list[ScannedTable] = field(default_factory=list[ScannedTable])
    lateral_active: bool = False
    lateral_used: bool = False
    merge_action: Expr | None = None
    """The value of MERGE_ACTION() in RETURNING of MERGE."""

    def levels(self) -> Iterator["Scope"]:
        """This level, then the outer levels."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def visible(self) -> Iterator[FromItem]:
        """Items that expressions of this level may use now."""
        for item in self.items:
            if not item.lateral_only or self.lateral_active:
                yield item

    def add(self, items: Sequence[FromItem]) -> None:
        """Make items visible; 42712 when a name is there already."""
        check_conflicts(self.items, items)
        self.items.extend(items)


def _distinct(left: FromItem, right: FromItem) -> bool:
    return (
        left.schema is not None
        and right.schema is not None
        and left.relation is None
        and right.relation is None
        and left.schema != right.schema
    )


def check_conflicts(left: Sequence[FromItem], right: Sequence[FromItem]) -> None:
    """42712 when both sides have an item of one name; tables of different schemas may share it."""
    for item in right:
        if not item.names_visible or item.name is None:
            continue
        for other in left:
            if other.names_visible and other.name == item.name and not _distinct(other, item):
                raise SqlError("42712", f'table name "{item.name}" specified more than once')


@dataclass(slots=True)
class SelectResult:
    """A bound query: its plan, columns, the node behind each column, and columns still unknown."""

    plan: Plan
    columns: tuple[PlanColumn, ...]
    nodes: list[Node]
    unknown: dict[int, Expr] = field(default_factory=dict[int, Expr])
    returns: bool = True
    """Whether it returns rows: false for a data-modifying WITH query without RETURNING."""
    shared: CteId | None = None
    """The shared WITH query that a use scans; None if each use inlines its plan."""
    unexpanded: tuple[PlanColumn, ...] = ()
    """Further columns of the scanned relation, which `*` does not show."""
    volatile_uses: int = 0
    """How often it is read, if it is volatile and not shared."""
