"""Write window calls as Spark SQL, or compute them from lists of rows where Spark differs.

Spark computes frames of ROWS, and of RANGE over numbers. `running_windows.py` folds float sums, and
`worker_windows.py` computes calls that Spark lacks.

INVARIANTS
  W1  integer keys of RANGE with an offset are decimals, which add up without overflow.
  W2  offsets, distances and counts of a call that Spark computes are constants
      (`worker_windows.is_native_window_call`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.emit import running_windows
from sql.emit.running_windows import WindowListSyntax, depends_on_addition_order, fold_inputs
from sql.emit.spark import worker_windows as spark_worker_windows
from sql.emit.spark.aggregates import aggregate, order_by
from sql.emit.spark.types import spark_type, unsupported
from sql.emit.spark.worker_functions import aggregate_in_worker
from sql.emit.spark.worker_windows import is_native_window_call
from sql.emit.state import Scope, Select, WorkerFunction, as_list_function
from sql.emit.templates import sort_key_text
from sql.emit.windows import (
    as_aggregate,
    check_offsets,
    constant_argument,
    depends_on_frame,
    over_clause,
)
from sql.functions.table import FunctionKind, function_by_id
from sql.plan.nodes import (
    Aggregate,
    Case,
    Const,
    Expr,
    Frame,
    FrameMode,
    SortKey,
    Window,
    WindowCall,
    has_range_offset,
)
from sql.plan.renumbering import free_columns
from sql.types import numeric
from sql.types.sql_type import INT4, INT8, SqlType

_WIDE: Final = {"int2": "decimal(38,0)", "int4": "decimal(38,0)", "int8": "decimal(38,0)"}
_ORDERED: Final = frozenset(
    [
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "nth_value",
    ]
)
"""What Spark wants an ORDER BY for."""
_NO_ORDER: Final = SortKey(Const(None, INT4), False, False)


def _window(call: WindowCall, scope: Scope) -> str:
    """The text of a window call, cast to its type."""
    text = _clause(call, scope)
    if call.function.kind is FunctionKind.AGGREGATE:
        if call.filter is not None and call.function.nulls:
            found = aggregate_in_worker(as_aggregate(call), scope, text)
            return f"cast({found} as {spark_type(call.type)})"
        return aggregate(_unfiltered(call), scope, text)
    return f"cast({_function(call, scope)}{text} as {spark_type(call.type)})"


def _clause(call: WindowCall, scope: Scope) -> str:
    """Its OVER."""
    check_offsets(call, scope)
    for expr in call.partition:
        if expr.type.name == "interval":
            raise unsupported("PARTITION BY an interval")
    if not call.order and call.function.name in _ORDERED:
        # All rows are peers, and what is counted is counted in any order.
        call = replace(call, order=(_NO_ORDER,))
    wide = has_range_offset(call.frame) and depends_on_frame(call)
    return over_clause(
        call,
        scope,
        (lambda keys, inside: _wide_key(call, keys[0], inside)) if wide else order_by,
        lambda offset, frame: _offset(call, offset, frame, scope),
    )


def _function(call: WindowCall, scope: Scope) -> str:
    name = call.function.name
    args = [scope.emit(arg) for arg in call.args]
    if name in ("ntile", "nth_value"):
        constant_argument(call, scope, len(args) - 1)
    return f"{name}({', '.join(args)})"


def _unfiltered(call: WindowCall) -> Aggregate:
    """Spark has no FILTER over a window; what does not pass is NULL, which aggregates ignore."""
    plain = as_aggregate(call)
    if call.filter is None:
        return plain
    if not call.args:
        seen = Case(((call.filter, Const(1, INT4)),), Const(None, INT4), INT4)
        return replace(plain, function=function_by_id("count(any)"), args=(seen,), filter=None)
    first = call.args[0]
    seen = Case(((call.filter, first),), Const(None, first.type), first.type)
    return replace(plain, args=(seen, *call.args[1:]), filter=None)


def _wide_key(call: WindowCall, key: SortKey, scope: Scope) -> str:
    wide = f"cast({scope.emit(key.expr)} as {_wide_type(call, key.expr.type)})"
    return sort_key_text(wide, key)


def _wide_type(call: WindowCall, type_: SqlType) -> str:
    if type_.name == "numeric":
        ends = (call.frame.start, call.frame.end)
        offsets = [end.offset.type for end in ends if end.offset is not None]
        return spark_type(numeric.unify_numeric_types([type_, *offsets]))
    return _WIDE[type_.name]


def _offset(call: WindowCall, offset: Expr, frame: Frame, scope: Scope) -> str:
    known = scope.statement.known(offset)
    assert known is not None, "an offset that Spark counts is a constant (W2)"
    if frame.mode is not FrameMode.RANGE:
        return str(known[0])
    text = scope.statement.constant(known[0], offset.type)
    return f"cast({text} as {_wide_type(call, call.order[0].expr.type)})"


# --- by lists ----------------------------------------------------------------------------------


def windows(plan: Window, select: Select, scope: Scope) -> Select:
    """The rows of a SELECT with the plan's calls."""
    plan = replace(plan, calls=tuple([_counted_by_rank(call) for call in plan.calls]))
    return running_windows.emit_windows_by_lists(plan, select, scope, _LISTS)


