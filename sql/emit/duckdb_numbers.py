"""Templates of integers and numeric: no digit goes silently, overflow is 22003
(notes/semantics.md §3, §4).

INVARIANTS
  D1  DuckDB's decimals are exact up to 38 digits, and fail beyond: both operands of a sum go in
      with the type of the result, so that the engine's own rules for scales do not matter.
  D2  DuckDB would divide decimals as doubles. A quotient has 18 decimals, rounded half away from
      zero, like the reference evaluator's: of integers of 128 bits where they hold it, by the
      reference evaluator itself where they do not.
"""

from collections.abc import Iterator
from typing import Final

from sql.emit.duckdb_calls import reference, reference_over
from sql.emit.duckdb_types import duckdb_type, error, unsupported
from sql.emit.scope import Scope
from sql.plan import Call
from sql.types import NUMERIC, SqlType

_DIGITS_EXACT: Final = 15
"""Decimals of so many digits are doubles divided by a power of ten that is exact."""
_MAX: Final = 38
_WIDE: Final = 36
"""A numerator of so many digits can be doubled in 128 bits, and the divisor added."""
_REPEATED_MAX: Final = 400
"""Characters of an operand that is written out several times."""
_SMALL_MAX: Final = 18
"""Digits of the decimals that DuckDB keeps in 64 bits."""


def _cast(text: str, type_: SqlType) -> str:
    return f"cast({text} as {duckdb_type(type_)})"


def _add(call: Call, scope: Scope) -> str:
    left, right = (_cast(scope.emit(arg), call.type) for arg in call.args)
    return f"{left} {call.function.name} {right}"


def _multiply(call: Call, scope: Scope) -> str:
    left, right = (scope.emit(arg) for arg in call.args)
    width = call.args[0].type.precision or 0
    if width <= _SMALL_MAX < (call.type.precision or 0):
        # A product of two small decimals stays a small one in DuckDB, and overflows.
        left = f"cast({left} as decimal({_SMALL_MAX + 1},{call.args[0].type.scale}))"
    return f"{left} * {right}"


def _divide(call: Call, scope: Scope) -> str:
    left, right = (scope.emit(arg) for arg in call.args)
    # The binder widens the dividend, for engines whose quotients depend on its scale.
    plain = call.args[0]
    while isinstance(plain, Call) and _keeps_digits(plain):
        plain = plain.args[0]
    dividend = (scope.emit(plain), plain.type)
    return quotient(call, (left, right), dividend, scope)


def _keeps_digits(call: Call) -> bool:
    source = call.args[0].type
    same = call.function.id == "numeric::numeric"
    return same and (source.scale or 0) <= (call.type.scale or 0)


def quotient(call: Call, args: tuple[str, str], dividend: tuple[str, SqlType], scope: Scope) -> str:
    """The quotient of texts of the types of the call's arguments (D2). `dividend`: the first of
    them in a type of fewer digits.
    """
    (x, a), (y, b) = dividend, (args[1], call.args[1].type)
    other = reference_over(call, args, scope)
    scale_a, scale_b = a.scale or 0, b.scale or 0
    shift = (NUMERIC.scale or 0) + scale_b - scale_a
    # So many digits before the point may the operands have.
    most = _digits(call.args[0].type)
    digits_a = min(_WIDE - shift - scale_a, _MAX - 2 * scale_a, most)
    digits_b = min(_WIDE + 1 - scale_b, _MAX - 2 * scale_b)
    if not 0 <= shift <= _WIDE or min(digits_a, digits_b) < 1 or len(x + y) > _REPEATED_MAX:
        return other
    numerator = f"abs({_unscaled(x, scale_a)}) * cast('{10**shift}' as hugeint)"
    divisor = f"abs({_unscaled(y, scale_b)})"
    rounded = f"({numerator} * 2 + {divisor}) // ({divisor} * 2)"
    signed = f"{rounded} * case when ({x} < 0) <> ({y} < 0) then -1 else 1 end"
    unit = "cast('0.000000000000000001' as decimal(19,18))"
    checks = [
        f"when {x} is null or {y} is null then null",
        f"when {y} = 0 then {error('22012', 'division by zero')}",
        *(f"when {large} then {other}" for large in _larger(x, a, digits_a)),
        *(f"when {large} then {other}" for large in _larger(y, b, digits_b)),
    ]
    return f"case {' '.join(checks)} else cast({signed} as decimal(38,0)) * {unit} end"


def _digits(type_: SqlType) -> int:
    return (type_.precision or 0) - (type_.scale or 0)


def _unscaled(text: str, scale: int) -> str:
    if not scale:
        return f"cast({text} as hugeint)"
    power = f"cast('{10**scale}' as decimal({scale + 1},0))"
    return f"cast(cast({text} as decimal({_MAX},{scale})) * {power} as hugeint)"


def _larger(text: str, type_: SqlType, digits: int) -> Iterator[str]:
    """Whether the value has more digits before the point; nothing if its type says no."""
    if _digits(type_) > digits:
        yield f"abs({text}) >= cast('{10**digits}' as decimal({digits + 1},0))"


def _modulo(call: Call, scope: Scope) -> str:
    common = max((arg.type for arg in call.args), key=lambda type_: type_.scale or 0)
    digits = max((arg.type.precision or 0) - (arg.type.scale or 0) for arg in call.args)
    width = digits + (common.scale or 0)
    if width > _MAX:
        return reference(call, scope)
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
