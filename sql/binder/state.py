"""What binding one statement carries along: identifiers, parameters, places, what was read.

INVARIANTS
  B1  column ids are given out once in a statement (P1 of `nodes.py`).
  B2  a parameter has one type in a statement; the first use that needs a type decides (42P08 after
      it).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Final

from sql.catalog.catalog import Catalog, Column, LookUp, Table
from sql.catalog.objects import Domain
from sql.errors import SqlError
from sql.parser.syntax import Node, at
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
from sql.statements.bound import Part
from sql.statements.supplied import Filled, Supplied
from sql.types.bpchar import column_type
from sql.types.datetime.timezones import find_zone
from sql.types.sql_type import BOOL, UNKNOWN, SqlType, display
from sql.types.styles import PLAIN, Styles

PARAMETERS_MAX: Final = 65_535

SUPPLIED_BASE: Final = 1 << 20
"""Parameters above it are supplied by the session; they are numbered at the end."""


@dataclass(frozen=True, slots=True)
class BindContext:
    """What a statement's meaning depends on besides its text.

    `now`: microseconds, the transaction's start: now() and its kin become constants, so a statement
    that uses it must be bound again in every transaction (`Prepared.uses_now`). `settings`: what
    `current_setting(name)` of a constant name answers, lower-case names. `parameters_fixed`: the
    statement runs now, so it has the parameters whose types were given and no others.
    `logical_now`: the timestamp that the statement reads at. `started_at`: when the server was
    started. `ports`: the client's and the server's end of the connection. `exported`: what
    pg_export_snapshot() answers, None in a subtransaction.
    """

    catalog: Catalog
    search_path: Sequence[str]
    now: int
    timezone: str = "UTC"
    styles: Styles = PLAIN
    user: str = "meridian"
    database: str = "meridian"
    session_user: str | None = None
    login: str = ""
    """The name that the client connected under, if that is not `user`."""
    backend_pid: int = 0
    version: str = "PostgreSQL 18.0 (Meridian)"
    statement_now: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters_fixed: bool = False
    logical_now: int = 0
    started_at: int = 0
    ports: tuple[int | None, int | None] = (None, None)
    exported: str | None = ""
    temporary: str = ""
    """The schema of the session's temporary relations, whether it is there or not."""
    temporary_first: bool = False
    """It stands at the beginning of `search_path` without being named there."""

    @property
    def creation_path(self) -> Sequence[str]:
        """Where what is not temporary may be made."""
        return self.search_path[1:] if self.temporary_first else self.search_path


