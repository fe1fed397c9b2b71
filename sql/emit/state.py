"""The state of one emission: dialect, generated names, bound strings, nesting depth and scopes.

INVARIANTS
  M1  generated names are unique in the statement: `t1`, `t2` for relations, `a1`, `a2` for strings,
      `q1`, `q2` for parameters; the column with id n is always called `c<n>`.
  M2  nesting and text are bounded (54001), because an engine's own parser ends in a stack
      overflow.
  M3  a function that is computed outside of the engine is named after its row of the function table
      and the types of its arguments; those are the columns 0, 1 .. of `Statement.calls`. An
      aggregate takes the list of its values, without DISTINCT, FILTER and order.
  M4  the name of an `WorkerFunction` is a hash of all its fields; its columns are 0, 1 .. in the
      order of its arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, Protocol, TypeAlias

from sql.errors import SqlError, not_supported
from sql.plan.nodes import (
    Aggregate,
    BoundKind,
    Call,
    ColumnId,
    ColumnRef,
    Const,
    CteId,
    Expr,
    Frame,
    FrameBound,
    Join,
    Param,
    Plan,
    PlanColumn,
    RelationId,
    SetScan,
    SortKey,
    Window,
    WindowCall,
    begins_at_partition_start,
)
from sql.plan.widening_casts import WIDENING_CASTS
from sql.types.sql_type import SqlType, Value, format_type

DEPTH_MAX: Final = 150
"""Levels of nesting of expressions, and with plans on Spark. More would need a deeper stack in its
JVM, and DuckDB takes the cube of it.
"""


class EmitLateralSets(Protocol):
    """Emits a lateral join of sets: each row of `left` beside the rows of its sets. `padded`: a row
    whose sets are empty has NULLs beside it.
    """

    def __call__(
        self,
        left: "Select",
        columns: Sequence[PlanColumn],
        plan: SetScan,
        scope: "Scope",
        *,
        padded: bool,
    ) -> "Select":
        """The rows as a derived table."""
        ...


def _no_lists(_rows: Sequence[Sequence[Expr]], _scope: "Scope") -> Sequence[str] | None:
    return None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine writes the parts of a statement that the shared modules leave to it.

    `array`: an array of elements that are texts already. `quote` stands around names. `string`: a
    bound string, by its argument's name. `argument`: the value of a parameter bound to such a
    reference, as text around it and the argument; None if the value has to be written. `values`:
    rows, an alias and its columns as a relation. `key`: the text that the engine compares so that
    the values of an expression compare as PostgreSQL's; the expression's own text for most types,
    None if there is no such text. `error`: an expression that fails, by SQLSTATE and message. `on`,
    `where`: the parts of a condition, guarded. `empty_sets`: whether the grouping set of no keys
    has a row for no input. `materialized`: the keyword that makes a WITH query run once.
    `any_recursion`: whether WITH RECURSIVE takes UNION, and stands in other queries
    (`emit/recursion_rounds.py` if not). `deep_correlation`: whether a subquery may refer to more
    than the query next to it. `hint`: the hint beside an error about an unsupported feature.
    `mixes_unions`: whether the rows of UNION ALL may come in any order. `changed_by_groups`: types
    of which a group does not show a value as it was. `plan_depth_max`:
    levels of plans. `constant_rows`: the columns of many rows of constants as lists to be unnested;
    None for other rows.
    """

    engine: str
    quote: str
    key: Callable[[Expr, "Scope"], str | None]
    literal: Callable[[Value, SqlType], str]
    array: Callable[[Sequence[str], SqlType], str]
    string: Callable[[str], str]
    argument: Callable[[Value, SqlType, str], tuple[str, str] | None]
    expression: Callable[[Expr, "Scope"], str]
    aggregate: Callable[[Aggregate, "Scope"], str]
    windows: "Callable[[Window, Select, Scope], Select]"
    order_by: Callable[[Sequence[SortKey], "Scope"], str]
    on: Callable[[Join, Expr], Sequence[Expr]]
    where: Callable[[Plan, Sequence[Expr]], Sequence[Expr]]
    values: Callable[[Sequence[str], str, Sequence[str]], str]
    error: Callable[[str, str], str]
    set_scan: "Callable[[SetScan, Scope], Select]"
    sets_beside: EmitLateralSets
    empty_sets: bool
    materialized: str
    any_recursion: bool
    deep_correlation: bool
    hint: str | None = None
    mixes_unions: bool = False
    changed_by_groups: frozenset[str] = frozenset()
    plan_depth_max: int = DEPTH_MAX
    constant_rows: "Callable[[Sequence[Sequence[Expr]], Scope], Sequence[str] | None]" = _no_lists

    def unsupported(self, what: str) -> SqlError:
        """0A000: a feature that this engine cannot provide as PostgreSQL does."""
        return not_supported(f"{what} on the {self.engine} engine", hint=self.hint)

    def name(self, name: str) -> str:
        """A quoted name."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"


@dataclass(frozen=True, slots=True)
class GivenParameter:
    """A parameter of an emission: the class of its value, and in a tuple of one the value itself if
    the text depends on it. `type`: None if the plan does not use it.
    """

    kind: type[object]
    type: SqlType | None
    written: tuple[Value] | None


EVALUATOR_PREFIX: Final = "ref_"
"""Names of functions of the reference evaluator in an engine's SQL begin so (M3)."""

