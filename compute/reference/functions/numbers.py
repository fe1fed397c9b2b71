"""Integers, floats and numeric of the reference evaluator: PostgreSQL's results and errors, in
plain Python.

INVARIANTS
  U1  every arithmetic on Decimals goes through `EXACT`, whose precision no operand of 38 digits
      can exceed; rounding happens in `fit` and `divide`, and nowhere else.
  U2  a float4 is always rounded to 32 bits.

Decimals may keep the exponent they came with: only `fit` gives a value its type's scale.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Final, TypeAlias

from sql.emit.quotient_levels import shown
from sql.errors import SqlError, division_by_zero, not_held, out_of_range
from sql.plan.nodes import Call
from sql.types.division_scale import decimals
from sql.types.numeric import of_cast
from sql.types.sql_type import (
    DISPLAY_NAMES,
    NUMERIC,
    NUMERIC_PRECISION_MAX,
    SqlType,
    Value,
    computed_numeric,
)
from sql.types.text_input import field_overflow, parse_text, to_single

Function: TypeAlias = Callable[..., Value]
Maker: TypeAlias = Callable[[Call], Function]

EXACT: Final = Context(prec=200, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)
_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}


def plain(function: Function) -> Maker:
    """A function that does not look at types."""
    return lambda _call: function


# --- numeric -----------------------------------------------------------------------------------


def fit(value: Decimal, type_: SqlType, *, rounding: str = ROUND_HALF_UP) -> Decimal:
    """The value at the type's scale, rounded half away from zero; 22003 if it has too many
    digits.
    """
    precision, scale = type_.precision or 0, type_.scale or 0
    if value and value.adjusted() > precision:
        raise field_overflow(precision, scale)
    rounded = value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=EXACT)
    if rounded and rounded.adjusted() >= precision - scale:
        raise field_overflow(precision, scale)
    return rounded if rounded else abs(rounded)


def narrow(value: Decimal, type_: SqlType) -> Decimal:
    """The same number in another type, or 22003."""
    fitted = fit(value, type_)
    if fitted != value:
        raise SqlError("22003", "numeric value has too many digits after the decimal point")
    return fitted


def divide(left: Decimal, right: Decimal, types: tuple[SqlType, SqlType]) -> Decimal:
    """The quotient at the scale of `sql/types/division_scale.py`, rounded once, half from zero."""
    if not right:
        raise division_by_zero()
    scale = decimals(left, right, types)
    a, b = int(left.scaleb(38, EXACT)), int(right.scaleb(38, EXACT))
    quotient, rest = divmod(abs(a) * 10**scale, abs(b))
    quotient += rest * 2 >= abs(b)
    return Decimal(quotient if (a < 0) == (b < 0) else -quotient).scaleb(-scale, EXACT)


def make_divide(call: Call) -> Function:
    """`numeric / numeric`."""
    types = (shown(call.args[0]).type, call.args[1].type)
    return lambda a, b: fit(divide(a, b, types), call.type)


def modulo(a: Decimal, b: Decimal) -> Decimal:
    """The remainder, with the sign of the dividend."""
    if not b:
        raise division_by_zero()
    return EXACT.remainder(a, b)


def whole_quotient(a: Decimal, b: Decimal) -> Decimal:
    """div(a, b): the quotient toward zero."""
    if not b:
        raise division_by_zero()
    return EXACT.divide_int(a, b)


def _to_places(value: Decimal, places: int, rounding: str) -> Decimal:
    places = max(min(places, 38), -38)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= places:
        return value
    return value.quantize(Decimal(1).scaleb(-places), rounding=rounding, context=EXACT)


def round_numeric(value: Decimal, places: int = 0) -> Decimal:
    """Round to so many decimals, half away from zero."""
    return _to_places(value, places, ROUND_HALF_UP)


def trunc_numeric(value: Decimal, places: int = 0) -> Decimal:
    """Truncate to so many decimals, toward zero."""
    return _to_places(value, places, ROUND_DOWN)


def ceil_numeric(value: Decimal) -> Decimal:
    """Round up."""
    return _to_places(value, 0, ROUND_CEILING)


def floor_numeric(value: Decimal) -> Decimal:
    """Round down."""
    return _to_places(value, 0, ROUND_FLOOR)


def numeric_result(function: Function) -> Maker:
    """The function with its result fitted to the type of the call."""

    def make(call: Call) -> Function:
        type_ = call.type

        def run(*args: Value) -> Value:
            result = function(*args)
            return fit(result, type_) if isinstance(result, Decimal) else result

        return run

    return make


# --- integers ----------------------------------------------------------------------------------


def in_range(value: int, name: str) -> int:
    """The value if the integer type holds it, else 22003."""
    limit = 1 << (_BITS[name] - 1)
    if not -limit <= value < limit:
        raise out_of_range(DISPLAY_NAMES.get(name, name))
    return value


def int_plus(x: int) -> int:
    """The prefix operator `+`."""
    return x


def int_minus(x: int) -> int:
    """The prefix operator `-`."""
    return -x


def int_abs(x: int) -> int:
    """The absolute value."""
    return abs(x)


def int_invert(x: int) -> int:
    """The bitwise complement."""
    return ~x


def float_minus(x: float) -> float:
    """The prefix operator."""
    return -x


def float_abs(x: float) -> float:
    """Without its sign."""
    return abs(x)


def wrapped(value: int, bits: int) -> int:
    """The value modulo 2^bits, signed."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def whole_division(a: int, b: int) -> int:
    """Integer division toward zero, as in C."""
    if b == 0:
        raise division_by_zero()
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder(a: int, b: int) -> int:
    """The remainder, with the sign of the dividend."""
    if b == 0:
        raise division_by_zero()
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def ranged(function: Callable[..., int]) -> Maker:
    """Wrap an integer function whose result must fit its type."""
    return lambda call: lambda *args: in_range(function(*args), call.type.name)


