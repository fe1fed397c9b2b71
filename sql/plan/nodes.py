"""Logical plans and bound expressions: the binder makes them, the engines run them.

    text ─parse▶ AST ─bind▶ Plan (typed, every name resolved) ─emit▶ engine SQL
                                                           └─▶ reference evaluator

INVARIANTS
  P1  every column that a plan node computes has its own id, unique in the statement; expressions
      name columns by id only. A plan used twice (a CTE) is wrapped so that each use has
      fresh ids.
  P2  every expression has its final type; all casts are explicit `Call`s of casts from the function
      table.
  P3  a correlated subquery refers to columns of the outer query by their ids; nothing else crosses.
  P4  plans are values: hashable, comparable, fit for keys of caches. Parameters stay parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import NewType, TypeAlias

from sql.functions.table import Function
from sql.types.sql_type import SqlType, Value

ColumnId = NewType("ColumnId", int)
CteId = NewType("CteId", int)
"""Names rows that a plan makes once and reads in several places."""
RelationId = NewType("RelationId", str)
"""Names an input given at run time: a shard, or `new` for the rows a statement has just made."""


# --- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A value; Python types as in `sql/types/sql_type.py`.

    Two are equal if they are the same to the bit, as in PostgreSQL: 0 and -0 are not, nor are 1.0
    and 1.00, NaN and NaN are.
    """

    value: Value
    type: SqlType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        return self.type == other.type and _exactly(self.value) == _exactly(other.value)

    def __hash__(self) -> int:
        return hash((_exactly(self.value), self.type))


def is_null(expr: "Expr") -> bool:
    """Whether an expression is the constant NULL."""
    return isinstance(expr, Const) and expr.value is None


def _exactly(value: Value) -> object:
    """Something that is equal for the same value only."""
    if isinstance(value, float | Decimal):
        return str(value)
    return tuple(map(_exactly, value)) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Param:
    """`$index`, from 1."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the input, or of an outer query (P3)."""

    id: ColumnId
    type: SqlType


@dataclass(frozen=True, slots=True)
class Call:
    """A function, operator or cast from the table. For casts to a type with modifier, `type` has
    it. `instance`: tells calls of volatile functions apart (`volatile_calls.py`); 0 for others.
    """

    function: Function
    args: tuple["Expr", ...]
    type: SqlType
    instance: ColumnId = field(default=ColumnId(0), compare=False, repr=False)


class BoolOp(StrEnum):
    """Three-valued connectives."""

    AND = "and"
    OR = "or"
    NOT = "not"


@dataclass(frozen=True, slots=True)
class Logical:
    """AND, OR of two or more, NOT of one."""

    op: BoolOp
    args: tuple["Expr", ...]
    type: SqlType


class Test(StrEnum):
    """Predicates that never answer NULL."""

    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"
    IS_TRUE = "is true"
    IS_NOT_TRUE = "is not true"
    IS_FALSE = "is false"
    IS_NOT_FALSE = "is not false"


@dataclass(frozen=True, slots=True)
class IsTest:
    """`arg IS NULL`, `arg IS TRUE` and the like."""

    test: Test
    arg: "Expr"
    type: SqlType


@dataclass(frozen=True, slots=True)
class Distinct:
    """`left IS [NOT] DISTINCT FROM right`; both have one type. `negated`: IS NOT DISTINCT FROM."""

    left: "Expr"
    right: "Expr"
    negated: bool
    type: SqlType


@dataclass(frozen=True, slots=True)
class Case:
    """Searched CASE (`CASE x WHEN ..` is bound as `x = ..`). All results have one type. `whens`: a
    tuple, or `ConstantWhens`.
    """

    whens: Sequence[tuple["Expr", "Expr"]]
    otherwise: "Expr"
    type: SqlType