EvaluatorCall: TypeAlias = Call | Aggregate | WindowCall


@dataclass(frozen=True, slots=True)
class WorkerFunction:
    """A computation outside of the engine over columns of these types (M4). An aggregate takes one
    list of rows of them. A window call takes the rows of a partition, and returns a list.
    `of_frames`: the rows are those of `as_list_function`.
    """

    expr: Expr | Aggregate | WindowCall
    columns: tuple[SqlType, ...]
    of_frames: bool = False

    @property
    def makes_list(self) -> bool:
        """Whether it returns a list of values."""
        return isinstance(self.expr, WindowCall)


@dataclass(slots=True)
class Statement:
    """The state of one emission (M1)."""

    dialect: Dialect
    relations: Mapping[RelationId, str]
    parameters: Sequence[Value]
    strings: dict[str, str] = field(default_factory=dict[str, str])
    calls: dict[str, EvaluatorCall] = field(default_factory=dict[str, EvaluatorCall])
    row_by_row: bool = False
    """Whether one of the calls is made for every row, not only for those that need it."""
    functions: dict[str, WorkerFunction] = field(default_factory=dict[str, WorkerFunction])
    """What an engine's workers compute, by its name in the text."""
    ctes: list[str] = field(default_factory=list[str])
    """WITH queries of the statement, as text."""
    cte_columns: dict[CteId, tuple[str, Sequence[str]]] = field(
        default_factory=dict[CteId, tuple[str, Sequence[str]]]
    )
    """The name of each and what its columns are called."""
    ctes_of_subqueries: set[CteId] = field(default_factory=set[CteId])
    """Those with columns that are made of subqueries."""
    rounds: set[CteId] = field(default_factory=set[CteId])
    """The recursions whose steps are being written: their rows are known there only."""
    bound: dict[str, str] = field(default_factory=dict[str, str])
    """Values of parameters that are arguments, `q<n>` for the parameter n."""
    types: dict[int, SqlType] = field(default_factory=dict[int, SqlType])
    """Types of the parameters that were met."""
    written: set[int] = field(default_factory=set[int])
    """Parameters whose values were looked at."""
    copies: dict[int, tuple[Call, int, bool]] = field(
        default_factory=dict[int, tuple[Call, int, bool]]
    )
    """What `repeated_arguments.py` knows of calls, by their identity; they are kept for it."""
    has_set_operation: bool = False
    """Whether it has one: subqueries are kept apart from it (`rename_outer_columns.py`)."""
    names: int = 0
    depth: int = 0
    """Levels of plans that are being written."""
    nesting: int = 0
    """Levels of expressions."""

    def alias(self) -> str:
        """A new relation name (M1)."""
        self.names += 1
        return f"t{self.names}"

    def string(self, value: str) -> str:
        """A reference to a string bound as an argument; equal strings share one."""
        name = self.strings.setdefault(value, f"a{len(self.strings) + 1}")
        return self.dialect.string(name)

    def called(self, call: EvaluatorCall) -> str:
        """The name of a function that computes calls of this row with these types (M3)."""
        plain: EvaluatorCall
        match call:
            case Aggregate():
                plain = _over_lists(call)
            case WindowCall():
                plain = as_list_function(call)
            case Call():
                plain = replace(call, args=_columns(call))
        name = f"{EVALUATOR_PREFIX}{blake2b(repr(plain).encode(), digest_size=10).hexdigest()}"
        self.calls[name] = plain
        return name

    def function(self, function: WorkerFunction) -> str:
        """The name of a function (M4)."""
        name = f"out_{blake2b(repr(function).encode(), digest_size=10).hexdigest()}"
        self.functions[name] = function
        return name

    def constant(self, value: Value, type_: SqlType) -> str:
        """A value as SQL text."""
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, tuple):
            element = type_.element
            assert element is not None, "a tuple is an array"
            return self.dialect.array([self.constant(item, element) for item in value], type_)
        return self.dialect.literal(value, type_)

    def parameter(self, param: Param) -> str:
        """A parameter as SQL text: an argument if it can be one."""
        value, name = self.parameters[param.index - 1], f"q{param.index}"
        self.types[param.index] = param.type
        found = self.dialect.argument(value, param.type, self.dialect.string(name))
        if found is None:
            self.written.add(param.index)
            return self.constant(value, param.type)
        text, self.bound[name] = found
        return text

    @property
    def given(self) -> tuple[GivenParameter, ...]:
        """All parameters, $1 first."""
        return tuple(
            GivenParameter(
                type(value), self.types.get(index), (value,) if index in self.written else None
            )
            for index, value in enumerate(self.parameters, 1)
        )

    def known(self, expr: Expr) -> tuple[Value] | None:
        """The value of a constant or parameter, in a tuple of one; None for anything else."""
        match expr:
            case Const():
                return (expr.value,)
            case Param():
                self.written.add(expr.index)
                return (self.parameters[expr.index - 1],)
            case Call() if expr.function.id in WIDENING_CASTS:
                return self.known(expr.args[0])
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Scope:
    """The place of an expression: the texts of visible columns, and the way to emit subplans.

    `subplan` closes the circle between the modules of this package.
    """

    statement: Statement
    columns: Mapping[ColumnId, str]
    subplan: Callable[[Plan, "Scope"], str]
    filtering: bool = False
    """Whether the expression is a WHERE condition or one of its ANDed parts."""
    nearest: frozenset[ColumnId] = frozenset()
    """The columns of the query that the expression stands in."""
    in_lambda: bool = False
    """Whether it stands in a function of an array's elements."""
    joining: bool = False
    """Whether it stands in the condition of a join."""

    def variable(self) -> str:
        """A new name for a lambda's argument (M1)."""
        self.statement.names += 1
        return f"e{self.statement.names}"

    def element(self, type_: SqlType) -> "tuple[str, ColumnRef, Scope]":
        """A variable for the elements of an array, by its name and as an expression, and the scope
        in which it is visible.
        """
        name, id_ = self.variable(), ColumnId(-self.statement.names)
        columns = {**self.columns, id_: name}
        inside = replace(self, columns=columns, filtering=False, in_lambda=True)
        return name, ColumnRef(id_, type_), inside

    def fields(self, exprs: Sequence[Expr]) -> "tuple[str, tuple[ColumnRef, ...], Scope]":
        """A variable for a struct of these expressions, by its name and its fields `f0`, `f1` ..,
        and the scope in which they are visible.
        """
        name, columns = self.variable(), dict(self.columns)
        fields: list[ColumnRef] = []
        for number, expr in enumerate(exprs):
            self.statement.names += 1
            fields.append(ColumnRef(ColumnId(-self.statement.names), expr.type))
            columns[fields[-1].id] = f"{name}.f{number}"
        return name, tuple(fields), replace(self, columns=columns, filtering=False, in_lambda=True)

    def key(self, expr: Expr, what: str) -> str:
        """The text by which values of an expression compare; 0A000, which says `what`, without such
        a text.
        """
        dialect = self.statement.dialect
        found = dialect.key(expr, self)
        if found is None:
            raise dialect.unsupported(f"{what} values of type {format_type(expr.type)}")
        return found

    def emit(self, expr: Expr) -> str:
        """The SQL text of an expression, which never needs parentheses around it."""
        return self.statement.dialect.expression(expr, self)


