"""Array functions and operators over tuples of one dimension (sql/types/sql_type.py).

INVARIANTS
  A1  elements are equal as their type's default operator class says. NULLs are equal to each other
      where PostgreSQL's function says so (array_remove, array_position, comparison of arrays), and
      equal to nothing where it does not (@>, <@, &&).
"""

import random
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from compute.reference.functions.ordering import Key, ordering_key
from compute.reference.registry import Function, element_function, implements, makes
from sql.errors import SqlError, not_supported
from sql.functions import table
from sql.functions.table import ARRAY_FORM
from sql.plan.array_calls import cast_element, element_type
from sql.plan.nodes import Call, Const
from sql.types.array_text import multidimensional_array
from sql.types.limits import SPLIT_PARTS_MAX, join_within_limit
from sql.types.sql_type import SqlType, Value
from sql.types.text_output import format_text

Array: TypeAlias = tuple[Value, ...]
_RANDOM: Final = random.SystemRandom()
ARRAY_ITEMS_MAX: Final = 0x3FFF_FFFF // 8


def _too_many_items(most: int) -> SqlError:
    return SqlError("54000", f"array size exceeds the maximum allowed ({most})")


def _item_key(type_: SqlType) -> Callable[[Value], Key]:
    """Elements to keys; NULL has one, too."""
    key = ordering_key(type_)
    return lambda value: None if value is None else (key(value),)


# --- what contains what ------------------------------------------------------------------------


def _present(array: Array, key: Callable[[Value], Key]) -> set[Key]:
    return {key(item) for item in array if item is not None}


@makes("anyarray @> anyarray")
def _contains(call: Call) -> Function:
    key = ordering_key(element_type(call.args[0].type))
    return lambda a, b: None not in b and _present(b, key) <= _present(a, key)


@makes("anyarray <@ anyarray")
def _contained(call: Call) -> Function:
    contains = _contains(call)
    return lambda a, b: contains(b, a)


@makes("anyarray && anyarray")
def _overlaps(call: Call) -> Function:
    key = ordering_key(element_type(call.args[0].type))
    return lambda a, b: not _present(a, key).isdisjoint(_present(b, key))


# --- making arrays -----------------------------------------------------------------------------


@implements("anycompatiblearray || anycompatible", "array_append(anycompatiblearray,anycompatible)")
def _append(array: Array | None, item: Value) -> Array:
    return (*(array or ()), item)


@implements(
    "anycompatible || anycompatiblearray", "array_prepend(anycompatible,anycompatiblearray)"
)
def _prepend(item: Value, array: Array | None) -> Array:
    return (item, *(array or ()))


@implements(
    "anycompatiblearray || anycompatiblearray", "array_cat(anycompatiblearray,anycompatiblearray)"
)
def _concatenate(left: Array | None, right: Array | None) -> Array | None:
    if left is None or right is None:
        return left if right is None else right
    return left + right


@makes("array_remove(anycompatiblearray,anycompatible)")
def _remove(call: Call) -> Function:
    key = _item_key(element_type(call.args[0].type))

    def run(array: Array | None, wanted: Value) -> Array | None:
        if array is None:
            return None
        found = key(wanted)
        return tuple([item for item in array if key(item) != found])

    return run


@makes("array_replace(anycompatiblearray,anycompatible,anycompatible)")
def _replace(call: Call) -> Function:
    key = _item_key(element_type(call.args[0].type))

    def run(array: Array | None, old: Value, new: Value) -> Array | None:
        if array is None:
            return None
        found = key(old)
        return tuple([new if key(item) == found else item for item in array])

    return run


@implements("array_fill(anyelement,_int4)")
def _fill(item: Value, lengths: Array | None) -> Array:
    return _fill_from(item, lengths, None if lengths is None else (1,) * len(lengths))


@implements("array_fill(anyelement,_int4,_int4)")
def _fill_from(item: Value, lengths: Array | None, bounds: Array | None) -> Array:
    if lengths is None or bounds is None:
        raise SqlError("22004", "dimension array or low bound array cannot be null")
    if None in lengths or None in bounds:
        raise SqlError("22004", "dimension values cannot be null")
    if len(bounds) != len(lengths):
        raise SqlError(
            "2202E",
            "wrong number of array subscripts",
            detail="Low bound array has different size than dimensions array.",
        )
    if not lengths:
        return ()
    count = lengths[0]
    assert isinstance(count, int), "a length is an int4"
    if count < 0 or count > ARRAY_ITEMS_MAX:
        raise _too_many_items(ARRAY_ITEMS_MAX)
    if 0 in lengths:
        return ()
    if len(lengths) > 1:
        raise multidimensional_array()
    if bounds != (1,):
        raise not_supported("an array that does not begin at 1")
    return (item,) * count


@implements("trim_array(anyarray,int4)")
def _trim(array: Array, count: int) -> Array:
    if not 0 <= count <= len(array):
        message = f"number of elements to trim must be between 0 and {len(array)}"
        raise SqlError("2202E", message)
    return array[: len(array) - count]


@makes("array_sort(anyarray)", "array_sort(anyarray,bool)", "array_sort(anyarray,bool,bool)")
def _sort(call: Call) -> Function:
    key = ordering_key(element_type(call.type))

    def run(array: Array, descending: bool = False, nulls_first: bool | None = None) -> Array:
        nulls: list[Value] = [item for item in array if item is None]
        rest: list[Value] = sorted(
            (item for item in array if item is not None), key=key, reverse=descending
        )
        first = descending if nulls_first is None else nulls_first
        return tuple(nulls + rest if first else rest + nulls)

    return run


