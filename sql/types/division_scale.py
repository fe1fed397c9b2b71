"""The scale of a numeric quotient, up to 18 decimals (select_div_scale of PostgreSQL's numeric.c).

A quotient has 16 significant digits at least, counted in groups of four, and not fewer decimals
than an operand shows:

    10 / 3.0         3.3333333333333333     16
    1000000 / 3.0    333333.333333333333    12
    1e19 / 2.000     5000000000000000000.000 what 2.000 shows; 0 without it
    1 / 3.0          0.333333333333333333   20 in PostgreSQL, all that our numeric holds here

INVARIANTS
  Q1  the weight of a quotient is estimated as PostgreSQL does: the power of 10,000 of its first
      group of digits, one less where the operands begin with the same group. `ScaleLevel.weight` k
      stands for quotients of this weight and more.
  Q2  an operand's display scale follows from its type, unless the type says `trim`. Then it is the
      least multiple of four that holds the value, 18 after 16. PostgreSQL could show more only for
      trailing zeros, which such a value has lost.
  Q3  the engines choose a level with comparisons (`sql/emit/quotient_levels.py`), the reference
      evaluator with `quotient_decimals`: the same one.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sql.types.sql_type import NUMERIC_SCALE_DEFAULT, SqlType

SIGNIFICANT_DIGITS: Final = 16
"""NUMERIC_MIN_SIG_DIGITS: as many as a double has."""
DIGITS_PER_GROUP: Final = 4
"""DEC_DIGITS: digits that PostgreSQL keeps together."""


@dataclass(frozen=True, slots=True)
class ScaleLevel:
    """Quotients of a weight have so many decimals, if operands that are trimmed are multiples of
    10^-`held` (Q1, Q2).
    """

    weight: int
    held: int
    decimals: int


def weight_and_group(number: Decimal) -> tuple[int, int]:
    """The power of 10,000 of a number's first group of digits, and that group."""
    if not number:
        return 0, 0
    weight, more = divmod(number.adjusted(), DIGITS_PER_GROUP)
    first = "".join(map(str, number.as_tuple().digits[: more + 1]))
    return weight, int(first.ljust(more + 1, "0"))


def estimated_weight(left: Decimal, right: Decimal) -> int:
    """The weight of left / right (Q1); `right` is not 0."""
    (weight1, first1), (weight2, first2) = weight_and_group(left), weight_and_group(right)
    return weight1 - weight2 - (1 if first1 <= first2 else 0)


def scale_levels(left: SqlType, right: SqlType) -> tuple[ScaleLevel, ...]:
    """The levels with fewer than 18 decimals that quotients of these types can have, by ascending
    weight from 0.
    """
    shown = max((type_.scale or 0 for type_ in (left, right) if not type_.trim), default=0)
    digits = (left.precision or 0) - (left.scale or 0) + (right.scale or 0)
    found = []
    for weight in range(SIGNIFICANT_DIGITS // DIGITS_PER_GROUP + 1):
        held = SIGNIFICANT_DIGITS - DIGITS_PER_GROUP * weight
        if DIGITS_PER_GROUP * weight < digits and max(held, shown) < NUMERIC_SCALE_DEFAULT:
            found.append(ScaleLevel(weight, held, max(held, shown)))
    return tuple(found)


def quotient_decimals(left: Decimal, right: Decimal, types: tuple[SqlType, SqlType]) -> int:
    """The decimals of left / right, 18 at most (Q3)."""
    trimmed = [value for value, type_ in zip((left, right), types, strict=True) if type_.trim]
    weight = estimated_weight(left, right)
    for level in reversed(scale_levels(*types)):
        if level.weight <= weight and all(_holds(value, level.held) for value in trimmed):
            return level.decimals
    return NUMERIC_SCALE_DEFAULT


def _holds(value: Decimal, places: int) -> bool:
    """Whether the value has no more decimals, not counting trailing zeros."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "numeric values are finite (sql/types/sql_type.py)"
    beyond = -exponent - places
    return beyond <= 0 or not any(digits[-beyond:])
