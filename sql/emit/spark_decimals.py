"""Templates of numeric: no digit goes silently, overflow is 22003 (notes/semantics.md §4).

INVARIANTS
  D1  Spark runs with `allowPrecisionLoss=false` and ANSI on: a value that does not fit its decimal
      is an error.

Not here: quotients (`spark_quotients.py`).
"""

from typing import Final

from sql.emit.quotient_levels import shown
from sql.emit.scope import Scope
from sql.emit.spark_quotients import quotient
from sql.emit.spark_types import error, spark_type, unsupported
from sql.plan import Call

_MAX: Final = 38


def _divide(call: Call, scope: Scope) -> str:
    left, right = ((scope.emit(arg), arg.type) for arg in (shown(call.args[0]), call.args[1]))
    return quotient(left, right, scope)


def _to_numeric(call: Call, scope: Scope) -> str:
    return scope.emit(call.args[0])


def _narrow(call: Call, scope: Scope) -> str:
    """The value, if it is the same in the narrower type."""
    x = scope.emit(call.args[0])
    narrow = f"cast({x} as {spark_type(call.type)})"
    if (call.type.scale or 0) >= (call.args[0].type.scale or 0):
        return narrow
    failure = error("22003", "numeric value has too many digits after the decimal point")
    # Spark compares two decimals in a type that holds the digits of both before the point.
    again = f"cast({narrow} as {spark_type(call.args[0].type)})"
    return f"case when {again} <> {x} then {failure} else {narrow} end"


def _places(call: Call, scope: Scope) -> int:
    known = scope.statement.known(call.args[1])
    if known is None or not isinstance(known[0], int):
        raise unsupported(f"function {call.function.id} with a computed number of digits")
    return max(min(known[0], _MAX), -_MAX)


def _round(call: Call, scope: Scope) -> str:
    return f"round({scope.emit(call.args[0])}, {_places(call, scope)})"


def _trunc(call: Call, scope: Scope) -> str:
    x, n = scope.emit(call.args[0]), _places(call, scope)
    return f"case when {x} < 0 then ceil({x}, {n}) else floor({x}, {n}) end"


def _numeric_to_integer(call: Call, scope: Scope) -> str:
    return f"round({scope.emit(call.args[0])})"


def _numeric_to_float(call: Call, scope: Scope) -> str:
    return scope.emit(call.args[0])


def _float_to_numeric(call: Call, scope: Scope) -> str:
    """15 significant digits of a float8, 6 of a float4, as PostgreSQL converts."""
    x = scope.emit(call.args[0])
    digits = "%.14e" if call.args[0].type.name == "float8" else "%.5e"
    refusal = error("22003", "NaN and infinity are out of range for type numeric")
    return (
        # format_string shows NULL as text.
        f"case when {x} is null then null"
        f" when isnan({x}) or abs({x}) = double('Infinity') then {refusal}"
        f" else cast(format_string('{digits}', cast({x} as double)) as {spark_type(call.type)}) end"
    )


SPECIALS: Final = {
    "divide": _divide,
    "to_numeric": _to_numeric,
    "narrow": _narrow,
    "round": _round,
    "trunc": _trunc,
    "numeric_to_integer": _numeric_to_integer,
    "numeric_to_float": _numeric_to_float,
    "float_to_numeric": _float_to_numeric,
}
