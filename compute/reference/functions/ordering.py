"""Sort keys and equality keys of values, as PostgreSQL's default operator classes compare them.

NaN = NaN, NaN > everything else; -0.0 = 0.0; intervals by length; text by bytes (collation C)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from compute.reference.functions.datetime import interval_length
from sql.types.enums import enum_of, is_enum
from sql.types.json.parser import JsonTree, jsonb_key_order, parse_json_tree
from sql.types.sql_type import Interval, SqlType, Value

# A key of any comparable Python type: values of one column have keys of one type.
Key: TypeAlias = Any
_NAN = (1, 0.0)


def ordering_key(type_: SqlType) -> Callable[[Value], Key]:
    """A function from values (not NULL) to keys that compare and hash as PostgreSQL compares."""
    if type_.name in ("float4", "float8"):
        return _float_key
    if type_.name == "interval":
        return _interval_key
    if type_.name == "jsonb":
        return _jsonb_key
    if is_enum(type_.name):
        return _place_in(enum_of(type_.name).labels)
    if (element := type_.element) is not None:
        return _array_key(ordering_key(element))
    return _trimmed if type_.has_blanks else _identity


def is_own_key(key: Callable[[Value], Key]) -> bool:
    """Whether values are their own keys of an order."""
    return key is _identity


def _place_in(labels: Sequence[str]) -> Callable[[Value], Key]:
    """Enums: by declaration."""
    places: dict[Value, int] = {label: place for place, label in enumerate(labels)}
    return places.__getitem__


def _array_key(key: Callable[[Value], Key]) -> Callable[[Value], Key]:
    """Elements by their own order, NULL being the greatest and equal to itself (array_cmp)."""

    def run(value: Value) -> Key:
        assert isinstance(value, tuple), "an array"
        return tuple([(1,) if item is None else (0, key(item)) for item in value])

    return run


def _float_key(value: Value) -> Key:
    assert isinstance(value, float), "a float"
    return _NAN if math.isnan(value) else (0, value)


def _interval_key(value: Value) -> Key:
    assert isinstance(value, Interval), "an interval"
    return interval_length(value)


def _jsonb_key(value: Value) -> Key:
    assert isinstance(value, str), "a jsonb"
    # An empty array at the top is the least of all (compareJsonbContainers).
    return (-1,) if value == "[]" else _tree_key(parse_json_tree(value))


def _tree_key(value: JsonTree) -> Key:
    match value:
        case None:
            return (0,)
        case str():
            return (1, value.encode())
        case bool():
            return (3, value)
        case Decimal():
            return (2, value)
        case Mapping():
            keys = sorted(value, key=jsonb_key_order)
            pairs = [part for key in keys for part in (key.encode(), _tree_key(value[key]))]
            return (5, len(keys), tuple(pairs))
        case _:
            return (4, len(value), tuple([_tree_key(item) for item in value]))


def _trimmed(value: Value) -> Key:
    assert isinstance(value, str), "a bpchar"
    return value.rstrip(" ")


def _identity(value: Value) -> Key:
    return value


def row_key(types: Sequence[SqlType]) -> Callable[[Sequence[Value]], Key]:
    """A function from rows to keys; keys are equal if the rows are not distinct (NULLs are
    equal).
    """
    keys = [ordering_key(type_) for type_ in types]
    if all(key is _identity for key in keys):
        return tuple
    return lambda row: tuple(
        [None if value is None else key(value) for key, value in zip(keys, row, strict=True)]
    )