@dataclass(frozen=True, slots=True)
class Collation:
    """The collation of an expression. `place`: of the COLLATE that names it there. `of_names`: it
    is "C" because something in it is a `name`.
    """

    name: str
    place: int | None = None
    of_names: bool = False


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
    tables: dict[tuple[str, str], Table] = field(default_factory=dict[tuple[str, str], Table])
    origins: dict[ColumnId, tuple[int, int]] = field(
        default_factory=dict[ColumnId, tuple[int, int]]
    )
    """Columns that are a plain column of a table: its oid and number."""
    domains: dict[ColumnId, Domain] = field(default_factory=dict[ColumnId, Domain])
    """Columns of a domain that are no plain column of a table (`expression_domain.py`)."""
    row_asked: "Node | None" = None
    """The target whose row a subquery yields as json; None once it does (`bind_row_subqueries`)."""
    rows: dict[int, Expr] = field(default_factory=dict[int, Expr])
    """The json of rows that are arguments of aggregates, by identity: json_agg() tells them from
    what row_to_json(t) has made, which is json like any other."""
    casts: dict[int, tuple[Expr, Domain | None]] = field(
        default_factory=dict[int, tuple[Expr, Domain | None]]
    )
    """The domain of what a cast has made, by its identity; the expression is kept alive."""
    collated: dict[int, tuple[Expr, Collation | None]] = field(
        default_factory=dict[int, tuple[Expr, Collation | None]]
    )
    """The collation of what COLLATE, or a call of it, has made (`collations.py`), by its identity;
    the expression is kept alive."""
    collations: dict[ColumnId, Collation] = field(default_factory=dict[ColumnId, Collation])
    """Columns of another collation than the default one."""
    inexact: set[ColumnId] = field(default_factory=set[ColumnId])
    """Numeric columns that were rounded already (N2 of `numeric.py`)."""
    beside: set[Expr] = field(default_factory=set[Expr])
    """Operands of ANY and ALL, of the query outside, that are compared in the subquery."""
    places: dict[int, tuple[Expr, int]] = field(default_factory=dict[int, tuple[Expr, int]])
    """Where an expression stands in the text, by its identity; the expression is kept alive."""
    look_ups: set[LookUp] = field(default_factory=set[LookUp])
    """Names that the meaning rests on (`catalog_lookup.py`)."""
    top_with: "Node | None" = None
    """The WITH clause of the statement itself: only there a query may modify data."""
    parts: "list[Part]" = field(default_factory=list[Any])
    """Data-modifying WITH queries, as they come (`modifying_ctes.py`)."""
    locked: set[int] = field(default_factory=set[int])
    """Tables under FOR UPDATE and its kin, by oid."""
    work_tables: set[CteId] = field(default_factory=set[CteId])
    """The recursions whose steps are being bound."""
    outer_bound: set[CteId] = field(default_factory=set[CteId])
    """WITH queries that refer to an outer query or a recursion, or to another one that does."""
    substitutes: list[tuple[Expr, ...]] = field(default_factory=list[tuple[Expr, ...]])
    """What $1, $2 .. are in an expression that stands for a call (`sql_functions.py`)."""
    supplied: list[Supplied] = field(default_factory=list[Supplied])
    """What the session finds before the statement runs."""
    filled: dict[int, dict[int, Filled]] = field(default_factory=dict[int, dict[int, Filled]])
    """Columns of tables, by oid, that get the next values of sequences when rows are written, or
    what their default makes of them."""
    taken: list[ColumnRef] | None = None
    """What the calls of nextval() to come are, in their order (`filled_plan`)."""
    inserted: set[int] = field(default_factory=set[int])
    """Tables, by oid, that the statement inserts into."""
    pinned: Mapping[tuple[str, str], tuple[int, tuple[str, ...], tuple[int, ...]]] | None = None
    """In the text of a view: what names of relations mean, by schema as written and name."""
    recorded: dict[tuple[str, str], tuple[int, tuple[str, ...], tuple[int, ...]]] | None = None
    """For CREATE VIEW: the same, as it is found."""
    kept: bool = False
    """What is bound is a table's kept text, in the default styles."""
    literals: "dict[int, tuple[Const, Node]]" = field(default_factory=dict[int, Any])
    """The node of each unknown literal, by its identity; the literal is kept alive."""
    read: "list[tuple[Node, Const]]" = field(default_factory=list[Any])
    """Literals that settings or the clock have decided about (`setting_literals.py`)."""
    read_clock: bool = False
    """The clock has decided about a literal."""
    makes_rows: bool = False
    """Rows are being bound one by one: a default is of one row."""
    acts_in: "Node | None" = None
    """The SELECT whose target list may call what acts for each row (`row_calls.py`)."""
    acts: bool = False
    """Something is called so."""
    undetermined: dict[int, int] = field(default_factory=dict[int, int])
    """Where a parameter stands whose type was not known and not asked for (B2)."""

    @property
    def of_kept_text(self) -> bool:
        """What is being bound is no text of the client's, but a table's or a view's."""
        return self.kept or self.pinned is not None

    def clock(self) -> tuple[int, tzinfo]:
        """The transaction's start, for a literal that asks for it, and the session's zone."""
        self.read_clock = True
        zone = find_zone(self.context.timezone)
        assert zone is not None, "SET has looked the zone up"
        return self.context.now, zone

    def expression(self, scope: "Scope", node: "Node") -> Expr:
        """`bind_expressions.expression`, reached from the modules that it calls."""
        return self.bind_expression(self, scope, node)

    def fresh(self, context: BindContext) -> "Binding":
        """Another one, for a statement of its own under that context."""
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
        """An expression for a column, remembered with its place."""
        ref = ColumnRef(column.id, column.type)
        self.places[id(ref)] = (ref, place)
        return ref

    def origin(self, id_: ColumnId) -> Column | None:
        """The column of a table that this is, if it is one as it stands."""
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
        """A column that is another one by a name of its own."""
        if column in self.origins:
            self.origins[made] = self.origins[column]
        if column in self.domains:
            self.domains[made] = self.domains[column]
        if column in self.collations:
            self.collations[made] = self.collations[column]
        if column in self.inexact:
            self.inexact.add(made)

    def place(self, expr: Expr) -> int | None:
        """Where the expression was written, as a position."""
        found = self.places.get(id(expr))
        return None if found is None else at(found[1])

    def parameter(self, index: int, place: int) -> Param:
        """`$index` as far as its type is known."""
        limit = len(self.parameters) if self.context.parameters_fixed else PARAMETERS_MAX
        if not 1 <= index <= limit:
            raise SqlError("42P02", f"there is no parameter ${index}", at(place))
        while len(self.parameters) < index:
            self.parameters.append(None)
        known = self.parameters[index - 1]
        param = Param(index, known if known is not None else UNKNOWN)
        self.places[id(param)] = param, place
        return param

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
                detail=f"{display(known)} versus {display(type_)}",
            )
        return Param(param.index, known)

    def parameter_types(self) -> tuple[SqlType, ...]:
        """All parameters' types. Raises 42P18 for one that nothing decided, 42P08 for one that also
        stands where nothing does.
        """
        types: list[SqlType] = []
        for index, type_ in enumerate(self.parameters, 1):
            message = f"could not determine data type of parameter ${index}"
            if type_ is None:
                raise SqlError("42P18", message)
            if index in self.undetermined:
                raise SqlError("42P08", message, at(self.undetermined[index]))
            types.append(type_)
        return tuple(types)