@implements("array_shuffle(anyarray)")
def _shuffle(array: Array) -> Array:
    return tuple(_RANDOM.sample(array, len(array)))


@implements("array_sample(anyarray,int4)")
def _sample(array: Array, count: int) -> Array:
    if not 0 <= count <= len(array):
        raise SqlError("22023", f"sample size must be between 0 and {len(array)}")
    return tuple(_RANDOM.sample(array, count))


# --- looking -----------------------------------------------------------------------------------


@makes(
    "array_position(anycompatiblearray,anycompatible)",
    "array_position(anycompatiblearray,anycompatible,int4)",
)
def _position(call: Call) -> Function:
    key = _item_key(element_type(call.args[0].type))

    def run(array: Array | None, wanted: Value, start: int | None = 1) -> int | None:
        if not array or (wanted is None and None not in array):
            return None
        if start is None:
            raise SqlError("22004", "initial position must not be null")
        found = key(wanted)
        for place in range(max(start, 1), len(array) + 1):
            if key(array[place - 1]) == found:
                return place
        return None

    return run


@makes("array_positions(anycompatiblearray,anycompatible)")
def _positions(call: Call) -> Function:
    key = _item_key(element_type(call.args[0].type))

    def run(array: Array | None, wanted: Value) -> Array | None:
        if array is None:
            return None
        found = key(wanted)
        return tuple([place for place, item in enumerate(array, 1) if key(item) == found])

    return run


@makes("width_bucket(anycompatible,anycompatiblearray)")
def _bucket(call: Call) -> Function:
    """width_bucket() over thresholds, which are trusted to be in order."""
    key = ordering_key(call.args[0].type)

    def run(value: Value, thresholds: Array) -> int:
        if None in thresholds:
            raise SqlError("22004", "thresholds array must not contain NULLs")
        return bisect_right(thresholds, key(value), key=key)

    return run


@implements("array_length(anyarray,int4)", "array_upper(anyarray,int4)")
def _length(array: Array, dimension: int) -> int | None:
    return len(array) if array and dimension == 1 else None


@implements("array_lower(anyarray,int4)")
def _lower(array: Array, dimension: int) -> int | None:
    return 1 if array and dimension == 1 else None


@implements("subscript(anyarray,int4)")
def _subscript(array: Array, index: int) -> Value:
    return array[index - 1] if 1 <= index <= len(array) else None


@implements("slice(anyarray,int4,int4)")
def _slice(array: Array, lower: int, upper: int) -> Array:
    return array[max(lower, 1) - 1 : max(upper, 0)]


# --- text --------------------------------------------------------------------------------------


@makes("array_to_string(anyarray,text)", "array_to_string(anyarray,text,text)")
def _to_string(call: Call) -> Function:
    element = element_type(call.args[0].type)
    has_null = len(call.function.args) == 3

    def shown(array: Array | None, separator: str | None, null: str | None, zone: str) -> Value:
        if array is None or separator is None:
            return None
        texts = [
            null if item is None else format_text(item, element, timezone=zone) for item in array
        ]
        return join_within_limit([text for text in texts if text is not None], separator)

    if has_null:
        return shown
    return lambda array, separator, zone: shown(array, separator, None, zone)


@implements("string_to_array(text,text)", "string_to_array(text,text,text)")
def _from_string(text: str | None, separator: str | None, null: str | None = None) -> Array | None:
    if text is None:
        return None
    if not text:
        return ()
    if len(text) > SPLIT_PARTS_MAX:
        count = len(text) if separator is None else text.count(separator) if separator else 0
        if count >= SPLIT_PARTS_MAX:
            raise _too_many_items(SPLIT_PARTS_MAX)
    parts = list(text) if separator is None else text.split(separator) if separator else [text]
    return tuple([None if part == null else part for part in parts])


# --- all elements --------------------------------------------------------------------------------


@makes(
    "anyarray::anyarray",
    "assign(anyarray)",
    "narrow(anyarray)",
    "char_padded(anyarray,int4)",
    "char_trimmed(anyarray)",
)
def _map(call: Call) -> Function:
    """A conversion of every element by the elements' own row."""
    element = Const(None, element_type(call.args[0].type))
    convert = element_function(cast_element(call, element))

    def run(array: tuple[Value, ...], *zone: Value) -> Value:
        return tuple([None if item is None else convert(item, *zone) for item in array])

    return run


@makes(
    "format.variadic(text,any)",
    "num_nulls.variadic(any)",
    "num_nonnulls.variadic(any)",
    "json_build_array.variadic(any)",
    "json_build_object.variadic(any)",
    "jsonb_build_array.variadic(any)",
    "jsonb_build_object.variadic(any)",
)
def _spread(call: Call) -> Function:
    """f(.., VARIADIC array): f of the elements; a NULL in its place is no elements."""
    row = table.function_by_id(call.function.id.replace(ARRAY_FORM, ""))
    index = len(row.args) - 1
    before, array, after = call.args[:index], call.args[index], call.args[index + 1 :]
    element = Const(None, element_type(array.type))

    @cache
    def of(count: int) -> Function:
        return element_function(Call(row, (*before, *[element] * count, *after), call.type))

    def run(*args: Value) -> Value:
        items = args[index] or ()
        assert isinstance(items, tuple), "an array"
        return of(len(items))(*args[:index], *items, *args[index + 1 :])

    return run


implements("array_ndims(anyarray)")(lambda array: 1 if array else None)
implements("array_dims(anyarray)")(lambda array: f"[1:{len(array)}]" if array else None)
implements("cardinality(anyarray)")(len)
implements("array_reverse(anyarray)")(lambda array: array[::-1])
implements("array(any)")(lambda *items: items)
