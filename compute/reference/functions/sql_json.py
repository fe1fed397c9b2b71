"""SQL/JSON: constructors, IS JSON, JSON_EXISTS, JSON_VALUE, JSON_QUERY (jsonfuncs.c).

INVARIANTS
  Q1  ON ERROR covers errors of the data: of the path, of its result's form, of conversion.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Final

from compute.reference.functions.jsonpath import SUPPRESSED_SQLSTATES, path_exists, path_items
from compute.reference.registry import Function, Maker, implements, makes
from sql.errors import OutOfEngineRange, SqlError
from sql.plan.nodes import Call
from sql.types.json.parser import (
    JsonTree,
    canonical_jsonb,
    has_unique_keys,
    json_number_text,
    parse_json,
    parse_json_tree,
    quote_json,
)
from sql.types.json.to_json import (
    is_json_array,
    value_to_json,
    value_to_json_key,
    value_to_json_tree,
)
from sql.types.sql_type import SqlType, Value
from sql.types.text_input import apply_typmod, parse_text

_OF_DATA: Final = SUPPRESSED_SQLSTATES | {
    "22034",
    "2203F",
    "22P02",
    "22003",
    "22001",
    "22007",
    "22008",
}


# --- constructors ------------------------------------------------------------------------------


def _object(*, binary: bool) -> Maker:
    def make(call: Call) -> Function:
        types = [arg.type for arg in call.args[2:-1]]

        def run(absent: bool, unique: bool, *rest: Value) -> str:
            zone, parts = str(rest[-1]), rest[:-1]
            pairs = [
                (_key(key, of_key, zone, argument if binary else None), value, type_)
                for argument, key, value, of_key, type_ in zip(
                    count(1, 2), parts[::2], parts[1::2], types[::2], types[1::2], strict=False
                )
                # The keys of what is left out are looked at, but for json's that may come twice.
                if binary or unique or not (absent and value is None)
            ]
            check_unique_keys([key for key, _, _ in pairs] if unique else (), binary=binary)
            kept = [pair for pair in pairs if not (absent and pair[1] is None)]
            if binary:
                # What is JSON's own null is left out, too.
                trees = {key: value_to_json_tree(value, t, zone) for key, value, t in kept}
                found = {key: tree for key, tree in trees.items() if not (absent and tree is None)}
                return canonical_jsonb(found)
            shown = [
                f"{quote_json(key)} : {value_to_json(value, t, zone)}" for key, value, t in kept
            ]
            return f"{{{', '.join(shown)}}}"

        return run

    return make


def _array(*, binary: bool) -> Maker:
    def make(call: Call) -> Function:
        types = [arg.type for arg in call.args[1:-1]]

        def run(absent: bool, *rest: Value) -> str:
            zone = str(rest[-1])
            kept = [
                (value, type_)
                for value, type_ in zip(rest[:-1], types, strict=True)
                if not (absent and value is None)
            ]
            if binary:
                return canonical_jsonb(
                    [value_to_json_tree(value, type_, zone) for value, type_ in kept]
                )
            return f"[{', '.join(value_to_json(value, type_, zone) for value, type_ in kept)}]"

        return run

    return make


def _key(key: Value, type_: SqlType, zone: str, argument: int | None) -> str:
    """A key as text. `argument`: its number, which only jsonb complains with."""
    if key is None and argument is not None:
        raise SqlError("22023", f"argument {argument}: key must not be null")
    if key is None:
        raise SqlError("22004", "null value not allowed for object key")
    return value_to_json_key(key, type_, zone)


def check_unique_keys(keys: Sequence[str], *, binary: bool) -> None:
    """Raises 22030 for a duplicate key."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            named = "" if binary else f": {quote_json(key)}"
            raise SqlError("22030", f"duplicate JSON object key value{named}")
        seen.add(key)


@implements("json_unique(text)")
def _unique(text: str) -> str:
    if not has_unique_keys(parse_json(text)):
        raise SqlError("22030", "duplicate JSON object key value")
    return text


@implements("is_json(text,text,bool)")
def is_json(text: str, kind: str, unique: bool) -> bool:
    """Whether a text is JSON of that kind."""
    try:
        parse_json(text)
    except SqlError as error:
        if error.sqlstate != "22P02":
            raise
        return False
    first = text.lstrip(" \t\n\r")[:1]
    fits = {"any": True, "object": first == "{", "array": first == "["}
    if not fits.get(kind, first not in ("{", "[")):
        return False
    return not unique or has_unique_keys(text)


