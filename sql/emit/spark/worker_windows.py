"""Compute window calls that Spark lacks in its Python workers, with the reference evaluator.

    sum(x) over (order by o groups 1 preceding)  ─▶  the list of a partition's rows {x, o} in order
                                                     ─▶ f(list): a list of sums  ─▶ rows again

`running_windows.py` builds the lists, and turns them into rows again.

INVARIANTS
  W1  a function takes its call's arguments, condition, keys and offsets as columns of a row;
      constants and parameters are part of it.
  W2  an argument stays unevaluated for rows that FILTER leaves out, unless the condition is
      volatile: it is evaluated once. An argument that no frame reads, and the default of lag() and
      lead(), is computed for all rows.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final

from sql.emit.spark.worker_functions import FunctionInputs, parameter_constant
from sql.emit.state import Scope, WorkerFunction
from sql.emit.windows import check_offsets, depends_on_frame
from sql.plan.nodes import (
    BoundKind,
    Case,
    Const,
    Exclusion,
    Expr,
    Frame,
    FrameBound,
    FrameMode,
    Param,
    WindowCall,
    has_range_offset,
)
from sql.plan.traverse import is_volatile_expression

_COUNTED: Final = frozenset({"int2", "int4", "int8", "numeric"})
"""Keys that RANGE counts in Spark: it adds floats otherwise, and knows no months of dates."""
_INT_MAX: Final = 2_147_483_647


def is_native_window_call(call: WindowCall, scope: Scope) -> bool:
    """Whether Spark computes the call by itself."""
    if depends_on_frame(call) and not _is_native_frame(call, scope):
        return False
    if call.function.name in ("ntile", "nth_value"):
        return _is_known(call.args[-1], scope)
    if call.function.name in ("lag", "lead") and len(call.args) > 1:
        return _is_known(call.args[1], scope)
    return True


def _is_known(expr: Expr, scope: Scope) -> bool:
    known = scope.statement.known(expr)
    return known is not None and known[0] is not None


def _is_native_frame(call: WindowCall, scope: Scope) -> bool:
    frame = call.frame
    if frame.mode is FrameMode.GROUPS or frame.exclusion is not Exclusion.NO_OTHERS:
        return False
    if has_range_offset(frame) and call.order[0].expr.type.name not in _COUNTED:
        return False
    offsets = [end.offset for end in (frame.start, frame.end) if end.offset is not None]
    if not all(_is_known(offset, scope) for offset in offsets):
        return False
    return not _is_backwards(frame, scope) and all(_is_small(end, frame, scope) for end in offsets)


def _is_small(offset: Expr, frame: Frame, scope: Scope) -> bool:
    """Spark counts rows in an int."""
    known = scope.statement.known(offset)
    assert known is not None, "a known offset"
    value = known[0]
    return frame.mode is FrameMode.RANGE or (isinstance(value, int) and value <= _INT_MAX)


def _is_backwards(frame: Frame, scope: Scope) -> bool:
    """Whether it ends before it begins, which Spark takes for an error."""
    if frame.start.kind is not frame.end.kind:
        return False
    first, last = (_distance(end, scope) for end in (frame.start, frame.end))
    if first is None or last is None:
        return False
    return first < last if frame.start.kind is BoundKind.PRECEDING else first > last


def _distance(end: FrameBound, scope: Scope) -> int | float | Decimal | None:
    known = None if end.offset is None else scope.statement.known(end.offset)
    value = None if known is None else known[0]
    return value if isinstance(value, int | float | Decimal) else None


def window_call_inputs(call: WindowCall, scope: Scope) -> dict[str, str]:
    """The columns of the call's function (W1), as fields of a row."""
    check_offsets(call, scope)
    inputs = FunctionInputs()
    _over_columns(call, inputs, scope)
    inside = replace(scope, filtering=False)
    return {f"i{number}_": inside.emit(part) for number, part in enumerate(inputs.parts)}


def window_call_function(call: WindowCall, scope: Scope) -> WorkerFunction:
    """The function that computes the call from a list of rows of those columns."""
    inputs = FunctionInputs()
    return WorkerFunction(_over_columns(call, inputs, scope), inputs.types)


def _over_columns(call: WindowCall, inputs: FunctionInputs, scope: Scope) -> WindowCall:
    def column(part: Expr) -> Expr:
        if isinstance(part, Param):
            return parameter_constant(part, scope)
        return part if isinstance(part, Const) else inputs.column(part)

    return replace(
        call,
        args=tuple([column(_passed(arg, call)) for arg in call.args]),
        filter=None if call.filter is None else column(call.filter),
        partition=(),
        order=tuple([replace(key, expr=column(key.expr)) for key in call.order]),
        frame=_with_offsets(call.frame, column),
    )


def _passed(arg: Expr, call: WindowCall) -> Expr:
    """The argument, NULL where it is left out (W2)."""
    condition = call.filter
    if condition is None or is_volatile_expression(condition) or isinstance(arg, Const | Param):
        return arg
    return Case(((condition, arg),), Const(None, arg.type), arg.type)


def _with_offsets(frame: Frame, column: Callable[[Expr], Expr]) -> Frame:
    start, end = (
        end if end.offset is None else replace(end, offset=column(end.offset))
        for end in (frame.start, frame.end)
    )
    return replace(frame, start=start, end=end)
