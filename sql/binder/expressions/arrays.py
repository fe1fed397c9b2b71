"""Array syntax: ARRAY[..], ARRAY(SELECT ..), subscripts and slices, ANY and ALL over an array.

INVARIANTS
  R1  an array has one dimension and begins at 1 (sql/types/sql_type.py); an expression that would
      make another array is refused with 0A000.
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast
from pglast.enums import A_Expr_Kind

from sql.binder.expressions.catalog_casts import with_catalog_array_type
from sql.binder.expressions.catalog_vectors import is_vector, subscript_of_vector
from sql.binder.expressions.rows import field_of_row
from sql.binder.resolve.coercion import (
    ASSIGNMENT,
    EXPLICIT,
    IMPLICIT,
    coerce,
    coerce_implicitly,
    rescale_numeric,
    zone_arguments,
)
from sql.binder.resolve.collations import merged_collation, set_collation
from sql.binder.resolve.function_choice import operator_signature
from sql.binder.resolve.overloads import AmbiguousOverload, choose_operator
from sql.binder.resolve.sql_functions import inline_sql_function
from sql.binder.resolve.unified_types import as_common_type, select_common_type
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, datatype_mismatch, not_supported, undefined_function
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, is_a, location, node_position, offset_to_position
from sql.plan.array_calls import element_type
from sql.plan.bpchar_calls import trim_bpchar_arguments, unify_bpchar
from sql.plan.constant_items import ITEMS_MIN, ConstantItems
from sql.plan.nodes import AnyAll, BoolOp, Call, Const, Expr, InList, Logical, Param
from sql.types.array_text import multidimensional_array
from sql.types.bpchar import is_bpchar
from sql.types.numeric import unify_numeric_types
from sql.types.records import check_record_keys
from sql.types.sql_type import (
    BOOL,
    INT4,
    JSONB,
    TEXT,
    SqlType,
    Value,
    array_of,
    format_type,
    is_type,
    plain_type,
)

_END: Final = 2**31 - 1
"""The upper bound of a slice that has none."""


def array_constructor(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`ARRAY[..]` on its own (transformArrayExpr)."""
    nodes = node.elements or ()
    if not nodes:
        hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[]."
        message = "cannot determine type of empty array"
        raise SqlError("42P18", message, offset_to_position(node.location), hint=hint)
    exprs = _items(binding, scope, nodes)
    chosen = select_common_type(exprs, nodes, "ARRAY")
    assert chosen is not None, "with `what` a mismatch raises"
    if not is_type(f"_{chosen.name}"):
        raise no_array_type(chosen, offset_to_position(node.location))
    collation = merged_collation(binding, exprs)
    items, element = as_common_type(binding, exprs, nodes, chosen, "ARRAY")
    return set_collation(binding, array_of_items(items, array_of(element)), collation)


def no_array_type(element: SqlType, place: int | None) -> SqlError:
    """The error for arrays of a type: 42704 if PostgreSQL has none either."""
    shown = format_type(element.bare())
    if element.name not in ("void", "unknown"):
        return not_supported(f"arrays of {shown}", place)
    return SqlError("42704", f"could not find array type for data type {shown}", place)


def cast_constructor(binding: Binding, scope: Scope, node: Node, target: SqlType) -> Expr | None:
    """`ARRAY[..]::type[]`: every element is cast by itself; None for any other node."""
    element = target.element
    if element is None or not is_a(node, ast.A_ArrayExpr):
        return None
    nodes = node.elements or ()
    items: list[Expr] = []
    for expr, item in zip(_items(binding, scope, nodes), nodes, strict=True):
        done = coerce(binding, expr, item, element, EXPLICIT)
        if done is None:
            shown = f"{format_type(expr.type.bare())} to {format_type(element.bare())}"
            raise SqlError("42846", f"cannot cast type {shown}", node_position(item))
        items.append(rescale_numeric(binding, done, element) if element.name == "numeric" else done)
    if is_bpchar(element):
        items, element = unify_bpchar(items, element.typmod)
        return array_of_items(items, array_of(element))
    return array_of_items(items, target)


