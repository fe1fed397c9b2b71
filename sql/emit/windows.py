"""Write OVER clauses and frames of window calls, and check their constant arguments.

INVARIANTS
  V1  a function that ignores its frame is written without one: engines refuse others.
  V2  PostgreSQL's checks at the start of a window (offsets, the argument of ntile and nth_value)
      are made for constants here, so that no engine's own error stands for them.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final, TypeAlias

from sql.emit.state import Scope
from sql.errors import SqlError
from sql.functions.table import FunctionKind
from sql.plan.nodes import (
    Aggregate,
    BoundKind,
    ColumnId,
    ColumnRef,
    Exclusion,
    Expr,
    Frame,
    FrameBound,
    FrameMode,
    PlanColumn,
    SortKey,
    Window,
    WindowCall,
)
from sql.plan.projections import append_columns, column_reference
from sql.types.sql_type import Interval, Value

FRAME_FUNCTIONS: Final = frozenset({"first_value", "last_value", "nth_value"})
"""The window functions that see their frame, as all aggregates do (V1)."""
_DAY: Final = 86_400_000_000
_KEY_ID: Final = 1_000_000
"""Columns that only the emitter knows are numbered from a multiple of it, behind all others."""

OffsetWriter: TypeAlias = Callable[[Expr, Frame], str]
"""Writes an offset; called with a checked constant, or with an expression to be checked."""


def as_aggregate(call: WindowCall) -> Aggregate:
    """The call without its window."""
    return Aggregate(call.function, call.args, False, call.filter, (), call.type)


def depends_on_frame(call: WindowCall) -> bool:
    """Whether the frame matters (V1)."""
    return call.function.kind is FunctionKind.AGGREGATE or call.function.name in FRAME_FUNCTIONS


def with_column_keys(plan: Window) -> Window | None:
    """The same over a projection of its computed keys; None if all keys are columns. DuckDB does
    not sort by an expression that may fail (its `error` counts as volatile).
    """
    computed = [
        expr
        for call in plan.calls
        for expr in (*call.partition, *(key.expr for key in call.order))
        if not isinstance(expr, ColumnRef)
    ]
    if not computed or not plan.columns:
        return None
    first = _KEY_ID * plan.columns[0].id
    known: dict[Expr, PlanColumn] = {
        expr: PlanColumn(ColumnId(first + number), "key", expr.type)
        for number, expr in enumerate(dict.fromkeys(computed))
    }
    inside = append_columns(plan.input, {column: expr for expr, column in known.items()})

    def plain(expr: Expr) -> Expr:
        column = known.get(expr)
        return expr if column is None else column_reference(column)

    calls = tuple(
        replace(
            call,
            partition=tuple(map(plain, call.partition)),
            order=tuple(replace(key, expr=plain(key.expr)) for key in call.order),
        )
        for call in plan.calls
    )
    return replace(plan, input=inside, calls=calls)


def over_clause(
    call: WindowCall,
    scope: Scope,
    order_by: Callable[[tuple[SortKey, ...], Scope], str],
    bound: OffsetWriter,
) -> str:
    """` over (..)`."""
    parts: list[str] = []
    if call.partition:
        parts.append(
            f"partition by {', '.join(scope.key(expr, 'PARTITION BY') for expr in call.partition)}"
        )
    if call.order:
        parts.append(f"order by {order_by(call.order, scope)}")
    if depends_on_frame(call) and call.frame != Frame():
        parts.append(_frame(call.frame, bound))
    return f" over ({' '.join(parts)})"


def _frame(frame: Frame, bound: OffsetWriter) -> str:
    start, end = (_end(end, frame, bound) for end in (frame.start, frame.end))
    plain = frame.exclusion is Exclusion.NO_OTHERS
    exclusion = "" if plain else f" exclude {frame.exclusion.value}"
    return f"{frame.mode.value} between {start} and {end}{exclusion}"


def _end(end: FrameBound, frame: Frame, bound: OffsetWriter) -> str:
    if end.offset is None:
        return end.kind.value
    assert end.kind in (BoundKind.PRECEDING, BoundKind.FOLLOWING), "only these have an offset"
    return f"{bound(end.offset, frame)} {end.kind.value}"


def check_offsets(call: WindowCall, scope: Scope) -> None:
    """22004 and 22013 for constant offsets (V2)."""
    if not depends_on_frame(call):
        return
    for word, end in (("starting", call.frame.start), ("ending", call.frame.end)):
        if end.offset is None:
            continue
        known = scope.statement.known(end.offset)
        if known is None:
            continue
        if known[0] is None:
            raise SqlError("22004", f"frame {word} offset must not be null")
        if not is_negative(known[0]):
            continue
        if call.frame.mode is FrameMode.RANGE:
            raise SqlError("22013", "invalid preceding or following size in window function")
        raise SqlError("22013", f"frame {word} offset must not be negative")


def is_negative(value: Value) -> bool:
    """Whether an offset is below zero; NaN counts as such."""
    if isinstance(value, Interval):
        return (value.months * 30 + value.days) * _DAY + value.micros < 0
    assert isinstance(value, int | float | Decimal), "an offset is a number"
    return not value >= 0


def constant_argument(call: WindowCall, scope: Scope, index: int) -> Value:
    """The constant second argument of ntile and nth_value (V2), or 0A000."""
    known = scope.statement.known(call.args[index])
    name = call.function.name
    if known is None:
        raise scope.statement.dialect.unsupported(f"{name} with a computed argument")
    value = known[0]
    if isinstance(value, int) and value <= 0:
        sqlstate = "22014" if name == "ntile" else "22016"
        raise SqlError(sqlstate, f"argument of {name} must be greater than zero")
    return value