@dataclass(frozen=True, slots=True)
class WindowDefinition:
    """What stands in the parentheses of OVER or WINDOW."""

    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    framed: bool
    """Whether its frame was written, in another way than the default's."""


@dataclass(slots=True, eq=False)
class Side:
    """A side of an outer join whose rows may be made up. `ids`: the columns of its level."""

    plan: Plan
    ids: set[ColumnId]
    there: PlanColumn | None = None
    """True in a row that is there, once somebody has asked."""

    def asked(self, binding: Binding, place: int) -> ColumnRef:
        """The column, which is NULL in a row that was made up."""
        if self.there is None:
            self.there = binding.new_column("there", BOOL)
            self.ids.add(self.there.id)
        return binding.reference(self.there, place)

    def is_of(self, column: ColumnId) -> bool:
        """Whether it is this column that tells."""
        return self.there is not None and self.there.id == column


@dataclass(frozen=True, slots=True)
class GroupingCall:
    """The column of a GROUPING call, where its arguments stand, and whether that is HAVING."""

    column: PlanColumn
    places: tuple[int | None, ...]
    in_having: bool


@dataclass(slots=True)
class Item:
    """Something in FROM. `columns` are expressions over the plan's columns: a merged column of
    FULL JOIN USING is a COALESCE. A join without alias has no name; its parts then lend their names
    only.
    """

    name: str | None
    columns: Sequence[tuple[str, Expr]]
    schema: str | None = None
    relation: str | None = None
    """The table's own name, when an alias hides it."""
    declared: Sequence[str] = ()
    """What the columns are called in the type of its rows, where an alias may call them otherwise.
    """
    names_visible: bool = True
    columns_visible: bool = True
    lateral_only: bool = False
    lateral_ok: bool = True
    """Whether a LATERAL reference to it is legal; not from the right side of RIGHT and FULL
    joins.
    """
    unexpanded: Sequence[tuple[str, Expr]] = ()
    """Columns that a name finds, and a star does not show."""
    whole: Expr | None = None
    """What the name itself means as a value."""
    is_target: bool = False
    """The table that an UPDATE or DELETE changes, which its FROM cannot see."""
    nullable: bool = False
    """Whether an outer join may have made its row up, of NULLs."""
    side: Side | None = None
    """The innermost such join's side; None where its plan is not at hand."""
    again: bool = False
    """Another name for what an item has already: OLD and NEW, a join's own."""

    @property
    def is_lateral(self) -> bool:
        """Whether it could be referred to if LATERAL were written (rte_visible_if_lateral)."""
        return self.lateral_only and self.lateral_ok and not self.is_target


@dataclass(slots=True)
class Scope:
    """One query level. `clause` names the part being bound, as messages call it."""

    parent: "Scope | None" = None
    items: list[Item] = field(default_factory=list[Item])
    ctes: dict[str, "SelectResult"] = field(default_factory=dict[str, "SelectResult"])
    ids: set[ColumnId] = field(default_factory=set[ColumnId])
    clause: str = "SELECT"
    aggregates: dict[Aggregate, PlanColumn] = field(default_factory=dict[Aggregate, PlanColumn])
    in_aggregate: bool = False
    acts: bool = False
    """What is being bound is computed once for each row that the statement yields."""
    reads_itself: bool = False
    """Whether FROM has the rows of a recursion whose step this is."""
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
    """Those that are grouped by, by their columns."""
    without_sets: str | None = None
    """Where a set-returning function must not stand: CASE or COALESCE."""
    set_ordinality: PlanColumn | None = None
    window_part: str | None = None
    """`arguments` or `definition`, while such a part of a window is bound."""
    sides: list[Side] = field(default_factory=list[Side])
    """Those of outer joins in FROM whose rows may be made up."""
    lateral_active: bool = False
    lateral_used: bool = False
    merge_action: Expr | None = None
    """What MERGE_ACTION() answers, in RETURNING of MERGE."""

    def levels(self) -> Iterator["Scope"]:
        """This level, then those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def visible(self) -> Iterator[Item]:
        """Items that expressions of this level may use now."""
        for item in self.items:
            if not item.lateral_only or self.lateral_active:
                yield item

    def add(self, items: Sequence[Item]) -> None:
        """Make items visible; 42712 when a name is there already."""
        check_conflicts(self.items, items)
        self.items.extend(items)


def _distinct(left: Item, right: Item) -> bool:
    return (
        left.schema is not None
        and right.schema is not None
        and left.relation is None
        and right.relation is None
        and left.schema != right.schema
    )


def check_conflicts(left: Sequence[Item], right: Sequence[Item]) -> None:
    """42712 when both sides have an item of one name (two tables of different schemas may share
    it).
    """
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
    """Whether there are rows to read: not of a data-modifying WITH query without RETURNING."""
    shared: CteId | None = None
    """The rows that a use of this WITH query scans; None: a use is its plan."""

    unexpanded: tuple[PlanColumn, ...] = ()
    """Further columns of what is scanned, which a star does not show."""

    volatile_uses: int = 0
    """How often it was read, if it is volatile and not shared."""