def _counted_by_rank(call: WindowCall) -> WindowCall:
    """GROUPS without offsets says what RANGE says, which Spark has."""
    ends = (call.frame.start, call.frame.end)
    if call.frame.mode is not FrameMode.GROUPS or any(end.offset is not None for end in ends):
        return call
    return replace(call, frame=replace(call.frame, mode=FrameMode.RANGE))


def _is_running(call: WindowCall, plan: Window, scope: Scope) -> bool:
    """Sums of float8 Spark adds up in order by itself. In a subquery that refers to the rows
    outside it has no lists that become rows.
    """
    if free_columns(plan):
        if not is_native_window_call(call, scope):
            raise unsupported("such a window in a subquery that refers to the outer rows")
        return False
    return _is_of_frames(call, scope) or not is_native_window_call(call, scope)


def _is_of_frames(call: WindowCall, scope: Scope) -> bool:
    own = call.function.spark == "@float_average" or call.function.id == "sum(float8)"
    return depends_on_addition_order(call) and not own and is_native_window_call(call, scope)


def _taken(call: WindowCall, inside: Scope) -> dict[str, str]:
    if _is_of_frames(call, inside):
        return fold_inputs(call, inside, _numbered)
    return spark_worker_windows.window_call_inputs(call, inside)


def _numbered(call: WindowCall, scope: Scope) -> str:
    """OVER of a count, or of row_number(), which wants an order."""
    keyed = call if call.order else replace(call, order=(_NO_ORDER,))
    return _clause(keyed if call.frame == Frame() else call, scope)


def _gathered(fields: Sequence[str], rows: str) -> str:
    packed = ", ".join(f"'{field}', {rows}.{field}" for field in fields)
    return (
        f"array_sort(collect_list(named_struct({packed})),"
        " (a, b) -> case when a.n < b.n then -1 when a.n > b.n then 1 else 0 end)"
    )


def _folded(call: WindowCall, fields: Sequence[str], rows: str, scope: Scope) -> str:
    packed = ", ".join(f"'{field}', s.{field}" for field in fields) or "'x', true"
    if _is_of_frames(call, scope):
        columns = (call.args[0].type, *[INT8 for _ in fields[1:]])
        function = WorkerFunction(as_list_function(call), columns, of_frames=True)
    else:
        function = spark_worker_windows.window_call_function(call, scope)
    return f"{scope.statement.function(function)}(transform({rows}, s -> named_struct({packed})))"


def _spread(rows: str, values: dict[str, str], scope: Scope) -> str:
    """The errors of the functions are raised here (O2 of `worker_functions.py`)."""
    lists, folded, spread = (scope.statement.alias() for _ in range(3))
    made = ", ".join(f"{text} as {name}" for name, text in values.items())
    checked = ", ".join(
        f"case when {name}.e is null then {name}.v else raise_error({name}.e) end as {name}"
        for name in values
    )
    text = f"select r, {made} from ({rows}) {lists}"
    text = f"select r, {checked} from ({text}) {folded}"
    zipped = f"select explode(arrays_zip(r, {', '.join(values)})) as z from ({text}) {spread}"
    shown = ", ".join([f"z.{name} as {name}" for name in ("r", *values)])
    return f"select {shown} from ({zipped}) {scope.statement.alias()}"


_LISTS: Final = WindowListSyntax(
    _window, _numbered, _is_running, _taken, _gathered, _folded, _spread
)
