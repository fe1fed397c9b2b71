"""Convert values and rows to text, in the default styles or a session's (DateStyle and others);
read rows' fields from their texts.
"""

from collections.abc import Sequence

from compute.reference.registry import Function, makes
from sql.plan.nodes import Call
from sql.types.record_text import parse_record, record_field, split_record
from sql.types.records import encode_record
from sql.types.sql_type import Value
from sql.types.styled_output import styled_text
from sql.types.styles import Styles, unpack_styles
from sql.types.text_output import format_record


@makes("row(any)")
def _row_value(call: Call) -> Function:
    types = [arg.type for arg in call.args[:-1]]
    return lambda *args: encode_record(args[:-1], types, str(args[-1]))


@makes("styled_row(any)")
def _styled_row_value(call: Call) -> Function:
    types = [arg.type for arg in call.args[:-2]]
    return lambda *args: encode_record(
        args[:-2], types, str(args[-1]), unpack_styles(str(args[-2]))
    )


@makes("record_part(record,int4)")
def _part(call: Call) -> Function:
    type_ = call.args[0].type
    return lambda row, number, zone: record_field(row, type_, number, str(zone))


@makes("record_in(text)")
def _record_in(call: Call) -> Function:
    type_ = call.type
    return lambda text, zone: parse_record(str(text), type_, str(zone))


@makes("record_is_null(record)")
def _is_null(_call: Call) -> Function:
    return lambda row: row is None or all(part is None for part in _parts(row))


@makes("record_is_not_null(record)")
def _is_not_null(_call: Call) -> Function:
    return lambda row: row is not None and all(part is not None for part in _parts(row))


def _parts(row: Value) -> Sequence[str | None]:
    return split_record(format_record(row))


@makes("styled(any)")
def _styled(call: Call) -> Function:
    type_ = call.args[0].type
    shown = type_.element or type_

    def text(value: Value, styles: Styles, timezone: str) -> Value:
        return None if value is None else styled_text(value, shown, styles, timezone=timezone)

    def styled(value: Value, how: Value, timezone: Value) -> Value:
        styles, zone = unpack_styles(str(how)), str(timezone)
        if type_.element is None:
            return text(value, styles, zone)
        assert isinstance(value, tuple), "an array is a tuple"
        return tuple([text(item, styles, zone) for item in value])

    return styled
