"""Operators and functions of json and jsonb: access, containment, keys, modification, casts.

A jsonb value is parsed to a tree (`sql/types/json/parser.py`), which is then serialised again. A
json value keeps the text of its parts, with white space and duplicate keys.

INVARIANTS
  J1  trees are shared and never changed: a modification copies the lists and dicts on its path.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from compute.reference.decimals import fit_to_numeric_type
from compute.reference.functions.floats import to_float4
from compute.reference.functions.json_escapes import checking_escapes
from compute.reference.functions.json_modification import jsonb_delete_path, jsonb_set
from compute.reference.functions.numbers import in_range
from compute.reference.registry import Function, implements, makes
from sql.errors import SqlError
from sql.plan.nodes import Call
from sql.types.json.parser import (
    JsonTree,
    canonical_jsonb,
    json_scalar_text,
    parse_json_tree,
    parse_jsonb,
    split_json_array,
    split_json_object,
    unquote_json,
)
from sql.types.json.sort_key import jsonb_sort_key
from sql.types.json.to_json import is_json_array, json_item_as_text, raw_json_item_as_text
from sql.types.sql_type import SqlType, Value, format_type

JSON_WHITESPACE: Final = " \t\n\r"


def _index(text: str) -> int | None:
    """An element of a path as an index: what C's strtol takes, whole."""
    stripped = text.lstrip(" \t\n\v\f\r")
    digits = stripped[1:] if stripped[:1] in ("+", "-") else stripped
    if not (digits.isascii() and digits.isdigit()):
        return None
    found = int(stripped)
    return found if -(1 << 31) <= found < 1 << 31 else None


# --- looking into ------------------------------------------------------------------------------


def _field(text: str, key: str) -> JsonTree:
    found = parse_json_tree(text)
    if isinstance(found, Mapping) and key in found:
        return found[key]
    return _MISSING  # type: ignore[return-value]


class _Missing:
    """A missing value, which is not null."""


_MISSING: Final = _Missing()


def _element(text: str, index: int) -> JsonTree:
    found = parse_json_tree(text)
    if isinstance(found, Mapping):
        return _MISSING  # type: ignore[return-value]
    # A scalar is stored as an array of one.
    items = found if is_json_array(found) else [found]
    return items[index] if -len(items) <= index < len(items) else _MISSING  # type: ignore[return-value]


def _jsonb_get(look: Callable[[str, object], object], *, text: bool) -> Function:
    def run(value: str, key: object) -> Value:
        found = look(value, key)
        if found is _MISSING:
            return None
        return json_item_as_text(found) if text else canonical_jsonb(found)  # type: ignore[arg-type]

    return run


def _raw_field(text: str, key: str) -> str | None:
    return dict(split_json_object(text) or ()).get(key)


def _raw_element(text: str, index: int) -> str | None:
    parts = split_json_array(text)
    if parts is None or not -len(parts) <= index < len(parts):
        return None
    return parts[index]


def _raw_path(text: str, path: Sequence[Value]) -> str | None:
    found: str | None = text if path else _whole(text)
    for step in path:
        if found is None or step is None:
            return None
        name = str(step)
        if found.lstrip(JSON_WHITESPACE)[:1] == "[":
            index = _index(name)
            found = None if index is None else _raw_element(found, index)
        else:
            found = _raw_field(found, name)
    return found


def _whole(text: str) -> str:
    """All of a json: without the blanks around it, but for those before a scalar (get_scalar)."""
    bare = text.strip(JSON_WHITESPACE)
    return bare if bare[:1] in ("{", "[") else text.rstrip(JSON_WHITESPACE)


def _raw_path_text(text: str, path: Sequence[Value]) -> str | None:
    found = _raw_path(text, path)
    if found is None or path:
        return raw_json_item_as_text(found)
    bare = found.lstrip(JSON_WHITESPACE)
    return raw_json_item_as_text(bare) if bare == "null" or bare.startswith('"') else found


def _json_get(look: Callable[..., str | None], *, text: bool) -> Function:
    if text:
        return lambda value, key: raw_json_item_as_text(look(value, key))
    return look


def _path_get(*, text: bool) -> Function:
    def run(value: str, path: Sequence[Value]) -> Value:
        found = parse_json_tree(value)
        for step in path:
            if step is None:
                return None
            if is_json_array(found):
                index = _index(str(step))
                if index is None or not -len(found) <= index < len(found):
                    return None
                found = found[index]
            elif isinstance(found, Mapping) and str(step) in found:
                found = found[str(step)]
            else:
                return None
        return json_item_as_text(found) if text else canonical_jsonb(found)

    return run


def _spread(function: Function) -> Function:
    """json_extract_path(json, VARIADIC path)."""
    return lambda value, *path: function(value, path)


# --- containment -------------------------------------------------------------------------------


def jsonb_contains(whole: JsonTree, part: JsonTree) -> bool:
    """`whole @> part` (JsonbContains): a top-level array also contains a scalar."""
    if is_json_array(whole) and not is_json_array(part) and not isinstance(part, Mapping):
        return _within(whole, part)
    return _deep(whole, part)


