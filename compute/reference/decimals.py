"""Exact arithmetic on Decimals, and values at the scale of a numeric type.

INVARIANTS
  U1  every arithmetic on Decimals goes through `EXACT`, whose precision no operand of 38 digits
      can exceed; rounding happens in `fit_to_numeric_type` and `numbers.divide`, and nowhere else.

Decimals may keep the exponent they came with: only `fit_to_numeric_type` gives a value its type's
scale.
"""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from sql.types.sql_type import SqlType, Value
from sql.types.text_input import field_overflow

EXACT: Final = Context(prec=200, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)


def fit_to_numeric_type(
    value: Decimal, type_: SqlType, *, rounding: str = ROUND_HALF_UP
) -> Decimal:
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


def fitted(function: Callable[..., Value], type_: SqlType) -> Callable[..., Value]:
    """The function with its result at the type's scale."""

    def run(*args: Value) -> Value:
        result = function(*args)
        return fit_to_numeric_type(result, type_) if isinstance(result, Decimal) else result

    return run
