"""The functions of enums: what a definition holds, not what a value is."""

from typing import Final

from compute.reference_numbers import Function, Maker
from sql.enum_types import enum_of
from sql.errors import SqlError
from sql.plan import Call
from sql.types import Value


def bound(call: Call) -> Function:
    """enum_first(), enum_last(): of the type of the argument, whatever its value."""
    enum = enum_of(call.type.name)
    place = 0 if call.function.name == "enum_first" else -1

    def run(_value: Value) -> Value:
        if not enum.labels:
            raise SqlError("55000", f"enum {enum.name} contains no values")
        return enum.labels[place]

    return run


def span(call: Call) -> Function:
    """enum_range(): all labels, or those between two; NULL is no bound."""
    labels = enum_of(call.type.name.removeprefix("_")).labels

    def run(first: Value = None, last: Value = None) -> Value:
        start = 0 if not isinstance(first, str) else labels.index(first)
        end = len(labels) if not isinstance(last, str) else labels.index(last) + 1
        return labels[start:end]

    return run


def whole(call: Call) -> Function:
    """enum_range() of one argument, whose value does not count."""
    labels = enum_of(call.type.name.removeprefix("_")).labels
    return lambda _value: labels


ENUM_MAKERS: Final[dict[str, Maker]] = {
    "enum_first(anyenum)": bound,
    "enum_last(anyenum)": bound,
    "enum_range(anyenum)": whole,
    "enum_range(anyenum,anyenum)": span,
}
