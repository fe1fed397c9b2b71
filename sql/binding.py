"""What binding one statement carries along: identifiers, parameters, places, what was read.

INVARIANTS
  B1  column ids are given out once in a statement (P1 of `plan.py`).
  B2  a parameter has one type in a statement; the first use that needs a type decides (42P08 after
      it).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final

from sql.catalog import Catalog, Column, LookUp, Table
from sql.catalog_objects import Domain, SequenceDefinition
from sql.char_blanks import column_type
from sql.errors import SqlError
from sql.plan import ColumnId, ColumnRef, Const, CteId, Expr, Param, PlanColumn
from sql.styles import PLAIN, Styles
from sql.syntax import at
from sql.timezones import find_zone
from sql.types import UNKNOWN, SqlType, display

if TYPE_CHECKING:
    from sql.select_result import SelectResult
    from sql.scope import Scope
    from sql.statements import Part
    from sql.syntax import Node

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
class Supplied:
    """A value that the session finds before the statement runs: of a sequence (`nextval`
    and its kin), or of a function that it answers (`bind_session_calls.py`). `sequence`: what the
    first argument names, if that is known. Arguments may be what was supplied before.
    """

    kind: str
    sequence: SequenceDefinition | None = None
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """The next values of these sequences, one a row, or what a default's text makes of them."""

    sequences: tuple[SequenceDefinition, ...]
    text: str | None = None


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
    """Columns of a domain that are no plain column of a table (`domain_of.py`)."""
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
    """Names that the meaning rests on (`look_up.py`)."""
    top_with: "Node | None" = None
    """The WITH clause of the statement itself: only there a query may modify data."""
    parts: "list[Part]" = field(default_factory=list[Any])
    """Data-modifying WITH queries, as they come (`bind_parts.py`)."""
    locked: set[int] = field(default_factory=set[int])
    """Tables under FOR UPDATE and its kin, by oid."""
    work_tables: set[CteId] = field(default_factory=set[CteId])
    """The recursions whose steps are being bound."""
    outer_bound: set[CteId] = field(default_factory=set[CteId])
    """WITH queries that refer to an outer query or a recursion, or to another one that does."""
    substitutes: list[tuple[Expr, ...]] = field(default_factory=list[tuple[Expr, ...]])
    """What $1, $2 .. are in an expression that stands for a call (`stand_ins.py`)."""
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
    """Literals that settings or the clock have decided about (`read_literals.py`)."""
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
