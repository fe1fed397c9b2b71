"""Write arrays and their functions as Spark arrays.

INVARIANTS
  A1  equality of arrays is PostgreSQL's, NULL being equal to itself. Where the order counts,
      elements become structs (is it NULL, the element), because Spark's NULL is the least.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sql.emit.enums import enum_range_of_constants
from sql.emit.spark.types import array, error, interval_key, spark_type, unsupported
from sql.emit.spark.worker_functions import jsonb_sort_key_call
from sql.emit.state import Scope
from sql.emit.templates import fill_template, function_description
from sql.plan.array_calls import cast_element, compare_element, element_type
from sql.plan.bpchar_calls import trim_bpchar
from sql.plan.nodes import AnyAll, Call, Const, Expr
from sql.plan.traverse import has_subquery
from sql.types.enums import is_enum
from sql.types.limits import SPLIT_PARTS_MAX
from sql.types.sql_type import REG_TYPES, SqlType, Value

_NATIVE: Final = frozenset(
    {
        "bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "varchar",
        "bpchar", "name", "char", "uuid", "bytea", "date", "time", "timetz", "timestamp",
        "timestamptz",
        "unknown", "void", *REG_TYPES,
    }
)  # fmt: skip
"""Types that Spark compares as PostgreSQL does."""

_TEMPLATES: Final[dict[str, str]] = {
    "array_length(anyarray,int4)": "case when {1} = 1 then nullif(size({0}), 0) end",
    "array_upper(anyarray,int4)": "case when {1} = 1 then nullif(size({0}), 0) end",
    "array_lower(anyarray,int4)": "case when {1} = 1 and size({0}) > 0 then 1 end",
    "array_ndims(anyarray)": "case when size({0}) > 0 then 1 end",
    "array_dims(anyarray)": "case when size({0}) > 0 then concat('[1:', size({0}), ']') end",
    "cardinality(anyarray)": "size({0})",
    "array_reverse(anyarray)": "reverse({0})",
    "subscript(anyarray,int4)": "case when {1} > 0 then get({0}, {1} - 1) end",
    "slice(anyarray,int4,int4)": (
        "case when {1} is not null and {2} is not null then slice({0}, greatest({1}, 1),"
        " greatest(cast(least({2}, size({0})) as bigint) - greatest({1}, 1) + 1, 0L)) end"
    ),
    "anycompatiblearray || anycompatible": "concat(coalesce({0}, {E}), array({1}))",
    "anycompatible || anycompatiblearray": "concat(array({0}), coalesce({1}, {E}))",
    "array_append(anycompatiblearray,anycompatible)": "concat(coalesce({0}, {E}), array({1}))",
    "array_prepend(anycompatible,anycompatiblearray)": "concat(array({0}), coalesce({1}, {E}))",
    "anycompatiblearray || anycompatiblearray": "coalesce(concat({0}, {1}), {0}, {1})",
    "array_cat(anycompatiblearray,anycompatiblearray)": "coalesce(concat({0}, {1}), {0}, {1})",
}
_COMPARING: Final[dict[str, str]] = {
    "anyarray @> anyarray": (
        "case when {0} is not null"
        " then forall({1}, v -> coalesce(array_contains({0}, v), false)) end"
    ),
    "anyarray <@ anyarray": (
        "case when {1} is not null"
        " then forall({0}, v -> coalesce(array_contains({1}, v), false)) end"
    ),
    "anyarray && anyarray": (
        "case when {0} is not null"
        " then exists({1}, v -> coalesce(array_contains({0}, v), false)) end"
    ),
    "array_remove(anycompatiblearray,anycompatible)": "filter({0}, v -> not (v <=> {1}))",
    "array_replace(anycompatiblearray,anycompatible,anycompatible)": (
        "transform({0}, v -> case when v <=> {1} then {2} else v end)"
    ),
}
"""Templates that compare elements."""


def compares_natively(type_: SqlType) -> bool:
    """Whether Spark compares and groups values of the type as PostgreSQL does (A1)."""
    return (type_.element or type_).name in _NATIVE and not type_.has_blanks


def key(expr: Expr, scope: Scope) -> str | None:
    """The text that Spark compares instead of a value, to see whether it is equal."""
    if expr.type.has_blanks:
        return scope.emit(trim_bpchar(expr))
    if compares_natively(expr.type) or is_enum(expr.type.name):
        return scope.emit(expr)
    if expr.type.name == "jsonb":
        return scope.emit(jsonb_sort_key_call(expr))
    return interval_key(scope.emit(expr)) if expr.type.name == "interval" else None


def array_sort_text(text: str, type_: SqlType) -> str:
    """A text that sorts as the array does (A1)."""
    if not compares_natively(type_) and not type_.has_blanks:
        raise unsupported(f"ordering by {type_.name}")
    return f"transform({text}, v -> struct(v is null, v))"


def _function(call: Call, scope: Scope) -> str:
    template = _TEMPLATES.get(call.function.id)
    if template is None and compares_natively(call.args[0].type):
        template = _COMPARING.get(call.function.id)
    if template is None:
        raise unsupported(function_description(call.function))
    if "->" in template:
        _check_subqueries(call.args)
        scope = replace(scope, in_lambda=True)
    text = template.replace("{E}", f"cast(array() as {spark_type(call.type)})")
    return fill_template(text, [scope.emit(arg) for arg in call.args], error)


def _check_subqueries(args: Sequence[Expr]) -> None:
    """Spark takes none in the arguments of a function with a lambda."""
    if any(map(has_subquery, args)):
        raise unsupported("a subquery in a function of an array's elements")


def _compare(call: Call, scope: Scope) -> str:
    type_ = call.args[0].type
    if not compares_natively(type_):
        raise unsupported(f"comparing values of type {type_.name}")
    left, right = (scope.emit(arg) for arg in call.args)
    if call.function.name not in ("=", "<>"):
        left, right = array_sort_text(left, type_), array_sort_text(right, type_)
    return f"{left} {call.function.name} {right}"


def _compare_jsonb(call: Call, scope: Scope) -> str:
    """By keys, one for each side, so that a join has something to sort by."""
    left, right = call.args
    if any(scope.statement.known(side) is not None for side in call.args):
        raise unsupported("comparing a jsonb with a constant")
    first, second = (scope.emit(jsonb_sort_key_call(side)) for side in (left, right))
    return f"{first} {call.function.name} {second}"


def _items(call: Call, scope: Scope) -> str:
    return array([scope.emit(arg) for arg in call.args], call.type)


def _map(call: Call, scope: Scope) -> str:
    """A conversion of every element."""
    _check_subqueries(call.args)
    name, element, inside = scope.element(element_type(call.args[0].type))
    body = inside.emit(cast_element(call, element))
    return f"transform({scope.emit(call.args[0])}, {name} -> {body})"


def any_all(expr: AnyAll, scope: Scope) -> str:
    """`left op ANY (array)`; exists and forall answer in three-valued logic."""
    known = scope.statement.known(expr.args[1])
    if known is not None:
        return _over_known(expr, known[0], scope)
    _check_subqueries(expr.args)
    name, element, inside = scope.element(element_type(expr.args[1].type))
    body = inside.emit(compare_element(expr, element))
    function = "forall" if expr.all else "exists"
    return f"{function}({scope.emit(expr.args[1])}, {name} -> {body})"


def _over_known(expr: AnyAll, items: Value, scope: Scope) -> str:
    if items is None:
        return "cast(null as boolean)"
    assert isinstance(items, tuple), "an array is a tuple"
    if not items:
        return "true" if expr.all else "false"
    element = element_type(expr.args[1].type)
    wanted = "<>" if expr.all else "="
    if (
        expr.function.name == wanted
        and element.name == expr.args[0].type.name
        and compares_natively(element)
    ):
        word = "not in" if expr.all else "in"
        texts = ", ".join(scope.statement.constant(item, element) for item in items)
        return f"({scope.emit(expr.args[0])} {word} ({texts}))"
    parts: list[Expr] = [compare_element(expr, Const(item, element)) for item in items]
    return "(" + (" and " if expr.all else " or ").join(scope.emit(part) for part in parts) + ")"


def _to_string(call: Call, scope: Scope) -> str:
    """Of texts; NULLs are left out, or written as the third argument says."""
    if element_type(call.args[0].type).name not in ("text", "varchar", "name", "char", "uuid"):
        raise unsupported("array_to_string of this type")
    if len(call.function.args) == 2:
        return f"array_join({scope.emit(call.args[0])}, {scope.emit(call.args[1])})"
    array_, separator, null = (scope.emit(arg) for arg in call.args[:3])
    return (
        f"case when {null} is null then array_join({array_}, {separator})"
        f" else array_join({array_}, {separator}, {null}) end"
    )


def _from_string(call: Call, scope: Scope) -> str:
    """A separator that is known and not empty."""
    separator = scope.statement.known(call.args[1])
    if separator is None or not isinstance(separator[0], str) or not separator[0]:
        raise unsupported("string_to_array with such a separator")
    x = scope.emit(call.args[0])
    quoted = separator[0].replace("\\E", "\\E\\\\E\\Q")
    by = scope.statement.string(f"\\Q{quoted}\\E")
    empty = f"cast(array() as {spark_type(call.type)})"
    separator_text = scope.emit(call.args[1])
    left = f"length(replace({x}, {separator_text}, ''))"
    many = f"length({x}) - {left} >= {SPLIT_PARTS_MAX} * length({separator_text})"
    too_many = error("54000", f"array size exceeds the maximum allowed ({SPLIT_PARTS_MAX})")
    return (
        f"case when {x} = '' then {empty}"
        f" when length({x}) > {SPLIT_PARTS_MAX} and {many} then {too_many}"
        f" else split({x}, {by}, -1) end"
    )


def _enum_span(call: Call, scope: Scope) -> str:
    found = enum_range_of_constants(call, scope)
    if found is None:
        raise unsupported("enum_range() of these bounds")
    return found


SPECIALS: Final[dict[str, Callable[[Call, Scope], str]]] = {
    "array": _function,
    "enum_span": _enum_span,
    "array_compare": _compare,
    "jsonb_compare": _compare_jsonb,
    "array_items": _items,
    "array_map": _map,
    "array_to_string": _to_string,
    "string_to_array": _from_string,
}
