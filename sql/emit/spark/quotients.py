"""Divide numerics on Spark with PostgreSQL's decimals, rounded once (select_div_scale).

The number of decimals is that of `sql/types/division_scale.py`. Spark divides two decimals(38,18)
into 18 decimals that are rounded already. The quotient is rounded once more, to the decimals that
PostgreSQL would have, and must not have been rounded up before:

    q = a / b      18 decimals, half away from zero
    d              q, or one unit of its last decimal less where q * b > a
    d or q         rounded to the decimals of their level

INVARIANTS
  Q1  operands are evaluated once, as the argument of a lambda: they may be long or volatile.
  Q2  `d` is exact for operands below 1e20. Of larger ones a quotient of 18 decimals is rounded
      twice: off by one in its last decimal, if the decimals cut off are a 5 and zeros.
"""

from typing import Final

from sql.emit.quotient_levels import QuotientTexts, quotient_by_level
from sql.emit.spark.types import bind_variable, spark_type, unsupported
from sql.emit.state import Scope
from sql.types.division_scale import DIGITS_PER_GROUP
from sql.types.sql_type import NUMERIC, NUMERIC_PRECISION_MAX, NUMERIC_SCALE_DEFAULT, SqlType

_DIGITS_MAX: Final = NUMERIC_PRECISION_MAX - NUMERIC_SCALE_DEFAULT
"""Digits before the point of a decimal(38,18)."""
_LARGE: Final = f"1e{_DIGITS_MAX}BD"
_UNIT: Final = "0.000000000000000001BD"
_NUMERIC: Final = spark_type(NUMERIC)


def quotient(left: tuple[str, SqlType], right: tuple[str, SqlType], scope: Scope) -> str:
    """The quotient of two texts of these types, a decimal(38,18)."""
    (x, a), (y, b) = left, right
    if max(a.scale or 0, b.scale or 0) > NUMERIC_SCALE_DEFAULT:
        raise unsupported("a quotient of numbers with so many decimals")
    pair = scope.variable()
    # Spark's abs() keeps 34 digits.
    operands = (f"greatest({pair}.x, 0BD - {pair}.x)", f"greatest({pair}.y, 0BD - {pair}.y)")
    types = (a, b)
    text = _quotient(operands, types, scope)
    large = [
        f"{operand} >= {_LARGE}"
        for operand, type_ in zip(operands, types, strict=True)
        if (type_.precision or 0) - (type_.scale or 0) > _DIGITS_MAX
    ]
    if large:
        other = _large_quotient(operands, types, scope)
        text = f"case when {' or '.join(large)} then {other} else {text} end"
    signed = f"{text} * case when ({pair}.x < 0) <> ({pair}.y < 0) then -1 else 1 end"
    return bind_variable(pair, f"named_struct('x', {x}, 'y', {y})", f"cast({signed} as {_NUMERIC})")


def _quotient(operands: tuple[str, str], types: tuple[SqlType, SqlType], scope: Scope) -> str:
    a, b = (f"cast({operand} as {_NUMERIC})" for operand in operands)
    q, d = scope.variable(), scope.variable()
    down = f"case when {q} >= 1 and {_exceeds(q, a, b)} then {q} - {_UNIT} else {q} end"
    text = bind_variable(d, f"cast({down} as {_NUMERIC})", _leveled((q, d), operands, types))
    return bind_variable(q, f"{a} / {b}", text)


def _exceeds(q: str, a: str, b: str) -> str:
    """Whether q * b > a, though the product has 36 decimals: all but those of the fractions'
    product first, which is less than 100 away from it.
    """
    whole, part = f"floor({q})", f"cast({q} - floor({q}) as decimal(18,18))"
    units, rest = f"cast(floor({b}) as decimal(20,0))", f"cast({b} - floor({b}) as decimal(18,18))"
    most = f"{whole} * {b} + {part} * {units} - {a}"
    return f"cast({most} as decimal(38,36)) + {part} * {rest} > 0"


def _large_quotient(operands: tuple[str, str], types: tuple[SqlType, SqlType], scope: Scope) -> str:
    """Of operands of which one has more than 20 digits before the point (Q2)."""
    x, y = operands
    # The whole multiple of the divisor first: a larger quotient is no decimal(38,18).
    rest = f"({x} % {y})"
    whole = f"cast(({x} - {rest}) / {y} as decimal({_DIGITS_MAX},0))"
    part = f"cast(cast({rest} as {_NUMERIC}) / cast({y} as {_NUMERIC}) as {_NUMERIC})"
    q = scope.variable()
    value = (
        f"case when {y} >= {_LARGE} then cast({x} / {y} as {_NUMERIC}) else {whole} + {part} end"
    )
    return bind_variable(q, f"cast({value} as {_NUMERIC})", _leveled((q, q), operands, types))


def _leveled(
    quotients: tuple[str, str], operands: tuple[str, str], types: tuple[SqlType, SqlType]
) -> str:
    """Of the quotient as it is and rounded down, the one or the other with its decimals."""
    q, d = quotients

    def held(places: int) -> str:
        return " and ".join(
            # Of two types Spark compares in one that gives up decimals.
            f"{operand} = cast(round({operand}, {places}) as {spark_type(type_)})"
            for operand, type_ in zip(operands, types, strict=True)
            if type_.trim and (type_.scale or 0) > places
        )

    def result(decimals: int | None) -> str:
        return q if decimals is None else f"cast(round({d}, {decimals}) as {_NUMERIC})"

    first, second = map(_first_group, operands, types)
    return quotient_by_level(
        *types, QuotientTexts(lambda n: f"{q} < {n}BD", f"{first} = {second}", held, result)
    )


def _first_group(operand: str, type_: SqlType) -> str:
    """The first of the groups of four digits, counted from the point, as text."""
    digits = f"ltrim('0', replace(cast({operand} as string), '.', ''))"
    # Any multiple of four keeps what is divided positive.
    more = DIGITS_PER_GROUP * NUMERIC_PRECISION_MAX - 1 - (type_.scale or 0)
    return f"rpad({digits}, (length({digits}) + {more}) % {DIGITS_PER_GROUP} + 1, '0')"