def _deep(whole: JsonTree, part: JsonTree) -> bool:
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            key in whole and _deep(whole[key], value) for key, value in part.items()
        )
    if is_json_array(part):
        return is_json_array(whole) and all(_within(whole, item) for item in part)
    return _same_scalar(whole, part)


def _within(items: Sequence[JsonTree], part: JsonTree) -> bool:
    return any(_deep(item, part) for item in items)


def _same_scalar(a: JsonTree, b: JsonTree) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return type(a) is type(b) and a == b


@implements("jsonb ? text")
def _has_key(text: str, key: Value) -> bool:
    found = parse_json_tree(text)
    if isinstance(found, Mapping):
        return key in found
    items = found if is_json_array(found) else [found]
    return any(isinstance(item, str) and item == key for item in items)


# --- changing ----------------------------------------------------------------------------------


@implements("jsonb || jsonb")
def _joined(left: str, right: str) -> str:
    a, b = parse_json_tree(left), parse_json_tree(right)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return canonical_jsonb({**a, **b})
    items = [*(a if is_json_array(a) else [a]), *(b if is_json_array(b) else [b])]
    return canonical_jsonb(items)


@implements("jsonb - _text")
def _without_keys(text: str, keys: Sequence[Value]) -> str:
    found = parse_json_tree(text)
    if isinstance(found, Mapping):
        return canonical_jsonb({key: value for key, value in found.items() if key not in keys})
    if is_json_array(found):
        return canonical_jsonb(
            [item for item in found if not isinstance(item, str) or item not in keys]
        )
    raise SqlError("22023", "cannot delete from scalar")


@implements("jsonb - int4")
def _without_index(text: str, index: int) -> str:
    found = parse_json_tree(text)
    if isinstance(found, Mapping):
        raise SqlError("22023", "cannot delete from object using integer index")
    if not is_json_array(found):
        raise SqlError("22023", "cannot delete from scalar")
    at = index if index >= 0 else len(found) + index
    return canonical_jsonb([item for place, item in enumerate(found) if place != at])


@implements(
    "jsonb_set_lax(jsonb,_text,jsonb)",
    "jsonb_set_lax(jsonb,_text,jsonb,bool)",
    "jsonb_set_lax(jsonb,_text,jsonb,bool,text)",
)
def _set_lax(
    text: str | None,
    path: Sequence[Value] | None,
    value: str | None,
    create: bool | None = True,
    treatment: str | None = "use_json_null",
) -> Value:
    if text is None or path is None or create is None:
        return None
    if treatment is None:
        raise SqlError("22023", 'null_value_treatment must be "delete_key", "return_target", '
                       '"use_json_null", or "raise_exception"')  # fmt: skip
    if value is not None:
        return jsonb_set(text, path, value, create)
    match treatment:
        case "raise_exception":
            raise SqlError(
                "22004",
                "JSON value must not be null",
                detail='Exception was raised because null_value_treatment is "raise_exception".',
                hint="To avoid, either change the null_value_treatment argument or ensure that an"
                " SQL NULL is not passed.",
            )
        case "use_json_null":
            return jsonb_set(text, path, "null", create)
        case "delete_key":
            return jsonb_delete_path(text, path)
        case "return_target":
            return text
        case _:
            raise SqlError("22023", 'null_value_treatment must be "delete_key", "return_target", '
                           '"use_json_null", or "raise_exception"')  # fmt: skip


def strip_nulls(value: JsonTree, *, arrays: bool) -> JsonTree:
    """The value without fields that are null; with `arrays` also without elements that are null."""
    if isinstance(value, Mapping):
        return {
            key: strip_nulls(item, arrays=arrays) for key, item in value.items() if item is not None
        }
    if is_json_array(value):
        return [
            strip_nulls(item, arrays=arrays) for item in value if item is not None or not arrays
        ]
    return value


def strip_nulls_of_text(text: str, arrays: bool = False) -> str:
    """The same for a json text, whose number formats and duplicate keys stay."""
    if (members := split_json_object(text)) is not None:
        kept = [
            f"{json_scalar_text(key)}:{strip_nulls_of_text(part, arrays)}"
            for key, part in members
            if part != "null"
        ]
        return f"{{{','.join(kept)}}}"
    if (items := split_json_array(text)) is not None:
        shown = [
            strip_nulls_of_text(item, arrays) for item in items if item != "null" or not arrays
        ]
        return f"[{','.join(shown)}]"
    part = text.strip(" \t\n\r")
    return json_scalar_text(unquote_json(part)) if part.startswith('"') else part


def jsonb_pretty(value: JsonTree, depth: int = 0) -> str:
    """jsonb_pretty: indented by four spaces a level."""
    inside, outside = "    " * (depth + 1), "    " * depth
    if isinstance(value, Mapping):
        ordered = parse_json_tree(canonical_jsonb(value))
        assert isinstance(ordered, Mapping), "it was an object"
        lines = [
            f"{json_scalar_text(key)}: {jsonb_pretty(item, depth + 1)}"
            for key, item in ordered.items()
        ]
        marks = "{}"
    elif is_json_array(value):
        lines, marks = [jsonb_pretty(item, depth + 1) for item in value], "[]"
    else:
        return json_scalar_text(value)
    body = "".join(f"\n{inside}{line}," for line in lines)[:-1]
    return f"{marks[0]}{body}\n{outside}{marks[1]}"