# --- functions over a path ---------------------------------------------------------------------


@implements("sql_json_exists(jsonb,jsonpath,jsonb,text)")
def _exists(text: str, path: str, variables: str, on_error: str) -> Value:
    try:
        return path_exists(text, path, variables)
    except SqlError as error:
        if on_error == "error" or error.sqlstate not in SUPPRESSED_SQLSTATES:
            raise
        return {"true": True, "false": False}.get(on_error)


@implements("sql_json_items(jsonb,jsonpath,jsonb,text)")
def _items(text: str, path: str, variables: str, on_error: str) -> Value:
    """The rows of JSON_TABLE; none of a path that fails, unless that is said."""
    try:
        return tuple([canonical_jsonb(item) for item in path_items(text, path, variables)])
    except SqlError as error:
        if on_error == "error" or error.sqlstate not in SUPPRESSED_SQLSTATES:
            raise
        return ()


_Reading = Callable[[Sequence[JsonTree], str], Value]


def _answering(read: _Reading) -> Callable[..., Value]:
    """A value of the items, with what ON EMPTY and ON ERROR say."""

    def run(
        given: tuple[Value, ...],
        on_empty: str,
        if_empty: Value,
        on_error: str,
        if_error: Value,
        zone: str,
    ) -> Value:
        if None in given:
            return None
        try:
            items = list(path_items(*map(str, given)))
            if items:
                return read(items, zone)
        except SqlError as error:
            if on_error == "error" or error.sqlstate not in _OF_DATA:
                raise
            if isinstance(error, OutOfEngineRange):
                raise
            return if_error
        if on_empty == "error":
            raise SqlError("22035", "no SQL/JSON item found for specified path")
        return if_empty

    return run


@makes("sql_json_value(jsonb,jsonpath,jsonb,text,any,text,any)")
def _value(call: Call) -> Function:
    type_ = call.type

    def read(items: Sequence[JsonTree], zone: str) -> Value:
        message = "JSON path expression in JSON_VALUE must return single scalar item"
        if len(items) > 1:
            raise SqlError("22034", message)
        (item,) = items
        if isinstance(item, Mapping) or is_json_array(item):
            raise SqlError("2203F", message)
        return None if item is None else _converted(item, type_, zone)

    answer = _answering(read)
    return lambda text, path, variables, *rest: answer((text, path, variables), *rest)


def _converted(item: JsonTree, type_: SqlType, zone: str) -> Value:
    if type_.name in ("json", "jsonb"):
        return canonical_jsonb(item)
    match item:
        case bool():
            text = "t" if item else "f"
        case Decimal():
            text = json_number_text(item)
        case _:
            text = str(item)
    return apply_typmod(parse_text(type_.name, text, timezone=zone), type_, explicit=False)


@makes("sql_json_query(jsonb,jsonpath,jsonb,text,bool,text,any,text,any)")
def _query(call: Call) -> Function:
    type_ = call.type

    def reading(wrapper: str, omits: bool) -> _Reading:
        def read(items: Sequence[JsonTree], _zone: str) -> Value:
            if wrapper == "always" or (wrapper == "several" and len(items) > 1):
                return canonical_jsonb(list(items))
            if len(items) > 1:
                message = (
                    "JSON path expression in JSON_QUERY must return single item when no wrapper"
                    " is requested"
                )
                raise SqlError("22034", message)
            (item,) = items
            if not omits or not isinstance(item, str):
                return canonical_jsonb(item)
            return (
                item if type_.name == "text" else canonical_jsonb(parse_json_tree(parse_json(item)))
            )

        return read

    def run(
        text: Value, path: Value, variables: Value, wrapper: str, omits: bool, *rest: Value
    ) -> Value:
        answer = _answering(reading(wrapper, omits))
        return answer((text, path, variables), *rest, "UTC")

    return run


makes("sql_json_object(bool,bool,any)")(_object(binary=False))
makes("sql_jsonb_object(bool,bool,any)")(_object(binary=True))
makes("sql_json_array(bool,any)")(_array(binary=False))
makes("sql_jsonb_array(bool,any)")(_array(binary=True))
