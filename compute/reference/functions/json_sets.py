"""Set-returning functions of json and jsonb, as arrays: elements, keys and values."""

from collections.abc import Mapping
from typing import Final

from compute.reference.functions.json_escapes import checking_escapes
from compute.reference.registry import Function, implements
from sql.errors import SqlError
from sql.types.json.parser import (
    JsonTree,
    canonical_jsonb,
    jsonb_key_order,
    parse_json_tree,
    split_json_array,
    split_json_object,
)
from sql.types.json.to_json import is_json_array, json_item_as_text, raw_json_item_as_text


def _items(text: str, name: str) -> list[str]:
    found = split_json_array(text)
    if found is None:
        kind = "a scalar" if split_json_object(text) is None else "a non-array"
        raise SqlError("22023", f"cannot call {name} on {kind}")
    return found


def _members(text: str, name: str, refusal: str) -> list[tuple[str, str]]:
    found = split_json_object(text)
    if found is None:
        kind = "a scalar" if split_json_array(text) is None else "an array"
        raise SqlError("22023", refusal.format(name=name, kind=kind))
    return found


_KEYS_REFUSED: Final = "cannot call {name} on {kind}"


def _each(text: str) -> list[tuple[str, str]]:
    found = split_json_object(text)
    if found is not None:
        return found
    if split_json_array(text) is None:
        raise SqlError("22023", "cannot deconstruct a scalar")
    raise SqlError("22023", "cannot deconstruct an array as an object")


def _b_items(text: str) -> list[JsonTree]:
    found = parse_json_tree(text)
    if is_json_array(found):
        return list(found)
    kind = "an object" if isinstance(found, Mapping) else "a scalar"
    raise SqlError("22023", f"cannot extract elements from {kind}")


def _b_members(text: str, name: str) -> list[tuple[str, JsonTree]]:
    found = parse_json_tree(text)
    if not isinstance(found, Mapping):
        kind = "an array" if is_json_array(found) else "a scalar"
        if name != "jsonb_object_keys":
            kind = "a non-object"
        raise SqlError("22023", f"cannot call {name} on {kind}")
    return [(key, found[key]) for key in sorted(found, key=jsonb_key_order)]


def _b_keys(name: str) -> Function:
    return lambda text: tuple([key for key, _ in _b_members(text, name)])


implements("json_array_elements(json)")(lambda text: tuple(_items(text, "json_array_elements")))
implements("json_array_elements_text(json)")(
    checking_escapes(
        lambda text: tuple(
            [raw_json_item_as_text(p) for p in _items(text, "json_array_elements_text")]
        )
    )
)
implements("json_object_keys(json)")(
    checking_escapes(
        lambda text: tuple([k for k, _ in _members(text, "json_object_keys", _KEYS_REFUSED)])
    )
)
implements("json_each(json)")(
    checking_escapes(lambda text: tuple([part for _, part in _each(text)]))
)
implements("json_each_text(json)")(
    checking_escapes(lambda text: tuple([raw_json_item_as_text(part) for _, part in _each(text)]))
)
implements("json_each_keys(json)", "json_each_text_keys(json)")(
    lambda text: tuple([key for key, _ in _each(text)])
)
implements("jsonb_array_elements(jsonb)")(
    lambda text: tuple([canonical_jsonb(item) for item in _b_items(text)])
)
implements("jsonb_array_elements_text(jsonb)")(
    lambda text: tuple([json_item_as_text(item) for item in _b_items(text)])
)
implements("jsonb_object_keys(jsonb)")(_b_keys("jsonb_object_keys"))
implements("jsonb_each(jsonb)")(
    lambda text: tuple([canonical_jsonb(item) for _, item in _b_members(text, "jsonb_each")])
)
implements("jsonb_each_text(jsonb)")(
    lambda text: tuple([json_item_as_text(item) for _, item in _b_members(text, "jsonb_each_text")])
)
implements("jsonb_each_keys(jsonb)")(_b_keys("jsonb_each"))
implements("jsonb_each_text_keys(jsonb)")(_b_keys("jsonb_each_text"))
