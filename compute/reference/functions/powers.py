"""Roots, powers and logarithms of numeric, with the scale that numeric.c gives them, 18 at most.

Results without an end are rounded to at least 16 significant digits, and to no fewer decimals than
an operand shows:

    sqrt(2)         1.414213562373095       one digit before the point, 15 behind it
    exp(10.0)       22026.465794806717
    ln(2.0)         0.6931471805599453
    2 ^ 0.5         1.4142135623730951
    1.123456789^2   1.2621551567501906      an exact power as well

The number of digits before the point is estimated in doubles, by the formulas of numeric.c, before
anything is computed: if an estimate is one too small, there is one decimal more.
"""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from compute.reference.decimals import fit_to_numeric_type
from compute.reference.functions.floats import check_logarithm
from compute.reference.registry import Function, Maker, makes
from sql.errors import SqlError, division_by_zero
from sql.plan.nodes import Call
from sql.types.division_scale import DIGITS_PER_GROUP, SIGNIFICANT_DIGITS, weight_and_group
from sql.types.sql_type import NUMERIC_SCALE_DEFAULT, SqlType

_EXACT: Final = Context(prec=80, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)
_LOG10_E: Final = 0.434294481903252
_LN_10: Final = 2.302585092994046
_INT4_MAX: Final = 2**31 - 1


def round_to_weight(value: Decimal, weight: int, shown: int) -> Decimal:
    """Round a value with `weight` digits before the point, of operands that show so many
    decimals.
    """
    decimals = min(max(SIGNIFICANT_DIGITS - weight, shown, 0), NUMERIC_SCALE_DEFAULT)
    return value.quantize(Decimal(1).scaleb(-decimals), context=_EXACT)


def shown_decimals(value: Decimal, type_: SqlType) -> int:
    """The decimals that PostgreSQL shows of an operand: its type's scale, or those of its value if
    the type has none (`trim`).
    """
    if not type_.trim:
        return type_.scale or 0
    exponent = value.normalize(_EXACT).as_tuple().exponent
    assert isinstance(exponent, int), "numeric values are finite (sql/types/sql_type.py)"
    return max(-exponent, 0)


def sqrt(value: Decimal, shown: int) -> Decimal:
    """The square root; 2201F for negatives."""
    if value < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    weight, _ = weight_and_group(value)
    return round_to_weight(_EXACT.sqrt(value), weight * DIGITS_PER_GROUP // 2 + 1, shown)


def _exp(value: Decimal, shown: int) -> Decimal:
    """22003 when 38 digits do not hold it."""
    if value > 100:
        raise SqlError("22003", "value overflows numeric format")
    return round_to_weight(_EXACT.exp(value), int(float(value) * _LOG10_E), shown)


def _ln(value: Decimal, shown: int) -> Decimal:
    """2201E for what has no logarithm."""
    check_logarithm(value)
    return round_to_weight(_EXACT.ln(value), _weight_of_ln(value), shown)


def _log10(value: Decimal, shown: int) -> Decimal:
    """2201E for what has no logarithm."""
    return _log(Decimal(10), value, shown)


def _log(base: Decimal, value: Decimal, shown: int) -> Decimal:
    """log(b, x)."""
    check_logarithm(base)
    check_logarithm(value)
    divisor = _EXACT.ln(base)
    if not divisor:
        raise division_by_zero()
    logarithm = _EXACT.log10(value) if base == 10 else _EXACT.divide(_EXACT.ln(value), divisor)
    return round_to_weight(logarithm, _weight_of_ln(value) - _weight_of_ln(base), shown)


def _weight_of_ln(value: Decimal) -> int:
    """estimate_ln_dweight: the digits of ln(value) before the point, less one."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        distance = _EXACT.subtract(value, Decimal(1))
        if not distance:
            return 0
        weight, group = weight_and_group(distance)
        return weight * DIGITS_PER_GROUP + int(math.log10(group))
    weight, _ = weight_and_group(value)
    leading = int(value.scaleb(DIGITS_PER_GROUP * (1 - weight), _EXACT))
    found = math.log(leading) + (weight - 1) * DIGITS_PER_GROUP * _LN_10
    return int(math.log10(abs(found)))


def _power(base: Decimal, exponent: Decimal, shown: int) -> Decimal:
    """Exact before it is rounded for whole exponents of moderate size, else exp(y ln x)."""
    if not base:
        if exponent < 0:
            raise SqlError("2201F", "zero raised to a negative power is undefined")
        return Decimal(0) if exponent else Decimal(1)
    is_whole = exponent == exponent.to_integral_value()
    if base < 0 and not is_whole:
        raise SqlError(
            "2201F", "a negative number raised to a non-integer power yields a complex result"
        )
    digits = exponent * base.copy_abs().log10(_EXACT)
    if digits > 40:
        raise SqlError("22003", "value overflows numeric format")
    if is_whole:
        exponent = exponent.to_integral_value()
    return round_to_weight(_EXACT.power(base, exponent), int(digits), shown)


def _made(function: Callable[..., Decimal]) -> Maker:
    """The function of values and the decimals that they show, fitted to the type of the call."""

    def make(call: Call) -> Function:
        types = [arg.type for arg in call.args]

        def run(*values: Decimal) -> Decimal:
            shown = max(map(shown_decimals, values, types))
            return fit_to_numeric_type(function(*values, shown), call.type)

        return run

    return make


makes("sqrt(numeric)")(_made(sqrt))
makes("exp(numeric)")(_made(_exp))
makes("ln(numeric)")(_made(_ln))
makes("log(numeric)", "log10(numeric)")(_made(_log10))
makes("log(numeric,numeric)")(_made(_log))
makes("numeric ^ numeric", "power(numeric,numeric)", "pow(numeric,numeric)")(_made(_power))
