"""Precision and scale of numeric expressions, so that 38-digit engines can compute them.

PostgreSQL's numeric has no bound. The engines stop at 38 digits and round products and quotients of
wide decimals silently; each has its own idea of a result's scale. So the binder decides: every rule
gives the type of the result. Where the engine's own rule would not yield it, the rule also gives
the types that the operands are cast to first (Spark with `allowPrecisionLoss=false`).

    numeric(10,2) * numeric(5,3)   exact: (16,5)
    numeric * numeric              both narrowed to scale 9, refused if a digit would go: (38,18)
    quotient * quotient            computed whole, rounded: (38,18)
    anything / anything            dividend at scale 18 at least, the quotient cast to (38,18)

INVARIANTS
  N1  precision <= 38 and 0 <= scale <= precision, for results and for operands.
  N2  an exact operand never loses a digit: a cast that narrows it is a checked one (22003). Only
      values that were rounded already (`exact` false: quotients, averages, roots) may be rounded
      again.
  N3  when 38 digits do not suffice, digits before the point are given up, not those behind it. Too
      large a value is an error; a lost digit would go unnoticed.

Not here: where the casts go (`sql/binder/expressions/calls.py`), arithmetic itself (the engines).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, TypeAlias

from sql.types.datetime.extract_fields import field_scale
from sql.types.sql_type import (
    NUMERIC,
    NUMERIC_PRECISION_MAX,
    NUMERIC_SCALE_DEFAULT,
    SqlType,
    array_of,
    computed_numeric,
)

PRODUCT_SCALE_MAX: Final = 24
"""A product of this scale still has 14 digits before the point; a larger value overflows earlier, a
smaller one narrows (and so refuses) products of everyday amounts with quotients."""

_INTEGER_DIGITS: Final = {"int2": 5, "int4": 10, "int8": 19, "oid": 10, "bool": 1}


@dataclass(frozen=True, slots=True)
class NumericOperand:
    """An argument of a numeric function. `constant`, `word`: its value if it is an integer or text
    literal.
    """

    type: SqlType
    exact: bool = True
    constant: int | None = None
    word: str | None = None


@dataclass(frozen=True, slots=True)
class NumericOutcome:
    """The result's type; `operands[i]`: the type to cast argument i to, or None to leave it."""

    result: SqlType
    operands: tuple[SqlType | None, ...] = ()
    exact: bool = True


NumericRule: TypeAlias = Callable[[Sequence[NumericOperand]], NumericOutcome]


def bounded_numeric(digits: int, scale: int, *, trim: bool) -> SqlType:
    """`digits` before the point and `scale` behind it; beyond 38 the front is cut (N1, N3)."""
    scale = min(scale, NUMERIC_PRECISION_MAX)
    return computed_numeric(min(max(digits + scale, 1), NUMERIC_PRECISION_MAX), scale, trim=trim)


def numeric_literal_type(value: Decimal) -> SqlType:
    """The type of a numeric literal: exactly its digits. The scale may exceed what fits; see
    `fits_engine_precision`.
    """
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "numeric values are finite (sql/types/sql_type.py)"
    scale = max(-exponent, 0)
    return computed_numeric(max(len(digits) + max(exponent, 0), scale, 1), scale, trim=False)


def fits_engine_precision(type_: SqlType) -> bool:
    """Whether the engines can hold values of this precision (N1)."""
    return (type_.precision or 0) <= NUMERIC_PRECISION_MAX


def numeric_cast_type(source: SqlType) -> SqlType:
    """The type of `x::numeric` without modifier: as narrow as the source allows."""
    if (element := source.element) is not None:
        return array_of(numeric_cast_type(element))
    if source.name == "numeric":
        return source.bare()
    digits = _INTEGER_DIGITS.get(source.name)
    return NUMERIC if digits is None else computed_numeric(digits, 0, trim=False)


def unify_numeric_types(types: Sequence[SqlType]) -> SqlType:
    """One numeric type that holds values of all: CASE, UNION, comparisons. Equal modifiers
    survive.
    """
    first = types[0]
    if all(type_ == first for type_ in types):
        return first
    if first.element is not None:
        return array_of(unify_numeric_types([type_.element or NUMERIC for type_ in types]))
    scale = max(_scale(type_) for type_ in types)
    digits = max(_digits(type_) for type_ in types)
    uneven = any(type_.trim or _scale(type_) != scale for type_ in types)
    return bounded_numeric(digits, scale, trim=uneven)


