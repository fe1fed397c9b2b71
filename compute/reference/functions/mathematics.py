"""Degrees, hyperbolic functions, gamma, factorial, width_bucket() (float.c, numeric.c)."""

import ctypes
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Final, cast

from compute.reference.decimals import EXACT
from compute.reference.registry import Function, implements, makes
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Call

_RANDOM: Final = random.SystemRandom()
_DEGREE: Final = 0.0174532925199432957692
_SIN_30: Final = math.sin(30.0 * _DEGREE)
_ONE_MINUS_COS_60: Final = 1.0 - math.cos(60.0 * _DEGREE)
_ASIN_HALF: Final = math.asin(0.5)
_ACOS_HALF: Final = math.acos(0.5)
_ATAN_1: Final = math.atan(1.0)
_INT4_MAX: Final = 2**31 - 1


def _outside() -> SqlError:
    return SqlError("22003", "input is out of range")


# --- degrees: exact where the answer is (float.c, "trigonometric functions in degrees") -----------


def _sin_to_30(x: float) -> float:
    return math.sin(x * _DEGREE) / _SIN_30 / 2.0


def _cos_to_60(x: float) -> float:
    return 1.0 - (1.0 - math.cos(x * _DEGREE)) / _ONE_MINUS_COS_60 / 2.0


def _sin_to_90(x: float) -> float:
    return _sin_to_30(x) if x <= 30.0 else _cos_to_60(90.0 - x)


def _cos_to_90(x: float) -> float:
    return _cos_to_60(x) if x <= 60.0 else _sin_to_30(90.0 - x)


_TAN_45: Final = _sin_to_90(45.0) / _cos_to_90(45.0)
_COT_45: Final = _cos_to_90(45.0) / _sin_to_90(45.0)


def _folded(x: float, *, odd: bool, period: float) -> tuple[float, float]:
    """The angle in the first quadrant, and the sign. `period`: after which the sign comes back."""
    if math.isinf(x):
        raise _outside()
    sign, x = 1.0, math.fmod(x, 360.0)
    if x < 0.0:
        x = -x
        sign = -sign if odd else sign
    if x > 180.0:
        x = 360.0 - x
        sign = -sign if odd else sign
    if x > 90.0:
        x = 180.0 - x
        # Sines keep their sign there.
        sign = -sign if not odd or period == 180.0 else sign
    return x, sign


def _quotient(a: float, b: float) -> float:
    return a / b if b else math.copysign(math.inf, a) * math.copysign(1.0, b)


@implements("sind(float8)")
def sind(x: float) -> float:
    """The sine of an angle in degrees."""
    if math.isnan(x):
        return x
    x, sign = _folded(x, odd=True, period=360.0)
    return sign * _sin_to_90(x)


@implements("cosd(float8)")
def cosd(x: float) -> float:
    """The cosine of an angle in degrees."""
    if math.isnan(x):
        return x
    x, sign = _folded(x, odd=False, period=360.0)
    return sign * _cos_to_90(x)


@implements("tand(float8)")
def tand(x: float) -> float:
    """The tangent of an angle in degrees; infinite at 90."""
    if math.isnan(x):
        return x
    x, sign = _folded(x, odd=True, period=180.0)
    return sign * (_quotient(_sin_to_90(x), _cos_to_90(x)) / _TAN_45) + 0.0


@implements("cotd(float8)")
def cotd(x: float) -> float:
    """The cotangent of an angle in degrees; infinite at 0."""
    if math.isnan(x):
        return x
    x, sign = _folded(x, odd=True, period=180.0)
    return sign * (_quotient(_cos_to_90(x), _sin_to_90(x)) / _COT_45) + 0.0


def _asin_degrees(x: float) -> float:
    if x <= 0.5:
        return math.asin(x) / _ASIN_HALF * 30.0
    return 90.0 - math.acos(x) / _ACOS_HALF * 60.0


def _acos_degrees(x: float) -> float:
    if x <= 0.5:
        return 90.0 - math.asin(x) / _ASIN_HALF * 30.0
    return math.acos(x) / _ACOS_HALF * 60.0


@implements("asind(float8)")
def asind(x: float) -> float:
    """The arcsine in degrees."""
    if math.isnan(x):
        return x
    if not -1.0 <= x <= 1.0:
        raise _outside()
    return _asin_degrees(x) if x >= 0.0 else -_asin_degrees(-x)


@implements("acosd(float8)")
def acosd(x: float) -> float:
    """The arccosine in degrees."""
    if math.isnan(x):
        return x
    if not -1.0 <= x <= 1.0:
        raise _outside()
    return _acos_degrees(x) if x >= 0.0 else 90.0 + _asin_degrees(-x)


@implements("cot(float8)")
def cot(x: float) -> float:
    """The cotangent: 1 / tan."""
    if math.isinf(x):
        raise _outside()
    return _quotient(1.0, math.tan(x)) if x else math.copysign(math.inf, x)


# --- hyperbolic ----------------------------------------------------------------------------------


@implements("sinh(float8)")
def sinh(x: float) -> float:
    """The hyperbolic sine; infinite where it overflows."""
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(math.inf, x)


@implements("cosh(float8)")
def cosh(x: float) -> float:
    """The hyperbolic cosine; infinite where it overflows."""
    try:
        return math.cosh(x)
    except OverflowError:
        return math.inf


@implements("acosh(float8)")
def acosh(x: float) -> float:
    """The inverse hyperbolic cosine; 22003 below 1."""
    if x < 1.0:
        raise _outside()
    return math.acosh(x)


