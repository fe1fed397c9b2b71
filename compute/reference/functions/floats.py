"""Arithmetic, casts and mathematics of floats, with PostgreSQL's results and errors (float.c).

INVARIANTS
  U2  a float4 is always rounded to 32 bits.
"""

import math
import random
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Final

from compute.reference.decimals import fit_to_numeric_type
from compute.reference.functions.numbers import in_range
from compute.reference.registry import Function, Maker, implements, makes
from sql.errors import SqlError, division_by_zero, out_of_engine_range, out_of_range
from sql.plan.nodes import Call
from sql.types.sql_type import DISPLAY_NAMES, Value
from sql.types.text_input import parse_text, round_to_float4

_RANDOM: Final = random.SystemRandom()
_FLOATS: Final = ("float4", "float8")


@implements("- float4", "- float8")
def float_minus(x: float) -> float:
    """The prefix operator."""
    return -x


@implements("@ float4", "@ float8", "abs(float4)", "abs(float8)")
def float_abs(x: float) -> float:
    """Without its sign."""
    return abs(x)


def float_overflow() -> SqlError:
    """Of a float."""
    return SqlError("22003", "value out of range: overflow")


def _underflow() -> SqlError:
    return SqlError("22003", "value out of range: underflow")


def round_to_float32(value: float) -> float:
    """The nearest float4; infinity when it is too large."""
    try:
        return round_to_float4(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def float_operator(name: str) -> Maker:
    """+, -, *, / of floats with PostgreSQL's overflow, underflow and division errors."""
    plain = _FLOAT_OPERATORS[name]
    # A zero out of two numbers that are not zero is an underflow, except in sums.
    checked = name in "*/"

    def make(call: Call) -> Function:
        shape = round_to_float32 if call.type.name == "float4" else float

        def run(a: float, b: float) -> float:
            if name == "/" and b == 0:
                if math.isnan(a):
                    return a
                raise division_by_zero()
            result = shape(plain(a, b))
            if math.isinf(result) and not (math.isinf(a) or (math.isinf(b) and name != "/")):
                raise float_overflow()
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
for _sign in _FLOAT_OPERATORS:
    _pairs = product(_FLOATS, repeat=2)
    makes(*[f"{left} {_sign} {right}" for left, right in _pairs])(float_operator(_sign))
implements("+ float4", "+ float8")(float)


@implements("is_negative_zero(float4)", "is_negative_zero(float8)")
def _is_negative_zero(value: float) -> bool:
    return value == 0 and math.copysign(1, value) < 0


@implements("|/ float8", "sqrt(float8)")
def sqrt(x: float) -> float:
    """2201F for negatives."""
    if x < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    return math.sqrt(x)


@implements("exp(float8)")
def exp(x: float) -> float:
    """22003 when it leaves the range of float8."""
    try:
        result = math.exp(x)
    except OverflowError:
        raise float_overflow() from None
    if result == 0 and not math.isinf(x):
        raise _underflow()
    return result


def check_logarithm(value: Decimal | float) -> None:
    """2201E for what has no logarithm."""
    if value == 0:
        raise SqlError("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise SqlError("2201E", "cannot take logarithm of a negative number")


@implements("ln(float8)")
def ln(x: float) -> float:
    """2201E for what has no logarithm."""
    check_logarithm(x)
    return math.log(x)


@implements("log(float8)", "log10(float8)")
def log10(x: float) -> float:
    """2201E for what has no logarithm."""
    check_logarithm(x)
    return math.log10(x)


@implements("float8 ^ float8", "power(float8,float8)", "pow(float8,float8)")
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
        raise float_overflow() from None
    if result == 0 and x != 0 and math.isfinite(x) and math.isfinite(y):
        raise _underflow()
    return result


_DEGREE: Final = 0.0174532925199432957692


@implements("degrees(float8)")
def degrees(x: float) -> float:
    """PostgreSQL divides by this constant."""
    result = x / _DEGREE
    if math.isinf(result) and not math.isinf(x):
        raise float_overflow()
    return result


@implements("radians(float8)")
def radians(x: float) -> float:
    """The other way."""
    result = x * _DEGREE
    if result == 0 and x != 0:
        raise _underflow()
    return result


def trigonometric(function: Callable[[float], float]) -> Function:
    """The sine and its kin: no infinity; asin, acos: -1 to 1."""

    def run(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            raise SqlError("22003", "input is out of range") from None

    return run


@implements("||/ float8", "cbrt(float8)")
def cbrt(x: float) -> float:
    """The real cube root."""
    return math.cbrt(x)


def float_rounding(function: Callable[[float], int]) -> Function:
    """ceil, floor, trunc and round of floats, with the sign of zero and without overflow."""

    def run(x: float) -> float:
        if not math.isfinite(x):
            return x
        return math.copysign(float(function(x)), x) if abs(x) < 2**53 else x

    return run


@implements("sign(float8)")
def sign(x: float) -> float:
    """-1, 0 or 1; 0 for NaN."""
    return float((x > 0) - (x < 0))


implements("ceil(float8)", "ceiling(float8)")(float_rounding(math.ceil))
implements("floor(float8)")(float_rounding(math.floor))
implements("trunc(float8)")(float_rounding(math.trunc))
implements("round(float8)")(float_rounding(round))
implements("sin(float8)")(trigonometric(math.sin))
implements("cos(float8)")(trigonometric(math.cos))
implements("tan(float8)")(trigonometric(math.tan))
implements("asin(float8)")(trigonometric(math.asin))
implements("acos(float8)")(trigonometric(math.acos))
implements("atan(float8)")(math.atan)
implements("atan2(float8,float8)")(math.atan2)
implements("pi()")(lambda: math.pi)
implements("random()")(_RANDOM.random)


# --- casts ----------------------------------------------------------------------------------------


@makes(*[f"{source}::{target}" for source in _FLOATS for target in ("int2", "int4", "int8")])
def float_to_integer(call: Call) -> Function:
    """Half to even."""
    name = call.type.name

    def run(x: float) -> int:
        if not math.isfinite(x):
            raise out_of_range(DISPLAY_NAMES.get(name, name))
        return in_range(round(x), name)

    return run


@implements("int2::float4", "int4::float4", "int8::float4", "numeric::float4")
def to_float4(x: Value) -> Value:
    """Rounded once, from the decimal digits."""
    return parse_text("float4", str(x))


@implements("float8::float4")
def float8_to_float4(x: float) -> float:
    """22003 when it is too large or too small."""
    result = round_to_float32(x)
    if math.isinf(result) and not math.isinf(x):
        raise float_overflow()
    if result == 0 and x != 0:
        raise _underflow()
    return result


@makes("float4::numeric", "float8::numeric")
def float_to_numeric(call: Call) -> Function:
    """15 significant digits of a float8, 6 of a float4."""
    digits = 14 if call.args[0].type.name == "float8" else 5

    def run(x: float) -> Decimal:
        if not math.isfinite(x):
            raise out_of_engine_range("22003", "NaN and infinity are out of range for type numeric")
        return fit_to_numeric_type(Decimal(f"{x:.{digits}e}"), call.type)

    return run


implements(*[f"{source}::float8" for source in ("int2", "int4", "int8", "float4", "numeric")])(
    float
)
