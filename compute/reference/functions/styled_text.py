"""Convert values and rows to text, in the default styles or a session's (DateStyle and others)."""

from compute.reference.registry import Function, makes
from sql.plan.nodes import Call
from sql.types.records import encode_record
from sql.types.sql_type import Value
from sql.types.styled_output import styled_text
from sql.types.styles import Styles, unpack_styles


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