def shift_left(call: Call) -> Function:
    """Wraps; the count is taken modulo the width of the machine's word."""
    name = call.type.name
    mask = 63 if name == "int8" else 31
    return lambda a, n: wrapped(a << (n & mask), _BITS[name])


def shift_right(call: Call) -> Function:
    """Arithmetic, the count modulo the width."""
    mask = 63 if call.type.name == "int8" else 31
    return lambda a, n: a >> (n & mask)


# --- floats ------------------------------------------------------------------------------------


def overflow() -> SqlError:
    """Of a float."""
    return SqlError("22003", "value out of range: overflow")


def _underflow() -> SqlError:
    return SqlError("22003", "value out of range: underflow")


def single(value: float) -> float:
    """The nearest float4; infinity when it is too large."""
    try:
        return to_single(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def float_operator(name: str) -> Maker:
    """+, -, *, / of floats with PostgreSQL's overflow, underflow and division errors."""
    plain = _FLOAT_OPERATORS[name]
    # A zero out of two numbers that are not zero is an underflow, except in sums.
    checked = name in "*/"

    def make(call: Call) -> Function:
        shape = single if call.type.name == "float4" else float

        def run(a: float, b: float) -> float:
            if name == "/" and b == 0:
                if math.isnan(a):
                    return a
                raise division_by_zero()
            result = shape(plain(a, b))
            if math.isinf(result) and not (math.isinf(a) or (math.isinf(b) and name != "/")):
                raise overflow()
            if checked and result == 0 and a != 0 and not _expected_zero(name, b):
                raise _underflow()
            return result

        return run

    return make


def _expected_zero(name: str, b: float) -> bool:
    return math.isinf(b) if name == "/" else b == 0


_FLOAT_OPERATORS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def sqrt(x: float) -> float:
    """2201F for negatives."""
    if x < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    return math.sqrt(x)


def exp(x: float) -> float:
    """22003 when it leaves the range of float8."""
    try:
        result = math.exp(x)
    except OverflowError:
        raise overflow() from None
    if result == 0 and not math.isinf(x):
        raise _underflow()
    return result


def check_logarithm(value: Decimal | float) -> None:
    """2201E for what has no logarithm."""
    if value == 0:
        raise SqlError("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise SqlError("2201E", "cannot take logarithm of a negative number")


def ln(x: float) -> float:
    """2201E for what has no logarithm."""
    check_logarithm(x)
    return math.log(x)


def log10(x: float) -> float:
    """2201E for what has no logarithm."""
    check_logarithm(x)
    return math.log10(x)


def power(x: float, y: float) -> float:
    """C's pow, with PostgreSQL's errors."""
    if x == 0 and y < 0:
        raise SqlError("2201F", "zero raised to a negative power is undefined")
    if x < 0 and math.isfinite(y) and y != math.floor(y):
        raise SqlError(
            "2201F", "a negative number raised to a non-integer power yields a complex result"
        )
    try:
        result = math.pow(x, y)
    except OverflowError:
        raise overflow() from None
    if result == 0 and x != 0 and math.isfinite(x) and math.isfinite(y):
        raise _underflow()
    return result


_DEGREE: Final = 0.0174532925199432957692


def degrees(x: float) -> float:
    """PostgreSQL divides by this constant."""
    result = x / _DEGREE
    if math.isinf(result) and not math.isinf(x):
        raise overflow()
    return result


def radians(x: float) -> float:
    """The other way."""
    result = x * _DEGREE
    if result == 0 and x != 0:
        raise _underflow()
    return result


def circular(function: Callable[[float], float]) -> Function:
    """The sine and its kin: no infinity; asin, acos: -1 to 1."""

    def run(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            raise SqlError("22003", "input is out of range") from None

    return run


def cbrt(x: float) -> float:
    """The real cube root."""
    return math.cbrt(x)


def toward(function: Callable[[float], int]) -> Function:
    """ceil, floor, trunc and round of floats, with the sign of zero and without overflow."""

    def run(x: float) -> float:
        if not math.isfinite(x):
            return x
        return math.copysign(float(function(x)), x) if abs(x) < 2**53 else x

    return run


def sign(x: float) -> float:
    """-1, 0 or 1; 0 for NaN."""
    return float((x > 0) - (x < 0))


# --- casts between numbers ---------------------------------------------------------------------


def float_to_integer(call: Call) -> Function:
    """Half to even."""
    name = call.type.name

    def run(x: float) -> int:
        if not math.isfinite(x):
            raise out_of_range(DISPLAY_NAMES.get(name, name))
        return in_range(round(x), name)

    return run


def numeric_to_integer(call: Call) -> Function:
    """Half away from zero."""
    return lambda x: in_range(int(round_numeric(x)), call.type.name)


def to_float4(x: Value) -> Value:
    """Rounded once, from the decimal digits."""
    return parse_text("float4", str(x))


def float8_to_float4(x: float) -> float:
    """22003 when it is too large or too small."""
    result = single(x)
    if math.isinf(result) and not math.isinf(x):
        raise overflow()
    if result == 0 and x != 0:
        raise _underflow()
    return result


def float_to_numeric(call: Call) -> Function:
    """15 significant digits of a float8, 6 of a float4."""
    digits = 14 if call.args[0].type.name == "float8" else 5

    def run(x: float) -> Decimal:
        if not math.isfinite(x):
            raise not_held("22003", "NaN and infinity are out of range for type numeric")
        return fit(Decimal(f"{x:.{digits}e}"), call.type)

    return run


def average(values: list[Decimal], type_: SqlType) -> Decimal:
    """The exact sum of values of a type, divided once."""
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    count = computed_numeric(19, 0, trim=False)
    source = replace(of_cast(type_), precision=NUMERIC_PRECISION_MAX)
    return fit(divide(total, Decimal(len(values)), (source, count)), NUMERIC)
