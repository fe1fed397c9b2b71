"""Write integer and numeric operators for DuckDB: exact, overflow is 22003.

INVARIANTS
  D1  DuckDB's decimals are exact up to 38 digits, and fail beyond: both operands of a sum go in
      with the type of the result, so that the engine's own rules for scales do not matter.

Not here: quotients (`duckdb/quotients.py`).
"""

from typing import Final

from sql.emit.duckdb.evaluator_calls import evaluator_call
from sql.emit.duckdb.quotients import quotient
from sql.emit.duckdb.types import duckdb_type, error, unsupported
from sql.emit.quotient_levels import is_rounded_product, without_widening_cast
from sql.emit.state import Scope
from sql.plan.nodes import Call
from sql.types.sql_type import SqlType

_DIGITS_EXACT: Final = 15
"""Decimals of so many digits are doubles divided by a power of ten that is exact."""
_MAX: Final = 38
_SMALL_MAX: Final = 18
"""Digits of the decimals that DuckDB keeps in 64 bits."""


def _cast(text: str, type_: SqlType) -> str:
    return f"cast({text} as {duckdb_type(type_)})"


def _add(call: Call, scope: Scope) -> str:
    left, right = (_cast(scope.emit(arg), call.type) for arg in call.args)
    return f"{left} {call.function.name} {right}"


def _multiply(call: Call, scope: Scope) -> str:
    if is_rounded_product(call):
        return evaluator_call(call, scope)
    left, right = (scope.emit(arg) for arg in call.args)
    width = call.args[0].type.precision or 0
    if width <= _SMALL_MAX < (call.type.precision or 0):
        # A product of two small decimals stays a small one in DuckDB, and overflows.
        left = f"cast({left} as decimal({_SMALL_MAX + 1},{call.args[0].type.scale}))"
    return f"{left} * {right}"


def _divide(call: Call, scope: Scope) -> str:
    dividend, divisor = without_widening_cast(call.args[0]), call.args[1]
    left, right = (scope.emit(arg) for arg in (dividend, divisor))
    return quotient((left, dividend.type), (right, divisor.type), scope)


def _modulo(call: Call, scope: Scope) -> str:
    common = max((arg.type for arg in call.args), key=lambda type_: type_.scale or 0)
    digits = max((arg.type.precision or 0) - (arg.type.scale or 0) for arg in call.args)
    width = digits + (common.scale or 0)
    if width > _MAX:
        return evaluator_call(call, scope)
    wide = f"decimal({width},{common.scale})"
    left, right = (f"cast({scope.emit(arg)} as {wide})" for arg in call.args)
    zero = error("22012", "division by zero")
    failed = f"{right} = 0 and {left} is not null"
    return f"case when {failed} then {zero} else {left} % {right} end"


def _remainder(call: Call, scope: Scope) -> str:
    """DuckDB divides first, and the smallest number by -1 does not fit."""
    left, right = (scope.emit(arg) for arg in call.args)
    return f"case when {right} = -1 then {left} - {left} else {left} % {right} end"


def _to_numeric(call: Call, scope: Scope) -> str:
    return scope.emit(call.args[0])


def _narrow(call: Call, scope: Scope) -> str:
    """The value, if it is the same in the narrower type."""
    x = scope.emit(call.args[0])
    narrow = _cast(x, call.type)
    if (call.type.scale or 0) >= (call.args[0].type.scale or 0):
        return narrow
    failure = error("22003", "numeric value has too many digits after the decimal point")
    same = f"{_cast(narrow, call.args[0].type)} <> {x}"
    return f"case when {same} then {failure} else {narrow} end"


def _places(call: Call, scope: Scope) -> int:
    known = scope.statement.known(call.args[1])
    if known is None or not isinstance(known[0], int):
        raise unsupported(f"function {call.function.id} with a computed number of digits")
    return max(min(known[0], _MAX), -_MAX)


def _rounded(call: Call, scope: Scope) -> str:
    """round(x, n), trunc(x, n)."""
    x, places, type_ = scope.emit(call.args[0]), _places(call, scope), call.args[0].type
    if places >= (type_.scale or 0):
        return x
    if places < -((type_.precision or 0) - (type_.scale or 0)):
        return f"{x} - {x}"
    return f"{call.function.name}({_cast(x, type_)}, {places})"


def _numeric_to_float(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    if (call.args[0].type.precision or 0) <= _DIGITS_EXACT:
        return x
    # By way of text the nearest float is found, as PostgreSQL does.
    return f"cast({x} as varchar)"


def _float_to_numeric(call: Call, scope: Scope) -> str:
    """15 significant digits of a float8, 6 of a float4, as PostgreSQL converts."""
    x = scope.emit(call.args[0])
    digits = "%.14e" if call.args[0].type.name == "float8" else "%.5e"
    refusal = error("22003", "NaN and infinity are out of range for type numeric")
    text = f"printf('{digits}', cast({x} as double))"
    overflow = error("22003", "numeric field overflow")
    found = f"coalesce(try_cast({text} as {duckdb_type(call.type)}), {overflow})"
    return f"case when isfinite({x}) then {found} when {x} is null then null else {refusal} end"


def _shift(call: Call, scope: Scope) -> str:
    """Shifts count modulo the width, and bits that leave are gone; DuckDB fails in both cases."""
    x, n = (scope.emit(arg) for arg in call.args)
    width = {"int2": 16, "int4": 32, "int8": 64}[call.type.name]
    count = f"({n} & {63 if width == 64 else 31})"
    if call.function.name == ">>":
        return f"cast({x} as bigint) >> {count}"
    mask, sign = 2**width - 1, 2 ** (width - 1)
    wide = f"((cast({x} as hugeint) & {mask}) << {count}) & {mask}"
    return f"xor({wide}, cast({sign} as hugeint)) - {sign}"


SPECIALS: Final = {
    "add": _add,
    "multiply": _multiply,
    "divide": _divide,
    "modulo": _modulo,
    "remainder": _remainder,
    "to_numeric": _to_numeric,
    "narrow": _narrow,
    "round": _rounded,
    "trunc": _rounded,
    "numeric_to_integer": _to_numeric,
    "numeric_to_float": _numeric_to_float,
    "float_to_numeric": _float_to_numeric,
    "shift": _shift,
}
