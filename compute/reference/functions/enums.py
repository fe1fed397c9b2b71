"""Enum functions (enum_first, enum_last, enum_range), and the check of a domain's constraints."""

from compute.reference.registry import Function, makes
from sql.errors import SqlError
from sql.plan.nodes import Call, Const
from sql.types.enums import enum_of
from sql.types.sql_type import Value


@makes("enum_first(anyenum)", "enum_last(anyenum)")
def enum_bound(call: Call) -> Function:
    """enum_first(), enum_last(): the first or last label of the argument's type, whatever its
    value.
    """
    enum = enum_of(call.type.name)
    place = 0 if call.function.name == "enum_first" else -1

    def run(_value: Value) -> Value:
        if not enum.labels:
            raise SqlError("55000", f"enum {enum.name} contains no values")
        return enum.labels[place]

    return run


@makes("enum_range(anyenum,anyenum)")
def enum_range(call: Call) -> Function:
    """All labels of an enum, or those between two; NULL is no bound."""
    labels = enum_of(call.type.name.removeprefix("_")).labels

    def run(first: Value = None, last: Value = None) -> Value:
        start = 0 if not isinstance(first, str) else labels.index(first)
        end = len(labels) if not isinstance(last, str) else labels.index(last) + 1
        return labels[start:end]

    return run


@makes("enum_range(anyenum)")
def enum_range_all(call: Call) -> Function:
    """enum_range() of one argument, whose value is ignored."""
    labels = enum_of(call.type.name.removeprefix("_")).labels
    return lambda _value: labels


@makes("checked(any,bool,text,text,text,text,text)")
def check_domain_value(call: Call) -> Function:
    """A domain's value, or the error of its constraint if the check has failed."""
    texts = [arg.value for arg in call.args[2:] if isinstance(arg, Const)]
    sqlstate, message, schema, datatype, constraint = (
        text if isinstance(text, str) else None for text in texts
    )

    def run(value: Value, verdict: Value, *_: Value) -> Value:
        if verdict is False:
            raise SqlError(
                sqlstate or "23514",
                message or "",
                schema=schema,
                datatype=datatype,
                constraint=constraint,
            )
        return value

    return run
