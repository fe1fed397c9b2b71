"""Apply calls on arrays element by element: array casts and `x = ANY (array)`, for every engine.

The function table's rows for array casts do not name the type of the elements; this module finds
the row for the elements. It also finds the comparison that `x = ANY (array)` makes.
"""

from sql.functions.table import Function, find_cast, function_by_id
from sql.plan.nodes import AnyAll, Call, Expr
from sql.types.sql_type import BOOL, SqlType


def element_type(type_: SqlType) -> SqlType:
    """The type of an array's elements."""
    element = type_.element
    assert element is not None, f"{type_.name} is no array type"
    return element


def cast_element(call: Call, element: Expr) -> Call:
    """The cast of one element that `call`, a cast of an array, stands for."""
    target = element_type(call.type)
    return Call(_row(call, element.type, target), (element, *call.args[1:]), target)


def _row(call: Call, source: SqlType, target: SqlType) -> Function:
    name = call.function.name
    if name in ("assign", "narrow", "char_trimmed"):
        return function_by_id(f"{name}({target.name})")
    if name == "char_padded":
        return function_by_id("char_padded(bpchar,int4)")
    return element_cast(source.name, target.name)


def element_cast(source: str, target: str) -> Function:
    """The function table's row for the cast of one element type to another."""
    row = find_cast(source, target)
    assert row is not None, f"no cast from {source} to {target}"
    return row


def compare_element(expr: AnyAll, element: Expr) -> Call:
    """The comparison of an ANY or ALL with one element."""
    left, _, *zone = expr.args
    return Call(expr.function, (left, element, *zone), BOOL)
