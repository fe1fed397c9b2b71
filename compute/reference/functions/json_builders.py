"""Functions and aggregates that build json and jsonb: to_json, json_build_object, json_agg ..

The session's zone is the last argument of each (F3 of `sql/functions/table.py`).
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from compute.reference.registry import Function, implements, makes
from sql.errors import SqlError
from sql.plan.nodes import Call
from sql.types.json.parser import JsonTree, canonical_jsonb, quote_json
from sql.types.json.to_json import value_to_json, value_to_json_key, value_to_json_tree
from sql.types.sql_type import SqlType, Value


def _types(call: Call) -> list[SqlType]:
    """The types of the arguments, without the zone."""
    return [arg.type for arg in call.args[:-1]]


@makes("to_json(anyelement)", "row_to_json(record)")
def _to_json(call: Call) -> Function:
    type_ = call.args[0].type
    return lambda value, zone: value_to_json(value, type_, zone)


@makes("to_jsonb(anyelement)")
def _to_jsonb(call: Call) -> Function:
    type_ = call.args[0].type
    return lambda value, zone: canonical_jsonb(value_to_json_tree(value, type_, zone))


@makes("array_to_json(anyarray)", "array_to_json(anyarray,bool)")
def _array_to_json(call: Call) -> Function:
    type_ = call.args[0].type

    def run(value: Value, *rest: Value) -> str:
        text = value_to_json(value, type_, str(rest[-1]))
        if len(rest) < 2 or not rest[0]:
            return text
        assert isinstance(value, tuple), "an array"
        element = type_.element
        assert element is not None, "an array type"
        items = [value_to_json(item, element, str(rest[-1])) for item in value]
        lines = ",\n ".join(items)
        return f"[{lines}]"

    return run


@makes("json_build_array(any)")
def _build_array(call: Call) -> Function:
    types = _types(call)

    def run(*args: Value) -> str:
        zone = str(args[-1])
        parts = [value_to_json(a, t, zone) for a, t in zip(args[:-1], types, strict=True)]
        return f"[{', '.join(parts)}]"

    return run


@makes("jsonb_build_array(any)")
def _build_array_b(call: Call) -> Function:
    types = _types(call)

    def run(*args: Value) -> str:
        zone = str(args[-1])
        return canonical_jsonb(
            [value_to_json_tree(a, t, zone) for a, t in zip(args[:-1], types, strict=True)]
        )

    return run


def _checked_pairs(args: Sequence[Value], name: str) -> None:
    if len(args) % 2:
        hint = f"The arguments of {name}() must consist of alternating keys and values."
        message = "argument list must have even number of elements"
        raise SqlError("22023", message, hint=hint)
    for place, key in enumerate(args[::2]):
        if key is None:
            if name == "json_build_object":
                raise SqlError("22004", "null value not allowed for object key")
            raise SqlError("22023", f"argument {2 * place + 1}: key must not be null")


@makes("json_build_object(any)")
def _build_object(call: Call) -> Function:
    types = _types(call)

    def run(*args: Value) -> str:
        zone = str(args[-1])
        values = args[:-1]
        _checked_pairs(values, "json_build_object")
        parts = [
            f"{quote_json(value_to_json_key(values[i], types[i], zone))}"
            f" : {value_to_json(values[i + 1], types[i + 1], zone)}"
            for i in range(0, len(values), 2)
        ]
        return f"{{{', '.join(parts)}}}"

    return run


@makes("jsonb_build_object(any)")
def _build_object_b(call: Call) -> Function:
    types = _types(call)

    def run(*args: Value) -> str:
        zone = str(args[-1])
        values = args[:-1]
        _checked_pairs(values, "jsonb_build_object")
        found: dict[str, JsonTree] = {
            value_to_json_key(values[i], types[i], zone): value_to_json_tree(
                values[i + 1], types[i + 1], zone
            )
            for i in range(0, len(values), 2)
        }
        return canonical_jsonb(found)

    return run


def _pairs(keys: tuple[Value, ...], values: tuple[Value, ...] | None) -> list[tuple[str, Value]]:
    """The pairs of json_object(keys and values in turn) and json_object(keys, values)."""
    if values is None:
        if len(keys) % 2:
            raise SqlError("2202E", "array must have even number of elements")
        keys, values = keys[::2], keys[1::2]
    if len(keys) != len(values):
        raise SqlError("2202E", "mismatched array dimensions")
    if None in keys:
        raise SqlError("22004", "null value not allowed for object key")
    return [(str(key), value) for key, value in zip(keys, values, strict=True)]


@implements("json_object(_text)", "json_object(_text,_text)")
def _object(keys: tuple[Value, ...], values: tuple[Value, ...] | None = None) -> str:
    parts = [
        f"{quote_json(key)} : {'null' if value is None else quote_json(str(value))}"
        for key, value in _pairs(keys, values)
    ]
    return f"{{{', '.join(parts)}}}"


@implements("jsonb_object(_text)", "jsonb_object(_text,_text)")
def _object_b(keys: tuple[Value, ...], values: tuple[Value, ...] | None = None) -> str:
    found: dict[str, JsonTree] = {
        key: None if value is None else str(value) for key, value in _pairs(keys, values)
    }
    return canonical_jsonb(found)


# --- aggregates --------------------------------------------------------------------------------


def json_agg(values: Sequence[Value], type_: SqlType, zone: str) -> str:
    """The values as an array; elements that are arrays stand on lines of their own."""
    shown: list[str] = []
    for value in values:
        own_line = type_.element is not None and value is not None
        joint = (", \n " if own_line else ", ") if shown else ""
        shown.append(joint + value_to_json(value, type_, zone))
    return f"[{''.join(shown)}]"


_LINE: Final = "\n "


def json_agg_of_rows(values: Sequence[Value], _type: SqlType, _zone: str) -> str:
    """Rows as an array, each on a line of its own; missing rows are left out."""
    shown = "".join([", null" if value is None else f", \n {value!s}" for value in values])
    return f"[{shown.removeprefix(', ').removeprefix(_LINE)}]"


def jsonb_agg(values: Sequence[Value], type_: SqlType, zone: str) -> str:
    """The same as jsonb."""
    return canonical_jsonb([value_to_json_tree(value, type_, zone) for value in values])


Pairs: TypeAlias = Sequence[tuple[Value, Value]]


def json_object_agg(
    pairs: Pairs, types: tuple[SqlType, SqlType], zone: str, *, strict: bool, unique: bool
) -> str:
    """The pairs as `{ "a" : 1 }`. `strict` leaves NULL values out. `unique` raises 22030 for a
    duplicate key, also if its value is left out.
    """
    parts: list[str] = []
    seen: set[str] = set()
    for key, value in pairs:
        if key is None:
            raise SqlError("22004", "null value not allowed for object key")
        skipped = strict and value is None
        if skipped and not unique:
            continue
        text = value_to_json_key(key, types[0], zone)
        if unique and text in seen:
            raise SqlError("22030", f"duplicate JSON object key value: {quote_json(text)}")
        seen.add(text)
        if not skipped:
            parts.append(f"{quote_json(text)} : {value_to_json(value, types[1], zone)}")
    return f"{{ {', '.join(parts)} }}"


def jsonb_object_agg(
    pairs: Pairs, types: tuple[SqlType, SqlType], zone: str, *, strict: bool, unique: bool
) -> str:
    """The same as jsonb; keys are checked when all are there. `strict` also leaves out JSON's own
    null.
    """
    if any(key is None for key, _ in pairs):
        raise SqlError("22023", "field name must not be null")
    kept = pairs if unique or not strict else [pair for pair in pairs if pair[1] is not None]
    trees = [
        (value_to_json_key(key, types[0], zone), value_to_json_tree(value, types[1], zone))
        for key, value in kept
    ]
    if unique and len(dict(trees)) < len(trees):
        raise SqlError("22030", "duplicate JSON object key value")
    return canonical_jsonb({key: tree for key, tree in trees if not (strict and tree is None)})


@makes("json_row(_text,any)")
def _row(call: Call) -> Function:
    """A row as json: the names, then its values."""
    types = _types(call)[1:]

    def run(names: tuple[str, ...], *args: Value) -> str:
        zone = str(args[-1])
        parts = [
            f"{quote_json(name)}:{value_to_json(value, type_, zone)}"
            for name, value, type_ in zip(names, args[:-1], types, strict=True)
        ]
        return f"{{{','.join(parts)}}}"

    return run


implements("json_build_array()", "jsonb_build_array()")(lambda: "[]")
implements("json_build_object()", "jsonb_build_object()")(lambda: "{}")
