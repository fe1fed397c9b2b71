"""Rewrite RANGE frames with an interval offset to numeric offsets in seconds.

    order by d range '7 days' preceding
      ─▶  order by extract(epoch from d) range 604800.000000 preceding

An interval with months has no fixed length, and one with days has none in a time zone. Over a
timestamptz the offset is therefore computed for each row, `epoch(t) - epoch(t - offset)`. Over the
other types engines understand months.

INVARIANTS
  F1  both ends are rewritten, or neither, because they share one sort key.
  F2  an invalid offset (NULL, negative) fails with the same error as before the rewrite.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Final

from sql.binder.resolve.coercion import decimal_constant
from sql.binder.resolve.sql_functions import inline_sql_function
from sql.binder.state import Binding
from sql.plan.nodes import BoundKind, Const, Expr, Frame, FrameBound, FrameMode, SortKey
from sql.types.sql_type import Interval

_KEYS: Final = frozenset({"date", "timestamp", "timestamptz", "time"})
_UTC: Final = frozenset({"UTC", "Etc/UTC", "GMT"})
_DAY: Final = 86_400
_EPOCH: Final = "extract(epoch from $1)"
_BEFORE: Final = (
    "case when $1 is null then 0 else extract(epoch from $1) - extract(epoch from $1 - $2) end"
)
_BEHIND: Final = (
    "case when $1 is null then 0 else extract(epoch from $1 + $2) - extract(epoch from $1) end"
)


def range_frame_in_seconds(
    binding: Binding, order: tuple[SortKey, ...], frame: Frame
) -> tuple[tuple[SortKey, ...], Frame]:
    """The sort key and the frame, with numeric offsets where that is equivalent."""
    ends = (frame.start, frame.end)
    offsets = [end.offset for end in ends if end.offset is not None]
    if frame.mode is not FrameMode.RANGE or not offsets or order[0].expr.type.name not in _KEYS:
        return order, frame
    if any(isinstance(offset, Const) and offset.value is None for offset in offsets):
        return order, frame
    key = order[0]
    lengths = [_seconds(offset, key.expr.type.name, binding) for offset in offsets]
    if all(length is not None for length in lengths):
        made = iter(lengths)
        start, end = (
            end if end.offset is None else replace(end, offset=next(made)) for end in ends
        )
    elif key.expr.type.name == "timestamptz" and binding.context.timezone not in _UTC:
        start, end = (_of_row(binding, key, end) for end in ends)
    else:
        return order, frame
    seconds = replace(key, expr=inline_sql_function(binding, _EPOCH, (key.expr,)))
    return (seconds,), replace(frame, start=start, end=end)


def _seconds(offset: Expr, key: str, binding: Binding) -> Expr | None:
    """The length of a constant interval, if it has one wherever it is added."""
    if not isinstance(offset, Const) or not isinstance(offset.value, Interval):
        return None
    months, days, micros = offset.value.months, offset.value.days, offset.value.micros
    if key == "time":
        # Days and months are not added to it.
        months = days = 0
    if months or (days and key == "timestamptz" and binding.context.timezone not in _UTC):
        return None
    return decimal_constant(days * _DAY + Decimal(micros).scaleb(-6), None)


def _of_row(binding: Binding, key: SortKey, end: FrameBound) -> FrameBound:
    """The end with the seconds from the row's key to it."""
    if end.offset is None:
        return end
    before = (end.kind is BoundKind.PRECEDING) is not key.descending
    text = _BEFORE if before else _BEHIND
    return replace(end, offset=inline_sql_function(binding, text, (key.expr, end.offset)))
