"""Write window calls as DuckDB SQL: all frames, with PostgreSQL's rules for offsets.

INVARIANTS
  W1  keys of RANGE with an offset are cast so that key and offset add up without overflow:
      integers as HUGEINT, dates as timestamps.
"""

import math
from collections.abc import Sequence
from typing import Final

from sql.emit import running_windows
from sql.emit.duckdb.aggregates import aggregate, order_by
from sql.emit.duckdb.evaluator_calls import evaluator_call_over
from sql.emit.duckdb.types import as_duckdb_interval, duckdb_type, error, interval_key, unsupported
from sql.emit.running_windows import WindowListSyntax, depends_on_addition_order, fold_inputs
from sql.emit.state import Scope, Select
from sql.emit.templates import sort_key_text
from sql.emit.windows import (
    as_aggregate,
    check_offsets,
    constant_argument,
    depends_on_frame,
    over_clause,
)
from sql.functions.table import FunctionKind
from sql.plan.nodes import (
    Exclusion,
    Expr,
    Frame,
    FrameMode,
    SortKey,
    Window,
    WindowCall,
    has_range_offset,
)
from sql.types import numeric
from sql.types.sql_type import SqlType

_WIDE: Final = {
    "int2": "hugeint", "int4": "hugeint", "int8": "hugeint", "float4": "double",
    "float8": "double", "date": "timestamp", "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}  # fmt: skip


def _window(call: WindowCall, scope: Scope) -> str:
    """The text of a window call, cast to its type."""
    text = _clause(call, scope)
    if call.function.kind is FunctionKind.AGGREGATE:
        return aggregate(as_aggregate(call), scope, text)
    return f"cast({_function(call, scope)}{text} as {duckdb_type(call.type)})"


def _clause(call: WindowCall, scope: Scope) -> str:
    """Its OVER."""
    check_offsets(call, scope)
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
    if name == "ntile":
        return f"ntile({scope.statement.constant(constant_argument(call, scope, 0), call.type)})"
    if name == "nth_value" and scope.statement.known(call.args[1]) is None:
        failure = error("22016", "argument of nth_value must be greater than zero")
        args[1] = f"case when {args[1]} <= 0 then {failure} else {args[1]} end"
    elif name == "nth_value":
        constant_argument(call, scope, 1)
    return f"{name}({', '.join(args)})"


def _wide_key(call: WindowCall, key: SortKey, scope: Scope) -> str:
    wide = f"cast({scope.emit(key.expr)} as {_wide_type(call, key.expr.type)})"
    return sort_key_text(wide, key)


def _wide_type(call: WindowCall, type_: SqlType) -> str:
    """What a key of RANGE is cast to (W1)."""
    if type_.name == "numeric":
        return duckdb_type(_common_numeric(call))
    if type_.name not in _WIDE:
        raise unsupported(f"RANGE with an offset over {type_.name}")
    return _WIDE[type_.name]


def _common_numeric(call: WindowCall) -> SqlType:
    ends = (call.frame.start, call.frame.end)
    offsets = [end.offset.type for end in ends if end.offset is not None]
    return numeric.unify_numeric_types([call.order[0].expr.type, *offsets])


def _offset(call: WindowCall, offset: Expr, frame: Frame, scope: Scope) -> str:
    text = scope.emit(offset)
    known = scope.statement.known(offset)
    if known is None:
        text = _checked(text, offset, frame)
    elif isinstance(known[0], float) and math.isinf(known[0]):
        # An infinite key less an infinite offset is an overflow to DuckDB.
        raise unsupported("an infinite offset of RANGE")
    if frame.mode is not FrameMode.RANGE:
        return text
    if call.order[0].expr.type.name == "interval":
        raise unsupported("RANGE over intervals")
    if offset.type.name == "interval":
        return as_duckdb_interval(text)
    return f"cast({text} as {_wide_type(call, call.order[0].expr.type)})"


def _checked(text: str, offset: Expr, frame: Frame) -> str:
    """A computed offset, with PostgreSQL's errors for NULL and below zero."""
    end = "starting" if offset is frame.start.offset else "ending"
    ranged = frame.mode is FrameMode.RANGE
    size = interval_key(text) if offset.type.name == "interval" else text
    below = (
        "invalid preceding or following size in window function"
        if ranged
        else f"frame {end} offset must not be negative"
    )
    null = error("22004", f"frame {end} offset must not be null")
    return (
        f"(case when {text} is null then {null}"
        f" when {size} < 0 then {error('22013', below)} else {text} end)"
    )


# --- running sums ------------------------------------------------------------------------------


def windows(plan: Window, select: Select, scope: Scope) -> Select:
    """The rows of a SELECT with the plan's calls."""
    return running_windows.emit_windows_by_lists(plan, select, scope, _LISTS)


def _is_running(call: WindowCall, _plan: Window, _scope: Scope) -> bool:
    return depends_on_addition_order(call) and call.frame.exclusion is Exclusion.NO_OTHERS


def _taken(call: WindowCall, inside: Scope) -> dict[str, str]:
    return fold_inputs(call, inside, _clause)


def _gathered(fields: Sequence[str], rows: str) -> str:
    packed = ", ".join(f"{field} := {rows}.{field}" for field in fields)
    return f"list(struct_pack({packed}) order by {rows}.n)"


def _folded(call: WindowCall, fields: Sequence[str], rows: str, scope: Scope) -> str:
    lists = [f"list_transform({rows}, lambda s: s.{field})" for field in fields]
    return evaluator_call_over(call, lists, scope)


def _spread(rows: str, values: dict[str, str], scope: Scope) -> str:
    made = ", ".join(f"unnest({text}) as {name}" for name, text in values.items())
    return f"select unnest(r) as r, {made} from ({rows}) {scope.statement.alias()}"


_LISTS: Final = WindowListSyntax(_window, _clause, _is_running, _taken, _gathered, _folded, _spread)