def is_lossless_numeric_cast(source: SqlType, target: SqlType) -> bool:
    """Whether a cast of an integer or numeric to a numeric keeps every value: it cannot fail."""
    before = numeric_cast_type(source)
    return _scale(before) <= _scale(target) and _digits(before) <= _digits(target)


def determine_numeric_result(rule: str, operands: Sequence[NumericOperand]) -> NumericOutcome:
    """Apply the rule that a row of the function table names."""
    return NUMERIC_RULES[rule](operands)


# --- rules -------------------------------------------------------------------------------------


def _scale(type_: SqlType) -> int:
    return type_.scale or 0


def _digits(type_: SqlType) -> int:
    assert type_.precision is not None, (
        f"a numeric without precision (Y1 of `sql_type.py`): {type_}"
    )
    return type_.precision - (type_.scale or 0)


def _add(operands: Sequence[NumericOperand]) -> NumericOutcome:
    left, right = operands[0].type, operands[1].type
    scale = max(_scale(left), _scale(right))
    digits = max(_digits(left), _digits(right)) + 1
    return NumericOutcome(
        bounded_numeric(digits, scale, trim=left.trim or right.trim), exact=_all_exact(operands)
    )


def _multiply(operands: Sequence[NumericOperand]) -> NumericOutcome:
    left, right = operands[0], operands[1]
    trim = left.type.trim or right.type.trim
    digits = _digits(left.type) + _digits(right.type) + 1
    scale = _scale(left.type) + _scale(right.type)
    exact = _all_exact(operands)
    if digits + scale <= NUMERIC_PRECISION_MAX or scale <= PRODUCT_SCALE_MAX:
        return NumericOutcome(bounded_numeric(digits, scale, trim=trim), exact=exact)
    if not exact:
        # Computed whole, and then rounded once (`@multiply`).
        return NumericOutcome(
            bounded_numeric(digits, NUMERIC_SCALE_DEFAULT, trim=True), exact=False
        )
    left_scale, right_scale = _split_scale(
        _scale(left.type), _scale(right.type), NUMERIC_SCALE_DEFAULT
    )
    casts = (_narrowed(left.type, left_scale), _narrowed(right.type, right_scale))
    return NumericOutcome(
        bounded_numeric(digits, left_scale + right_scale, trim=True), casts, exact=exact
    )


def _split_scale(left: int, right: int, total: int) -> tuple[int, int]:
    """Share `total` decimals: the operand that needs fewer than half keeps its own."""
    half = total // 2
    if left <= half:
        return left, min(right, total - left)
    if right <= half:
        return min(left, total - right), right
    return half, half


def _narrowed(type_: SqlType, scale: int) -> SqlType | None:
    if scale == _scale(type_):
        return None
    return bounded_numeric(NUMERIC_PRECISION_MAX, scale, trim=True)


def _divide(operands: Sequence[NumericOperand]) -> NumericOutcome:
    """(38,18): a dividend of scale 18 makes Spark compute at least 18 decimals for any divisor."""
    dividend = operands[0].type
    scale = max(_scale(dividend), NUMERIC_SCALE_DEFAULT)
    digits = min(_digits(dividend), NUMERIC_PRECISION_MAX - NUMERIC_SCALE_DEFAULT)
    wide = bounded_numeric(digits, scale, trim=True)
    cast = None if _shape(wide) == _shape(dividend) else wide
    return NumericOutcome(NUMERIC, (cast, None), exact=False)


def _modulo(operands: Sequence[NumericOperand]) -> NumericOutcome:
    left, right = operands[0].type, operands[1].type
    scale = max(_scale(left), _scale(right))
    digits = min(_digits(left), _digits(right))
    trim = left.trim or right.trim
    return NumericOutcome(bounded_numeric(digits, scale, trim=trim), exact=_all_exact(operands))


def _same(operands: Sequence[NumericOperand]) -> NumericOutcome:
    first = operands[0]
    return NumericOutcome(first.type.bare(), exact=first.exact)


def _whole(operands: Sequence[NumericOperand]) -> NumericOutcome:
    """ceil, floor, round to an integer: one more digit before the point, none behind."""
    return NumericOutcome(bounded_numeric(_digits(operands[0].type) + 1, 0, trim=False))


def _truncated(operands: Sequence[NumericOperand]) -> NumericOutcome:
    return NumericOutcome(bounded_numeric(_digits(operands[0].type), 0, trim=False))


