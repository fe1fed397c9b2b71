"""Divide numerics on DuckDB exactly, which itself divides decimals as doubles (select_div_scale).

A quotient has the decimals of `sql/types/division_scale.py` and is rounded once, half away from
zero. It is computed from the unscaled operands x and y, in 128 bits:

    2 x 10^18 // y               where x has few digits: 18 decimals, and one bit more
    x // y, nine decimals of
    the rest, nine of its rest   where y has 28 digits at most
    by the reference evaluator   elsewhere, row by row

INVARIANTS
  Q1  operands are arguments of lambdas. DuckDB computes an expression that is written twice
      beforehand, also for rows of another branch of the CASE around it: there it would overflow.
  Q2  the bit beyond the last decimal tells whether to round up, at that decimal or before it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sql.emit.duckdb.evaluator_calls import evaluator_call_over, function_table_call
from sql.emit.duckdb.types import bind_variable, error
from sql.emit.quotient_levels import QuotientTexts, quotient_by_level
from sql.emit.state import Scope
from sql.types.division_scale import DIGITS_PER_GROUP
from sql.types.sql_type import NUMERIC, NUMERIC_PRECISION_MAX, NUMERIC_SCALE_DEFAULT, SqlType

_SHORT: Final = 37
"""A number of so many digits can be doubled in 128 bits."""
_LONG: Final = 28
"""A number of so many digits can be doubled and multiplied by 10^9 in 128 bits."""
_HALF: Final = 10 ** (NUMERIC_SCALE_DEFAULT // 2)

_Types = tuple[SqlType, SqlType]


def quotient(left: tuple[str, SqlType], right: tuple[str, SqlType], scope: Scope) -> str:
    """The quotient of two texts of these types."""
    types = (left[1], right[1])
    operands = scope.variable()
    x, y = f"{operands}.x", f"{operands}.y"
    whens = [
        f"when {x} is null or {y} is null then null",
        f"when {y} = 0 then {error('22012', 'division by zero')}",
    ]
    if not _is_short(types):
        other = evaluator_call_over(
            function_table_call("numeric / numeric", types, NUMERIC), (x, y), scope
        )
        scale = max(type_.scale or 0 for type_ in types)
        for text, type_, digits in zip((x, y), types, (NUMERIC_PRECISION_MAX, _LONG), strict=True):
            whens += [
                f"when {larger} then {other}" for larger in _larger(text, type_, digits - scale)
            ]
        # Doubled, with 18 decimals, 8.5e19 is not held.
        beyond = f"abs(cast({x} as double)) > 8e19 * abs(cast({y} as double))"
        whens.append(f"when {beyond} then {other}")
    sign = f"case when ({x} < 0) <> ({y} < 0) then -1 else 1 end"
    unsigned = f"cast({_unsigned((x, y), types, scope)} * {sign} as decimal(38,0))"
    unit = "cast('0.000000000000000001' as decimal(19,18))"
    text = f"case {' '.join(whens)} else {unsigned} * {unit} end"
    return bind_variable(operands, f"{{'x': {left[0]}, 'y': {right[0]}}}", text)


def _shift(types: _Types) -> int:
    """The power of ten that gives the unscaled quotient 18 decimals."""
    return NUMERIC_SCALE_DEFAULT + (types[1].scale or 0) - (types[0].scale or 0)


def _is_short(types: _Types) -> bool:
    shift = _shift(types)
    return shift >= 0 and (types[0].precision or 0) + shift <= _SHORT


def _larger(text: str, type_: SqlType, digits: int) -> Iterator[str]:
    """Whether the value has more digits before the point; nothing if its type says no."""
    if digits < 1:
        yield "true"
    elif (type_.precision or 0) - (type_.scale or 0) > digits:
        yield f"abs({text}) >= cast('{10**digits}' as decimal({digits + 1},0))"


def _unsigned(operands: tuple[str, str], types: _Types, scope: Scope) -> str:
    """The absolute quotient, times 10^18, rounded to its decimals."""
    pair, double = scope.variable(), scope.variable()
    scales = [type_.scale or 0 for type_ in types]
    common = scales if _is_short(types) else [max(scales), max(scales)]
    x, y = map(_unscaled, operands, types, common)
    leveled_text = _leveled((f"{pair}.x", f"{pair}.y", double), types, common)
    doubled = _short(pair, _shift(types)) if _is_short(types) else _long(pair, scope)
    return bind_variable(
        pair, f"{{'x': {x}, 'y': {y}}}", bind_variable(double, doubled, leveled_text)
    )


def _unscaled(text: str, type_: SqlType, scale: int) -> str:
    """The absolute value times 10^scale."""
    own = type_.scale or 0
    if not own:
        whole = f"cast(abs({text}) as hugeint)"
    elif (type_.precision or 0) + own <= NUMERIC_PRECISION_MAX:
        power = f"cast('{10**own}' as decimal({own + 1},0))"
        wide = f"cast(abs({text}) as decimal({NUMERIC_PRECISION_MAX},{own}))"
        whole = f"cast({wide} * {power} as hugeint)"
    else:
        whole = f"cast(replace(cast(abs({text}) as varchar), '.', '') as hugeint)"
    return whole if scale == own else f"{whole} * {_huge(10 ** (scale - own))}"


def _short(pair: str, shift: int) -> str:
    return f"{pair}.x * {_huge(2 * 10**shift)} // {pair}.y"


def _long(pair: str, scope: Scope) -> str:
    """Digit by digit, as it were: with digits of base 10^9."""
    step = scope.variable()
    rest = f"{pair}.x % {pair}.y * {_huge(_HALF)}"
    first = f"{{'q': {pair}.x // {pair}.y, 'r': {rest}, 'y': {pair}.y}}"
    whole = f"{step}.q * {_huge(2 * _HALF**2)} + {step}.r // {step}.y * {_huge(2 * _HALF)}"
    return bind_variable(
        step, first, f"{whole} + {step}.r % {step}.y * {_huge(2 * _HALF)} // {step}.y"
    )


def _leveled(names: tuple[str, str, str], types: _Types, scales: Sequence[int]) -> str:
    """Of two unscaled numbers and twice their quotient, times 10^18."""
    x, y, double = names

    def below(limit: int) -> str:
        return f"{double} < {_huge(2 * limit * 10**NUMERIC_SCALE_DEFAULT)}"

    def result(decimals: int | None) -> str:
        if decimals is None:
            return f"({double} + 1) // 2"
        step = 10 ** (NUMERIC_SCALE_DEFAULT - decimals)
        return f"({double} + {_huge(step)}) // {_huge(2 * step)} * {_huge(step)}"

    def held(places: int) -> str:
        return " and ".join(
            f"{operand} % {_huge(10 ** (scale - places))} = 0"
            for operand, type_, scale in zip((x, y), types, scales, strict=True)
            if type_.trim and (type_.scale or 0) > places
        )

    same_group = f"{_first_group(x, scales[0])} = {_first_group(y, scales[1])}"
    return quotient_by_level(*types, QuotientTexts(below, same_group, held, result))


def _first_group(unscaled: str, scale: int) -> str:
    """The first of the groups of four digits, counted from the point, as text."""
    digits = f"cast({unscaled} as varchar)"
    # Any multiple of four keeps what is divided positive.
    more = DIGITS_PER_GROUP * NUMERIC_PRECISION_MAX - 1 - scale
    width = f"cast((length({digits}) + {more}) % {DIGITS_PER_GROUP} + 1 as integer)"
    return f"rpad({digits}, {width}, '0')"


def _huge(number: int) -> str:
    return f"cast('{number}' as hugeint)"