TEXT_MAX: Final = 1 << 20
"""Characters of one expression. Templates repeat their arguments; larger texts take seconds to
analyse.
"""


def _columns(call: EvaluatorCall) -> tuple[ColumnRef, ...]:
    """One for each argument."""
    return tuple(ColumnRef(ColumnId(index), arg.type) for index, arg in enumerate(call.args))


def _over_lists(call: Aggregate) -> Aggregate:
    """The call as a function of lists, one for each argument. An aggregate's zone is part of it; so
    is DISTINCT, with the order of its values, any other order is that of the lists.
    """
    count, columns = len(call.function.args), _columns(call)
    order = call.order if call.distinct else ()
    keys = [replace(key, expr=columns[call.args.index(key.expr)]) for key in order]
    args = (*columns[:count], *call.args[count:])
    return replace(call, args=args, filter=None, order=tuple(keys))


def as_list_function(call: WindowCall) -> WindowCall:
    """The call as a function of lists: of a partition's values, of the ends of frames and, if they
    do not all begin at the first row, of their sizes (`running_windows.py`).
    """
    first = BoundKind.UNBOUNDED_PRECEDING
    start = first if begins_at_partition_start(call.frame) else BoundKind.CURRENT_ROW
    frame = Frame(start=FrameBound(start))
    return WindowCall(call.function, _columns(call), None, (), (), frame, call.type)


ColumnTexts: TypeAlias = Mapping[ColumnId, str]


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT under construction. `names`: the columns that the FROM clause offers; `outputs`:
    None while these are all of it. `fragile`: it has an outer join with a subquery in its
    condition. When DuckDB 2.0 orders such joins, it forgets a condition in WHERE that is NULL, but
    none that is false.
    """

    source: str
    names: ColumnTexts
    where: tuple[str, ...] = ()
    outputs: ColumnTexts | None = None
    group: str | None = None
    distinct: bool = False
    order: str | None = None
    limit: str | None = None
    fragile: bool = False

    @property
    def plain(self) -> bool:
        """Whether its rows are still those of FROM and WHERE."""
        return self.outputs is None and self.order is None and self.limit is None

    @property
    def bare(self) -> bool:
        """Whether it is nothing but a FROM clause."""
        return self.plain and not self.where