def _to_scale(operands: Sequence[NumericOperand]) -> NumericOutcome:
    """round(x, n), trunc(x, n): scale n when n is a constant, else the scale of x."""
    value, places = operands[0], operands[1].constant
    if places is None:
        return NumericOutcome(
            bounded_numeric(_digits(value.type) + 1, _scale(value.type), trim=True)
        )
    scale = min(max(places, 0), NUMERIC_PRECISION_MAX - 1)
    return NumericOutcome(
        bounded_numeric(_digits(value.type) + 1, scale, trim=False), exact=value.exact
    )


def _sign(_operands: Sequence[NumericOperand]) -> NumericOutcome:
    return NumericOutcome(computed_numeric(1, 0, trim=False))


def _sum(operands: Sequence[NumericOperand]) -> NumericOutcome:
    type_ = operands[0].type
    if type_.name != "numeric":
        return NumericOutcome(computed_numeric(NUMERIC_PRECISION_MAX, 0, trim=False))
    return NumericOutcome(
        computed_numeric(NUMERIC_PRECISION_MAX, _scale(type_), trim=type_.trim),
        exact=operands[0].exact,
    )


def _inexact(_operands: Sequence[NumericOperand]) -> NumericOutcome:
    return NumericOutcome(NUMERIC, exact=False)


def _multiple(operands: Sequence[NumericOperand]) -> NumericOutcome:
    scale = max(_scale(operand.type) for operand in operands)
    trim = any(operand.type.trim for operand in operands)
    return NumericOutcome(
        bounded_numeric(NUMERIC_PRECISION_MAX, scale, trim=trim), exact=_all_exact(operands)
    )


def _trimmed(operands: Sequence[NumericOperand]) -> NumericOutcome:
    first = operands[0]
    return NumericOutcome(replace(first.type.bare(), trim=True), exact=first.exact)


def _default(_operands: Sequence[NumericOperand]) -> NumericOutcome:
    return NumericOutcome(NUMERIC)


def _integer(_operands: Sequence[NumericOperand]) -> NumericOutcome:
    return NumericOutcome(computed_numeric(NUMERIC_PRECISION_MAX, 0, trim=False))


def _extracted(operands: Sequence[NumericOperand]) -> NumericOutcome:
    """The scale of the field; without a known field, micros without trailing zeros."""
    field, source = operands[0].word, operands[1].type
    scale = None if field is None else field_scale(field, source)
    if scale is None:
        return NumericOutcome(computed_numeric(26, 6, trim=True))
    return NumericOutcome(computed_numeric(20 + scale, scale, trim=False))


def _unified(operands: Sequence[NumericOperand]) -> NumericOutcome:
    numerics = [operand.type for operand in operands if operand.type.name == "numeric"]
    common = unify_numeric_types(numerics)
    casts = tuple(
        common
        if operand.type.name == "numeric" and _shape(operand.type) != _shape(common)
        else None
        for operand in operands
    )
    return NumericOutcome(common.bare(), casts, exact=_all_exact(operands))


def _all_exact(operands: Sequence[NumericOperand]) -> bool:
    return all(operand.exact for operand in operands)


def _shape(type_: SqlType) -> tuple[int | None, int | None]:
    return type_.precision, type_.scale


NUMERIC_RULES: Final[dict[str, NumericRule]] = {
    "same": _same,  # abs, negation, plus, min, max: the type of the first argument
    "add": _add,  # + and -
    "multiply": _multiply,
    "divide": _divide,
    "modulo": _modulo,
    "whole": _whole,  # ceil, floor, round(x)
    "truncate": _truncated,  # trunc(x)
    "to_scale": _to_scale,  # round(x, n), trunc(x, n)
    "sign": _sign,
    "sum": _sum,  # of numeric or int8: (38, scale)
    "inexact": _inexact,  # avg, stddev, sqrt, exp, ln, log, power: (38,18), rounded
    "multiple": _multiple,  # lcm: as many digits before the point as there are
    "trim": _trimmed,  # trim_scale: the type of the argument, without zeros at the end
    "default": _default,  # (38,18), exact
    "integer": _integer,  # (38,0): div, factorial ..
    "extract": _extracted,  # extract(..): the scale of the field
    "unify": _unified,  # comparisons and everything whose numeric arguments must have one type
}
"""The names that `numeric` of a row in the function table may have."""
