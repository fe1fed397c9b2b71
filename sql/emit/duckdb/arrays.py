"""Write arrays and their functions as DuckDB lists.

INVARIANTS
  A1  DuckDB compares lists as PostgreSQL compares arrays, NULL being the greatest element and
      equal to itself (measured on 2.0); elements that DuckDB compares otherwise go to the
      reference evaluator.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sql.emit.duckdb.constant_lists import constant_list, constants_of, in_constant_list
from sql.emit.duckdb.evaluator_calls import evaluator_call, evaluator_call_over, function_table_call
from sql.emit.duckdb.types import array, bind_field_variables, duckdb_type, error, interval_key
from sql.emit.enums import enum_range_of_constants
from sql.emit.state import Scope
from sql.emit.templates import fill_template
from sql.plan.array_calls import cast_element, compare_element, element_type
from sql.plan.bpchar_calls import trim_bpchar
from sql.plan.nodes import AnyAll, Call, Const, Expr
from sql.plan.traverse import has_subquery
from sql.types.enums import is_enum
from sql.types.limits import SPLIT_PARTS_MAX
from sql.types.sql_type import BYTEA, REG_TYPES, SqlType, Value

_NATIVE: Final = frozenset(
    {
        "bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "varchar",
        "bpchar", "name", "char", "uuid", "bytea", "date", "time", "timetz", "timestamp",
        "timestamptz",
        "unknown", "void", "record", *REG_TYPES,
    }
)  # fmt: skip
"""Types that DuckDB compares as PostgreSQL does."""

_CONCATENATED: Final = (
    "case when {0} is null and {1} is null then null else list_concat({0}, {1}) end"
)
_TEMPLATES: Final[dict[str, str]] = {
    "anycompatiblearray || anycompatiblearray": _CONCATENATED,
    "anycompatiblearray || anycompatible": "list_concat({0}, list_value({1}))",
    "anycompatible || anycompatiblearray": "list_concat(list_value({0}), {1})",
    "array_append(anycompatiblearray,anycompatible)": "list_concat({0}, list_value({1}))",
    "array_prepend(anycompatible,anycompatiblearray)": "list_concat(list_value({0}), {1})",
    "array_cat(anycompatiblearray,anycompatiblearray)": _CONCATENATED,
    "array_position(anycompatiblearray,anycompatible)": "nullif(list_position({0}, {1}), 0)",
    "array_length(anyarray,int4)": "case when {1} = 1 then nullif(len({0}), 0) end",
    "array_upper(anyarray,int4)": "case when {1} = 1 then nullif(len({0}), 0) end",
    "array_lower(anyarray,int4)": "case when {1} = 1 and len({0}) > 0 then 1 end",
    "array_ndims(anyarray)": "case when len({0}) > 0 then 1 end",
    "array_dims(anyarray)": "case when len({0}) > 0 then concat('[1:', len({0}), ']') end",
    "cardinality(anyarray)": "len({0})",
    "array_reverse(anyarray)": "list_reverse({0})",
    "subscript(anyarray,int4)": "case when {1} > 0 then {0}[{1}] end",
    "slice(anyarray,int4,int4)": (
        "case when {1} is null or {2} is null then null"
        " when {2} < 1 then list_slice({0}, 2, 1)"
        " else list_slice({0}, greatest({1}, 1), {2}) end"
    ),
}


def compares_natively(type_: SqlType) -> bool:
    """Whether DuckDB compares and groups values of the type as PostgreSQL does (A1)."""
    return (type_.element or type_).name in _NATIVE and not type_.has_blanks


def key(expr: Expr, scope: Scope) -> str | None:
    """The text that DuckDB compares instead of a value, to see whether it is equal."""
    if expr.type.has_blanks:
        return scope.emit(trim_bpchar(expr))
    text, type_ = scope.emit(expr), expr.type
    if compares_natively(type_) or is_enum(type_.name):
        return text
    if type_.name == "interval":
        return interval_key(text)
    if type_.name == "jsonb":
        return evaluator_call_over(
            function_table_call("sort_key(jsonb)", (type_,), BYTEA), (text,), scope
        )
    return None


def _function(call: Call, scope: Scope) -> str:
    """A template, if DuckDB has one and the elements are its own."""
    template = _TEMPLATES.get(call.function.id)
    compares = call.function.name in ("array_position",)
    if template is None or (compares and not compares_natively(call.args[0].type)):
        return evaluator_call(call, scope)
    return fill_template(template, [scope.emit(arg) for arg in call.args], error)


def _compare(call: Call, scope: Scope) -> str:
    if not compares_natively(call.args[0].type):
        return evaluator_call(call, scope)
    left, right = (scope.emit(arg) for arg in call.args)
    # DuckDB makes BETWEEN of an upper and a lower bound of the same value, and has none for lists.
    if call.function.name in ("<", "<="):
        left = f"coalesce({left}, null)"
    elif call.function.name in (">", ">="):
        right = f"coalesce({right}, null)"
    return f"{left} {call.function.name} {right}"


def _items(call: Call, scope: Scope) -> str:
    constants, element = constants_of(call.args), element_type(call.type)
    if constants is not None and all(arg.type.name == element.name for arg in call.args):
        found = constant_list(constants, element, scope)
        if found is not None:
            return f"cast({found} as {duckdb_type(call.type)})"
    return array([scope.emit(arg) for arg in call.args], call.type)


def _map(call: Call, scope: Scope) -> str:
    """A conversion of every element."""
    name, element, inside = scope.element(element_type(call.args[0].type))
    body = inside.emit(cast_element(call, element))
    return f"list_transform({scope.emit(call.args[0])}, lambda {name}: {body})"


def any_all(expr: AnyAll, scope: Scope) -> str:
    """`left op ANY (array)`: constant elements one by one, others by a lambda."""
    known = scope.statement.known(expr.args[1])
    if known is not None:
        return _over_known(expr, known[0], scope)
    if any(map(has_subquery, expr.args)):
        # No lambda has a subquery.
        name, operands, inside = scope.fields(expr.args)
        body = any_all(replace(expr, args=operands), inside)
        return bind_field_variables(name, [scope.emit(arg) for arg in expr.args], body)
    name, element, inside = scope.element(element_type(expr.args[1].type))
    body = inside.emit(compare_element(expr, element))
    found = f"list_transform({scope.emit(expr.args[1])}, lambda {name}: {body})"
    decisive, otherwise = ("false", "true") if expr.all else ("true", "false")
    return (
        f"(case when {found} is null then cast(null as boolean)"
        f" when list_contains({found}, {decisive}) then {decisive}"
        f" when list_count({found}) < len({found}) then cast(null as boolean)"
        f" else {otherwise} end)"
    )


_ALIKE: Final = (frozenset({"int2", "int4", "int8"}), frozenset({"text", "varchar"}))


def _compares_alike(one: str, other: str) -> bool:
    """Whether values of both types compare as DuckDB compares them side by side."""
    return one == other or any(one in group and other in group for group in _ALIKE)


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
        and _compares_alike(element.name, expr.args[0].type.name)
        and compares_natively(element)
    ):
        joined = in_constant_list(expr.args[0], items, element, scope, negated=expr.all)
        if joined is not None:
            return joined
        word = "not in" if expr.all else "in"
        texts = ", ".join(scope.statement.constant(item, element) for item in items)
        return f"({scope.emit(expr.args[0])} {word} ({texts}))"
    parts: list[Expr] = [compare_element(expr, Const(item, element)) for item in items]
    return "(" + (" and " if expr.all else " or ").join(scope.emit(part) for part in parts) + ")"


def _string_to_array(call: Call, scope: Scope) -> str:
    """A separator that is known and not empty; others one by one."""
    separator = scope.statement.known(call.args[1])
    if separator is None or not separator[0]:
        return evaluator_call(call, scope)
    x, by = scope.emit(call.args[0]), scope.emit(call.args[1])
    empty = f"cast([] as {duckdb_type(call.type)})"
    many = f"strlen({x}) - strlen(replace({x}, {by}, '')) >= {SPLIT_PARTS_MAX} * strlen({by})"
    too_many = error("54000", f"array size exceeds the maximum allowed ({SPLIT_PARTS_MAX})")
    return (
        f"case when {x} = '' then {empty}"
        f" when strlen({x}) > {SPLIT_PARTS_MAX} and {many} then {too_many}"
        f" else string_split({x}, {by}) end"
    )


def _enum_span(call: Call, scope: Scope) -> str:
    return enum_range_of_constants(call, scope) or evaluator_call(call, scope)


SPECIALS: Final[dict[str, Callable[[Call, Scope], str]]] = {
    "array": _function,
    "enum_span": _enum_span,
    "array_compare": _compare,
    "array_items": _items,
    "array_map": _map,
    "array_to_string": evaluator_call,
    "string_to_array": _string_to_array,
}
