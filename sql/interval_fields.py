"""Interval constants with fields or a precision: `interval '90' day`, `interval(0) '1.6 seconds'`.

INVARIANTS
  D1  the fields say what a bare number counts (interval_in, DecodeInterval), and what is smaller
      than the last of them is cut off (AdjustIntervalForTypmod); what is larger stays.
"""

from typing import Final

from pglast import ast

from sql.errors import SqlError, not_supported
from sql.interval_input import parse_interval
from sql.plan import Const
from sql.syntax import Node, at, is_a, position, strings
from sql.types import Interval, SqlType

_YEAR, _MONTH, _DAY = 1 << 2, 1 << 1, 1 << 3
_HOUR, _MINUTE, _SECOND = 1 << 10, 1 << 11, 1 << 12
_ALL: Final = 0x7FFF
_SMALLEST: Final = {
    _YEAR: "year", _MONTH: "month", _DAY: "day", _HOUR: "hour", _MINUTE: "minute",
    _SECOND: "second",
}  # fmt: skip
_CUT: Final = {"hour": 3_600_000_000, "minute": 60_000_000}
_NO_PRECISION: Final = 0xFFFF


def interval_constant(argument: Node, node: Node) -> Const | None:
    """The constant, if the cast of this argument is one; `node` is the type's name."""
    if not node.typmods or strings(node.names)[-1] != "interval" or node.arrayBounds:
        return None
    if not is_a(argument, ast.A_Const) or not is_a(argument.val, ast.String):
        return None
    fields, precision = _modifiers(node)
    if fields == _MINUTE | _SECOND:
        # '10:20' would be minutes and seconds.
        raise not_supported("INTERVAL MINUTE TO SECOND", at(node.location))
    unit = _smallest(fields)
    try:
        value = parse_interval(argument.val.sval or "", unit="" if fields == _ALL else unit)
    except SqlError as error:
        raise error.at(position(argument)) from None
    typmod = fields << 16 | (_NO_PRECISION if precision is None else precision)
    return Const(_cut(value, unit, precision), SqlType("interval", typmod))


def _modifiers(node: Node) -> tuple[int, int | None]:
    given = [item.val.ival or 0 for item in node.typmods]
    if len(given) == 1:
        return given[0], None
    if given[1] < 0:
        message = f"INTERVAL({given[1]}) precision must not be negative"
        raise SqlError("22023", message, at(node.location))
    return given[0], min(given[1], 6)


def _smallest(fields: int) -> str:
    """The last of the fields; seconds where all are."""
    order = (_SECOND, _MINUTE, _HOUR, _DAY, _MONTH, _YEAR)
    return _SMALLEST[next(field for field in order if fields & field)]


def _cut(value: Interval, unit: str, precision: int | None) -> Interval:
    months, days, micros = value.months, value.days, value.micros
    if unit in ("year", "month"):
        whole = abs(months) // 12 * 12 if unit == "year" else abs(months)
        return Interval(whole if months >= 0 else -whole, 0, 0)
    if unit == "day":
        return Interval(months, days, 0)
    if unit in _CUT:
        return Interval(months, days, _towards_zero(micros, _CUT[unit]))
    if precision is not None:
        scale = 10 ** (6 - precision)
        half = scale // 2 if micros >= 0 else -(scale // 2)
        return Interval(months, days, _towards_zero(micros + half, scale))
    return value


def _towards_zero(micros: int, scale: int) -> int:
    whole = abs(micros) // scale * scale
    return whole if micros >= 0 else -whole