def _items(binding: Binding, scope: Scope, nodes: Sequence[Node]) -> list[Expr]:
    exprs = [binding.expression(scope, item) for item in nodes]
    for expr, item in zip(exprs, nodes, strict=True):
        if expr.type.element is not None or is_a(item, ast.A_ArrayExpr):
            raise multidimensional_array().at(node_position(item))
    return exprs


def array_of_items(items: Sequence[Expr], type_: SqlType) -> Expr:
    """An array of these elements; a constant if all of them are."""
    values = [item.value for item in items if isinstance(item, Const)]
    if len(values) == len(items):
        return Const(tuple(values), type_)
    return Call(function_by_id("array(any)"), tuple(items), type_)


# --- subscripts --------------------------------------------------------------------------------


def array_subscript(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`a[1]`, `a[2:3]` (transformContainerSubscripts)."""
    if is_a(node.indirection[0], ast.String):
        return field_of_row(binding, scope, node)
    if not all(is_a(part, ast.A_Indices) for part in node.indirection):
        raise not_supported("selecting a field", node_position(node))
    expr = binding.expression(scope, node.arg)
    if expr.type.name == "jsonb":
        return _jsonb_subscript(binding, scope, expr, node)
    if expr.type.name == "name":
        return _character_of_name(binding, scope, expr, node)
    if expr.type.element is None:
        shown = format_type(expr.type.bare())
        message = f"cannot subscript type {shown} because it does not support subscripting"
        raise datatype_mismatch(message, offset_to_position(location(node.arg)))
    if len(node.indirection) > 1:
        raise not_supported("several subscripts", node_position(node.arg))
    (part,) = node.indirection
    if part.is_slice:
        if is_vector(binding, expr):
            raise not_supported("a slice of a vector", node_position(node.arg))
        lower = _bound(binding, scope, part.lidx, 1)
        upper = _bound(binding, scope, part.uidx, _END)
        row = function_by_id("slice(anyarray,int4,int4)")
        return Call(row, (expr, lower, upper), expr.type)
    index = _bound(binding, scope, part.uidx, 1)
    if is_vector(binding, expr):
        index = subscript_of_vector(binding, index)
    row = function_by_id("subscript(anyarray,int4)")
    return Call(row, (expr, index), element_type(expr.type))


_CHARACTER: Final = """case when $2 between 0 and 63 then replace(encode(substring(
    convert_to($1::text, 'UTF8') from $2 + 1 for 1), 'escape'), '\\\\', '\\')::"char" end"""


def _character_of_name(binding: Binding, scope: Scope, name: Expr, node: Node) -> Expr:
    """`n[0]`, a byte of a name (raw_array_subscript_handler)."""
    (part, *more) = node.indirection
    if more or part.is_slice:
        raise not_supported("such a subscript of a name", node_position(node.arg))
    return inline_sql_function(binding, _CHARACTER, (name, _bound(binding, scope, part.uidx, 0)))


def _jsonb_subscript(binding: Binding, scope: Scope, expr: Expr, node: Node) -> Expr:
    """`j['a'][0]`, which is `j #> '{a,0}'`."""
    path: list[Expr] = []
    for part in node.indirection:
        if part.is_slice:
            place = node_position(part.uidx or part.lidx or node.arg)
            raise datatype_mismatch("jsonb subscript does not support slices", place)
        index = binding.expression(scope, part.uidx)
        if index.type.name in ("int2", "int4"):
            index = coerce(binding, index, part.uidx, TEXT, EXPLICIT) or index
        else:
            done = coerce(binding, index, part.uidx, TEXT, IMPLICIT)
            if done is None:
                shown = format_type(index.type.bare())
                message = f"subscript type {shown} is not supported"
                hint = "jsonb subscript must be coercible to either integer or text."
                raise datatype_mismatch(message, node_position(part.uidx), hint=hint)
            index = done
        path.append(index)
    row = function_by_id("subscript(jsonb,_text)")
    return Call(row, (expr, array_of_items(path, array_of(TEXT))), JSONB)


def _bound(binding: Binding, scope: Scope, node: Node | None, absent: int) -> Expr:
    if node is None:
        return Const(absent, INT4)
    expr = binding.expression(scope, node)
    done = coerce(binding, expr, node, INT4, ASSIGNMENT)
    if done is None:
        raise datatype_mismatch("array subscript must have type integer", node_position(node))
    return done


# --- ANY and ALL -------------------------------------------------------------------------------


def any_all_of_array(binding: Binding, name: str, left: Expr, array: Expr, node: Node) -> Expr:
    """`left op ANY (array)` and ALL (make_scalar_array_op)."""
    place, every = offset_to_position(node.location), node.kind == A_Expr_Kind.AEXPR_OP_ALL
    array = with_catalog_array_type(binding, array, node.rexpr, left)
    if array.type.name == "unknown":
        right = "unknown"
    elif array.type.element is None:
        raise SqlError("42809", "op ANY/ALL (array) requires array on right side", place)
    else:
        right = element_type(array.type).name
    try:
        choice = choose_operator(name, (left.type.name, right))
    except AmbiguousOverload:
        choice = None
    if choice is None:
        shown = Const(None, SqlType(right))
        signature = operator_signature(name, [left, shown])
        raise undefined_function(signature, place, operator=True)
    if choice.result != "bool":
        message = "op ANY/ALL (array) requires operator to yield boolean"
        raise SqlError("42809", message, place)
    if not is_type(f"_{choice.args[1]}"):
        raise no_array_type(SqlType(choice.args[1]), place)
    if choice.args == ("record", "record"):
        for type_ in (left.type, array.type):
            check_record_keys(type_)
    left = coerce_implicitly(binding, left, node.lexpr, plain_type(choice.args[0]))
    array = coerce_implicitly(binding, array, node.rexpr, array_of(plain_type(choice.args[1])))
    if choice.function.numeric is not None:
        left, array = _alike(binding, left, array)
    left, array = trim_bpchar_arguments(choice.function, (left, array))
    listed = _as_list(name, left, array, every=every)
    if listed is not None:
        return listed
    zone = zone_arguments(binding, choice.function)
    if isinstance(array, Call) and array.function.id == "array(any)":
        parts = [Call(choice.function, (left, item, *zone), BOOL) for item in array.args]
        if len(parts) == 1:
            return parts[0]
        return Logical(BoolOp.AND if every else BoolOp.OR, tuple(parts), BOOL)
    return AnyAll(choice.function, every, (left, array, *zone), BOOL)


def _alike(binding: Binding, left: Expr, array: Expr) -> tuple[Expr, Expr]:
    """Numerics of one shape on both sides."""
    common = unify_numeric_types([left.type, element_type(array.type)])
    return rescale_numeric(binding, left, common), rescale_numeric(binding, array, array_of(common))


def _as_list(name: str, left: Expr, array: Expr, *, every: bool) -> Expr | None:
    """`= ANY` and `<> ALL` of a constant array of the left side's type are IN and NOT IN."""
    wanted = ("<>", True) if every else ("=", False)
    if not isinstance(array, Const) or (name, every) != wanted or isinstance(left, Param):
        return None
    element = element_type(array.type)
    if element.name != left.type.name or array.value is None:
        return None
    assert isinstance(array.value, tuple), "an array is a tuple"
    values: tuple[Value, ...] = array.value
    if not values:
        return None
    items: Sequence[Expr] = ConstantItems(values, element)
    items = items if len(values) >= ITEMS_MIN else tuple(items)
    return InList(left, items, every, BOOL)