# --- what it is --------------------------------------------------------------------------------


def json_typeof(value: JsonTree) -> str:
    """json_typeof."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case Decimal():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


@implements("json_array_length(json)", "jsonb_array_length(jsonb)")
def _array_length(text: str) -> int:
    found = parse_json_tree(text)
    if is_json_array(found):
        return len(found)
    kind = "a non-array" if isinstance(found, Mapping) else "a scalar"
    raise SqlError("22023", f"cannot get array length of {kind}")


_SCALAR_NAMES: Final = {"number": "numeric"}


@makes(
    *[f"jsonb::{name}" for name in ("bool", "int2", "int4", "int8", "numeric", "float4", "float8")]
)
def _to_scalar(call: Call) -> Function:
    """A cast of a jsonb scalar; null is NULL."""
    target, integers = call.type, {"int2", "int4", "int8"}
    shown = format_type(SqlType(target.name))

    def run(text: str) -> Value:
        value = parse_json_tree(text)
        if value is None:
            return None
        wanted = isinstance(value, bool) if target.name == "bool" else isinstance(value, Decimal)
        if not wanted:
            kind = json_typeof(value)
            what = _SCALAR_NAMES.get(kind, kind)
            raise SqlError("22023", f"cannot cast jsonb {what} to type {shown}")
        if isinstance(value, Decimal):
            if target.name in integers:
                return in_range(int(value.to_integral_value("ROUND_HALF_UP")), target.name)
            if target.name == "float4":
                return to_float4(value)
            return fit_to_numeric_type(value, target) if target.name == "numeric" else float(value)
        return bool(value)

    return run


# --- operators and functions --------------------------------------------------------------------

implements("jsonb -> text")(_jsonb_get(_field, text=False))  # type: ignore[arg-type]
implements("jsonb -> int4")(_jsonb_get(_element, text=False))  # type: ignore[arg-type]
implements("jsonb ->> text")(_jsonb_get(_field, text=True))  # type: ignore[arg-type]
implements("jsonb ->> int4")(_jsonb_get(_element, text=True))  # type: ignore[arg-type]
implements("jsonb #> _text", "subscript(jsonb,_text)")(_path_get(text=False))
implements("jsonb #>> _text")(_path_get(text=True))
implements("jsonb_extract_path(jsonb,text)")(_spread(_path_get(text=False)))
implements("jsonb_extract_path_text(jsonb,text)")(_spread(_path_get(text=True)))
implements("json -> text")(checking_escapes(_json_get(_raw_field, text=False)))
implements("json -> int4")(checking_escapes(_json_get(_raw_element, text=False)))
implements("json ->> text")(checking_escapes(_json_get(_raw_field, text=True)))
implements("json ->> int4")(checking_escapes(_json_get(_raw_element, text=True)))
implements("json #> _text")(checking_escapes(_raw_path))
implements("json #>> _text")(checking_escapes(_raw_path_text))
implements("json_extract_path(json,text)")(checking_escapes(_spread(_raw_path)))
implements("json_extract_path_text(json,text)")(checking_escapes(_spread(_raw_path_text)))
implements("sort_key(jsonb)")(jsonb_sort_key)
implements("jsonb @> jsonb")(lambda a, b: jsonb_contains(parse_json_tree(a), parse_json_tree(b)))
implements("jsonb <@ jsonb")(lambda a, b: jsonb_contains(parse_json_tree(b), parse_json_tree(a)))
implements("jsonb ?| _text")(lambda a, keys: any(_has_key(a, key) for key in keys))
implements("jsonb ?& _text")(
    lambda a, keys: all(_has_key(a, key) for key in keys if key is not None)
)
implements("jsonb - text")(lambda text, key: _without_keys(text, (key,)))
implements("jsonb_set(jsonb,_text,jsonb)")(lambda a, path, b: jsonb_set(a, path, b, True))
implements("json_strip_nulls(json)", "json_strip_nulls(json,bool)")(
    checking_escapes(strip_nulls_of_text)
)
implements("jsonb_strip_nulls(jsonb)")(
    lambda text: canonical_jsonb(strip_nulls(parse_json_tree(text), arrays=False))
)
implements("jsonb_strip_nulls(jsonb,bool)")(
    lambda text, arrays: canonical_jsonb(strip_nulls(parse_json_tree(text), arrays=arrays))
)
implements("jsonb_pretty(jsonb)")(lambda text: jsonb_pretty(parse_json_tree(text)))
implements("json_typeof(json)", "jsonb_typeof(jsonb)")(
    lambda text: json_typeof(parse_json_tree(text))
)
implements("json::jsonb")(parse_jsonb)
implements("jsonb::json")(lambda text: text)