@implements("atanh(float8)")
def atanh(x: float) -> float:
    """The inverse hyperbolic tangent; infinite at 1 and -1, 22003 beyond."""
    if x < -1.0 or x > 1.0:
        raise _outside()
    return math.copysign(math.inf, x) if abs(x) == 1.0 else math.atanh(x)


# --- whole numbers and numeric -------------------------------------------------------------------


@implements("factorial(int8)")
def factorial(n: int) -> Decimal:
    """n!; 22003 for negatives, and for results beyond numeric."""
    if n < 0:
        raise SqlError("22003", "factorial of a negative number is undefined")
    if n > 60:
        raise SqlError("22003", "value overflows numeric format")
    return Decimal(math.factorial(n))


def _over_integers(function: Callable[[int, int], int]) -> Function:
    """A function of integers, of decimals with the same number of digits behind the point."""

    def run(a: Decimal, b: Decimal) -> Decimal:
        places = max(0, *(-int(x.as_tuple().exponent) for x in (a, b)))
        scaled = (int(x.scaleb(places, EXACT)) for x in (a, b))
        return Decimal(function(*scaled)).scaleb(-places, EXACT)

    return run


@makes("scale(numeric)")
def _make_scale(call: Call) -> Function:
    type_ = call.args[0].type

    def run(_value: Decimal) -> int:
        if type_.trim:
            raise not_supported("scale() of numeric whose scale is not declared")
        return type_.scale or 0

    return run


@implements("min_scale(numeric)")
def min_scale(value: Decimal) -> int:
    """Digits behind the point without trailing zeros."""
    return max(0, -int(value.normalize(EXACT).as_tuple().exponent)) if value else 0


def _buckets(count: int) -> int:
    if count <= 0:
        raise SqlError("2201G", "count must be greater than zero")
    return count


def _last_bucket(count: int) -> int:
    if count == _INT4_MAX:
        raise SqlError("22003", "integer out of range")
    return count + 1


@implements("width_bucket(float8,float8,float8,int4)")
def width_bucket(x: float, low: float, high: float, count: int) -> int:
    """The number of the equally wide bucket that holds x; 0 and count + 1 outside of them."""
    _buckets(count)
    if math.isnan(x) or math.isnan(low) or math.isnan(high):
        raise SqlError("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise SqlError("2201G", "lower and upper bounds must be finite")
    if low == high:
        raise SqlError("2201G", "lower bound cannot equal upper bound")
    if (x < low) if low < high else (x > low):
        return 0
    if (x >= high) if low < high else (x <= high):
        return _last_bucket(count)
    share = (x - low) / (high - low)
    if math.isinf(high - low):
        share = (x / 2 - low / 2) / (high / 2 - low / 2)
    return min(int(count * share), count - 1) + 1


@implements("width_bucket(numeric,numeric,numeric,int4)")
def width_bucket_numeric(x: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """The same for numeric, exactly."""
    _buckets(count)
    if low == high:
        raise SqlError("2201G", "lower bound cannot equal upper bound")
    if (x < low) if low < high else (x > low):
        return 0
    if (x >= high) if low < high else (x <= high):
        return _last_bucket(count)
    share = EXACT.multiply(EXACT.subtract(x, low), Decimal(count))
    return int(EXACT.divide_int(share, EXACT.subtract(high, low))) + 1


@implements("random(int4,int4)", "random(int8,int8)")
def random_between(low: int, high: int) -> int:
    """A random number of the range, each with the same probability."""
    if low > high:
        raise SqlError("22023", "lower bound must be less than or equal to upper bound")
    return _RANDOM.randint(low, high)


def _of_c(name: str) -> Callable[[float], float]:
    """A function of C's library: Python computes the gamma function in a way of its own, which
    differs in the last digits.
    """
    function = ctypes.CDLL(None)[name]
    function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
    return cast("Callable[[float], float]", function)


_TGAMMA: Final = _of_c("tgamma")
_LGAMMA: Final = _of_c("lgamma")


@implements("gamma(float8)")
def gamma(x: float) -> float:
    """The gamma function; 22003 at its poles and beyond a float."""
    if math.isnan(x) or x == math.inf:
        return x
    found = _TGAMMA(x)
    if not math.isfinite(found):
        raise SqlError("22003", "value out of range: overflow")
    if found == 0:
        raise SqlError("22003", "value out of range: underflow")
    return found


@implements("lgamma(float8)")
def lgamma(x: float) -> float:
    """The logarithm of its absolute value."""
    found = _LGAMMA(x)
    if math.isinf(found) and not math.isinf(x):
        raise SqlError("22003", "value out of range: overflow")
    return found


implements("atand(float8)")(lambda x: math.atan(x) / _ATAN_1 * 45.0)
implements("atan2d(float8,float8)")(lambda y, x: math.atan2(y, x) / _ATAN_1 * 45.0)
implements("tanh(float8)")(math.tanh)
implements("asinh(float8)")(math.asinh)
implements("erf(float8)")(math.erf)
implements("erfc(float8)")(math.erfc)
implements("gcd(numeric,numeric)")(_over_integers(math.gcd))
implements("lcm(numeric,numeric)")(_over_integers(math.lcm))
implements("random(numeric,numeric)")(_over_integers(random_between))
implements("random_normal(float8,float8)")(_RANDOM.gauss)
implements("trim_scale(numeric)")(lambda x: x)