@dataclass(frozen=True, slots=True)
class Coalesce:
    """COALESCE; all arguments have one type."""

    args: tuple["Expr", ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Extreme:
    """GREATEST or LEAST, ignoring NULLs; all arguments have one type."""

    greatest: bool
    args: tuple["Expr", ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class InList:
    """`arg [NOT] IN (items)`; all have one type, comparable by plain equality. `items`: a tuple, or
    `ConstantItems`.
    """

    arg: "Expr"
    items: "Sequence[Expr]"
    negated: bool
    type: SqlType


@dataclass(frozen=True, slots=True)
class InRows:
    """`(args) [NOT] IN` rows of constants, or a long `(a = 1 AND b = 2) OR ..`, negated `(a <> 1 OR
    b <> 2) AND ..`. `columns`: the rows' columns, as `ConstantItems`. `functions`: the operators
    that compare them; none of them can fail (`constant_rows.py`).
    """

    functions: tuple[Function, ...]
    args: tuple["Expr", ...]
    columns: "tuple[Sequence[Expr], ...]"
    negated: bool
    type: SqlType


@dataclass(frozen=True, slots=True)
class AnyAll:
    """`left op ANY (array)`, with `all` `left op ALL (array)`: the operator for every element, the
    answers connected by OR or AND. `args`: left, the array, and the zone if the row has one (F3 of
    `functions/table.py`).
    """

    function: Function
    all: bool
    args: tuple["Expr", ...]
    type: SqlType


class SubqueryKind(StrEnum):
    """How a subquery is used in an expression. ARRAY: all its values, in its order."""

    SCALAR = "scalar"
    EXISTS = "exists"
    IN = "in"
    NOT_IN = "not in"
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class Subquery:
    """A subquery as an expression; `args` are the left sides of IN, of the subquery's column
    types.
    """

    kind: SubqueryKind
    plan: "Plan"
    args: tuple["Expr", ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate call; stands only in `GroupBy.aggregates`. `args` empty: count(*)."""

    function: Function
    args: tuple["Expr", ...]
    distinct: bool
    filter: "Expr | None"
    order: tuple["SortKey", ...]
    type: SqlType


class FrameMode(StrEnum):
    """The unit of a frame: rows, values of the ORDER BY key, groups of peers."""

    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class BoundKind(StrEnum):
    """Where a frame begins or ends."""

    UNBOUNDED_PRECEDING = "unbounded preceding"
    PRECEDING = "preceding"
    CURRENT_ROW = "current row"
    FOLLOWING = "following"
    UNBOUNDED_FOLLOWING = "unbounded following"


@dataclass(frozen=True, slots=True)
class FrameBound:
    """One end of a frame. `offset`: for PRECEDING and FOLLOWING, an int8, with RANGE what is added
    to the key; without columns of this level but for those that its key is made of
    (`expressions/range_frames.py`).
    """

    kind: BoundKind
    offset: "Expr | None" = None


class Exclusion(StrEnum):
    """The rows that EXCLUDE removes from a frame."""

    NO_OTHERS = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of its partition that a window call sees. RANGE with an offset has one sort key."""

    mode: FrameMode = FrameMode.RANGE
    start: FrameBound = FrameBound(BoundKind.UNBOUNDED_PRECEDING)
    end: FrameBound = FrameBound(BoundKind.CURRENT_ROW)
    exclusion: Exclusion = Exclusion.NO_OTHERS


def begins_at_partition_start(frame: Frame) -> bool:
    """Whether the frame has all rows from the partition's first one on."""
    whole = frame.exclusion is Exclusion.NO_OTHERS
    return whole and frame.start.kind is BoundKind.UNBOUNDED_PRECEDING


def has_range_offset(frame: Frame) -> bool:
    """Whether the frame has an offset in values of the sort key (RANGE)."""
    ends = (frame.start, frame.end)
    return frame.mode is FrameMode.RANGE and any(end.offset is not None for end in ends)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function, or an aggregate over a window; stands only in `Window.calls`."""

    function: Function
    args: tuple["Expr", ...]
    filter: "Expr | None"
    partition: tuple["Expr", ...]
    order: tuple["SortKey", ...]
    frame: Frame
    type: SqlType


Expr: TypeAlias = (
    Const | Param | ColumnRef | Call | Logical | IsTest | Distinct | Case | Coalesce | Extreme
    | InList | InRows | AnyAll | Subquery
)  # fmt: skip


# --- plans -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column that a node outputs (P1). `name` is for people and for Arrow results, not for
    resolution.
    """

    id: ColumnId
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class SortKey:
    """One ORDER BY key, NULL order explicit."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of an input given at run time. `ordinals[i]` is the input's column behind `columns[i]`.

    With `identity`, two more columns (text source, int8 index) say which row it is
    (`storage/batch.py`).
    """

    relation: RelationId
    name: str
    columns: tuple[PlanColumn, ...]
    ordinals: tuple[int, ...]
    identity: tuple[PlanColumn, PlanColumn] | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """Literal rows. One row of no columns is the input of a SELECT without FROM. `rows`: a tuple,
    or `ConstantRows`.
    """

    columns: tuple[PlanColumn, ...]
    rows: Sequence[tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Project:
    """Computes `columns[i] = exprs[i]`."""

    input: "Plan"
    columns: tuple[PlanColumn, ...]
    exprs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the predicate is true."""

    input: "Plan"
    predicate: Expr


class JoinKind(StrEnum):
    """CROSS has no condition."""

    CROSS = "cross"
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Join:
    """Columns of both sides, left first. `lateral`: the right side may refer to the left's
    columns.
    """

    kind: JoinKind
    left: "Plan"
    right: "Plan"
    condition: Expr | None
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class GroupBy:
    """Outputs `key_columns`, `aggregate_columns`, `grouping_columns`. No keys: one row, also for no
    input.

    `sets`: the grouping sets, as numbers of keys; None: one set of all keys. A key that is not in
    the set of a row is NULL there. `groupings[i]`: the keys whose bits (1: not in the set) make
    `grouping_columns[i]`, the first key's the highest.
    """

    input: "Plan"
    key_columns: tuple[PlanColumn, ...]
    keys: tuple[Expr, ...]
    aggregate_columns: tuple[PlanColumn, ...]
    aggregates: tuple[Aggregate, ...]
    sets: tuple[tuple[int, ...], ...] | None = None
    grouping_columns: tuple[PlanColumn, ...] = ()
    groupings: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """The columns of its input, then one for each call."""

    input: "Plan"
    columns: tuple[PlanColumn, ...]
    calls: tuple[WindowCall, ...]


@dataclass(frozen=True, slots=True)
class DistinctRows:
    """Removes duplicate rows, NULLs equal."""

    input: "Plan"


@dataclass(frozen=True, slots=True)
class DistinctOn:
    """Of the rows with equal keys, NULLs equal, the first in this order."""

    input: "Plan"
    keys: tuple[Expr, ...]
    order: tuple[SortKey, ...]


class SetOpKind(StrEnum):
    """Set operations."""

    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class SetOp:
    """Both inputs have as many columns, of the same types, as `columns`."""

    kind: SetOpKind
    all: bool
    left: "Plan"
    right: "Plan"
    columns: tuple[PlanColumn, ...]


@dataclass(frozen=True, slots=True)
class SetCall:
    """A call of a function that returns a set; stands only in `SetScan.calls`."""

    function: Function
    args: tuple[Expr, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class SetScan:
    """The rows of set-returning functions side by side, padded with NULLs; `ordinality` counts
    them from 1. The arguments may refer to what it is joined to laterally.
    """

    calls: tuple[SetCall, ...]
    columns: tuple[PlanColumn, ...]
    ordinality: PlanColumn | None


@dataclass(frozen=True, slots=True)
class With:
    """WITH: `definition` is computed once for all scans of it in `input`, whose columns these are.
    `definition` refers to no outer query.
    """

    cte: CteId
    name: str
    definition: "Plan"
    input: "Plan"


@dataclass(frozen=True, slots=True)
class CteScan:
    """The rows of a With; in the step of a Recursive, those of the last iteration. `columns[i]` is
    its i-th column.
    """

    cte: CteId
    name: str
    columns: tuple[PlanColumn, ...]


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE: the rows of `base`, then of `step` over those of the last iteration, until
    there are none. All three have columns of the same types. Not `all`: without duplicate rows.
    """

    cte: CteId
    name: str
    base: "Plan"
    step: "Plan"
    all: bool
    columns: tuple[PlanColumn, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """Orders rows; keys are over the input's columns."""

    input: "Plan"
    keys: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """LIMIT and OFFSET: int8, not referring to columns of this level; None or NULL: no limit.

    `ties`: the rows that are peers of the last one, too; then `input` is a Sort.
    """

    input: "Plan"
    limit: Expr | None
    offset: Expr | None
    ties: bool = False


Plan: TypeAlias = (
    Scan | Values | Project | Filter | Join | GroupBy | Window | DistinctRows | DistinctOn | SetOp
    | Sort | Limit | SetScan | With | CteScan | Recursive
)  # fmt: skip


def output_columns(plan: Plan) -> tuple[PlanColumn, ...]:
    """The columns that a plan outputs, in order."""
    match plan:
        case Scan():
            return plan.columns + (plan.identity or ())
        case SetScan():
            return plan.columns if plan.ordinality is None else (*plan.columns, plan.ordinality)
        case Values() | Project() | SetOp() | CteScan() | Recursive():
            return plan.columns
        case Filter() | DistinctRows() | DistinctOn() | Sort() | Limit() | With():
            return output_columns(plan.input)
        case Join():
            return output_columns(plan.left) + output_columns(plan.right)
        case GroupBy():
            return plan.key_columns + plan.aggregate_columns + plan.grouping_columns
        case Window():
            return output_columns(plan.input) + plan.columns
