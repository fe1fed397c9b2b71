"""Modify a jsonb at a path: jsonb_set, jsonb_insert, `#-` (setPath of PostgreSQL)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from compute.reference.registry import implements
from sql.errors import SqlError
from sql.types.json.parser import JsonTree, canonical_jsonb, parse_json_tree
from sql.types.json.to_json import is_json_array
from sql.types.sql_type import Value

_Items: TypeAlias = list[JsonTree]


class _Change:
    """The change at the end of a path: `replace`, `create`, `before`, `after` or `delete`."""

    def __init__(self, kind: str, path: Sequence[Value], value: JsonTree = None) -> None:
        self.kind = kind
        self.path = path
        self.value = value

    @property
    def adds(self) -> bool:
        """Whether the change may add a value that was not there."""
        return self.kind in ("create", "before", "after")

    def step(self, level: int) -> str:
        """An element of the path, which must not be NULL."""
        found = self.path[level]
        if found is None:
            message = f"path element at position {level + 1} is null"
            raise SqlError("22004", message)
        return str(found)

    def ends(self, level: int) -> bool:
        """Whether the path ends at this level."""
        return level == len(self.path) - 1


@implements("jsonb_set(jsonb,_text,jsonb,bool)")
def jsonb_set(text: str, path: Sequence[Value], value: str, create: bool) -> str:
    """A jsonb with the value at a path replaced, or added."""
    found = parse_json_tree(text)
    _check_container(found, "cannot set path in scalar")
    if not found and not create:
        return text
    return _changed(text, _Change("create" if create else "replace", path, parse_json_tree(value)))


@implements("jsonb_insert(jsonb,_text,jsonb)", "jsonb_insert(jsonb,_text,jsonb,bool)")
def jsonb_insert(text: str, path: Sequence[Value], value: str, after: bool = False) -> str:
    """A jsonb with a value inserted at a path."""
    _check_container(parse_json_tree(text), "cannot set path in scalar")
    return _changed(text, _Change("after" if after else "before", path, parse_json_tree(value)))


@implements("jsonb #- _text")
def jsonb_delete_path(text: str, path: Sequence[Value]) -> str:
    """`jsonb #- path`."""
    found = parse_json_tree(text)
    _check_container(found, "cannot delete path in scalar")
    return _changed(text, _Change("delete", path)) if found else text


def _check_container(value: JsonTree, message: str) -> None:
    if not is_json_array(value) and not isinstance(value, Mapping):
        raise SqlError("22023", message)


def _changed(text: str, change: _Change) -> str:
    return canonical_jsonb(_at(parse_json_tree(text), change, 0)) if change.path else text


def _at(value: JsonTree, change: _Change, level: int) -> JsonTree:
    if level >= len(change.path):
        return value
    if isinstance(value, Mapping):
        return _in_object(value, change, level)
    if is_json_array(value):
        return _in_array(value, change, level)
    # Below a scalar there is nothing; the path is still looked at.
    change.step(level)
    return value


def _in_object(value: Mapping[str, JsonTree], change: _Change, level: int) -> JsonTree:
    key = change.step(level)
    found = dict(value)
    if not change.ends(level):
        if key in found:
            found[key] = _at(found[key], change, level + 1)
        return found
    if key not in found:
        if change.adds:
            found[key] = change.value
        return found
    if change.kind in ("before", "after"):
        hint = "Try using the function jsonb_set to replace key value."
        raise SqlError("22023", "cannot replace existing key", hint=hint)
    if change.kind == "delete":
        del found[key]
    else:
        found[key] = change.value
    return found


def _in_array(value: Sequence[JsonTree], change: _Change, level: int) -> JsonTree:
    step = change.step(level)
    index = _position(step, level, len(value))
    items: _Items = list(value)
    if change.ends(level) and change.adds and (index < 0 or not items):
        return [change.value, *items]
    if not 0 <= index < len(items):
        return [*items, change.value] if change.ends(level) and change.adds else items
    if not change.ends(level):
        items[index] = _at(items[index], change, level + 1)
        return items
    instead: dict[str, Callable[[], _Items]] = {
        "delete": list,
        "before": lambda: [change.value, items[index]],
        "after": lambda: [items[index], change.value],
    }
    made = instead.get(change.kind, lambda: [change.value])()
    return [*items[:index], *made, *items[index + 1 :]]


def _position(step: str, level: int, count: int) -> int:
    """The index that a step means; below 0: before the first."""
    try:
        index = int(step) if step.isascii() else None
    except ValueError:
        index = None
    if index is None or "_" in step or step != step.rstrip():
        message = f'path element at position {level + 1} is not an integer: "{step}"'
        raise SqlError("22P02", message)
    return index if index >= 0 else max(count + index, -1)
