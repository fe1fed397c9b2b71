"""Sets out of json and jsonb, as arrays of each of their columns (`sql/bind_sets.py`)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NoReturn

from compute.reference_json import as_text, plain, raw_as_text
from compute.reference_numbers import Maker
from sql.errors import SqlError
from sql.json_text import canonical, elements, fields, tree
from sql.json_values import is_list
from sql.types import Value

_Items = Callable[[str], Sequence[Value]]


def _refuse(message: str) -> NoReturn:
    raise SqlError("22023", message)


def _kind(text: str) -> str:
    """What a json is, by its first sign."""
    first = text.lstrip(" \t\n\r")[:1]
    return {"[": "array", "{": "object"}.get(first, "scalar")


def _json_elements(name: str) -> Callable[[str], Sequence[str]]:
    def run(text: str) -> Sequence[str]:
        parts = elements(text) if _kind(text) == "array" else None
        if parts is None:
            what = "non-array" if _kind(text) == "object" else "scalar"
            _refuse(f"cannot call {name} on a {what}")
        return parts

    return run


def _jsonb_elements(text: str) -> Sequence[Value]:
    found = tree(text)
    if not is_list(found):
        what = "an object" if isinstance(found, Mapping) else "a scalar"
        _refuse(f"cannot extract elements from {what}")
    return found  # type: ignore[return-value]


def _json_fields(text: str) -> Sequence[tuple[str, str]]:
    if _kind(text) != "object":
        what = "an array as an object" if _kind(text) == "array" else "a scalar"
        _refuse(f"cannot deconstruct {what}")
    return list(fields(text) or ())


def _jsonb_fields(name: str) -> Callable[[str], Mapping[str, object]]:
    def run(text: str) -> Mapping[str, object]:
        found = tree(text)
        if not isinstance(found, Mapping):
            _refuse(f"cannot call {name} on a non-object")
        return found

    return run


def _object_keys(name: str) -> _Items:
    def run(text: str) -> Sequence[Value]:
        if _kind(text) != "object":
            what = "an array" if _kind(text) == "array" else "a scalar"
            _refuse(f"cannot call {name} on {what}")
        if name.startswith("jsonb"):
            return tuple(_jsonb_fields(name)(text))
        return tuple([key for key, _ in _json_fields(text)])

    return run


def _json_sets() -> dict[str, Maker]:
    made: dict[str, _Items] = {}
    for name, shown in (("json_array_elements", None), ("json_array_elements_text", raw_as_text)):
        parts = _json_elements(name)
        made[f"{name}.value(json)"] = _each(parts, shown)
    for name, shown in (("json_each", None), ("json_each_text", raw_as_text)):
        made[f"{name}.key(json)"] = lambda text: tuple([key for key, _ in _json_fields(text)])
        made[f"{name}.value(json)"] = _each(
            lambda text: [part for _, part in _json_fields(text)], shown
        )
    return {id_: plain(_of(run)) for id_, run in made.items()}


def _jsonb_sets() -> dict[str, Maker]:
    made: dict[str, _Items] = {}
    for name, shown in (
        ("jsonb_array_elements", canonical),
        ("jsonb_array_elements_text", as_text),
    ):
        made[f"{name}.value(jsonb)"] = _each(_jsonb_elements, shown)
    for name, shown in (("jsonb_each", canonical), ("jsonb_each_text", as_text)):
        found = _jsonb_fields(name)
        made[f"{name}.key(jsonb)"] = _each(partial(_keys, found), None)
        made[f"{name}.value(jsonb)"] = _each(partial(_values, found), shown)
    return {id_: plain(_of(run)) for id_, run in made.items()}


_Fields = Callable[[str], Mapping[str, object]]


def _keys(found: _Fields, text: str) -> Sequence[object]:
    return list(found(text))


def _values(found: _Fields, text: str) -> Sequence[object]:
    return list(found(text).values())


def _each(parts: Callable[[str], Sequence[object]], shown: Callable[..., Value] | None) -> _Items:
    if shown is None:
        return lambda text: tuple(parts(text))  # type: ignore[arg-type]
    return lambda text: tuple([shown(part) for part in parts(text)])


def _of(run: _Items) -> Callable[..., Value]:
    return lambda text: tuple(run(text))


JSON_SETS: Final[dict[str, Maker]] = {
    **_json_sets(),
    **_jsonb_sets(),
    **{
        f"{kind}_object_keys.key({kind})": plain(_of(_object_keys(f"{kind}_object_keys")))
        for kind in ("json", "jsonb")
    },
}
