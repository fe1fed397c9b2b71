"""Choose the function or aggregate that a call means (ParseFuncOrColumn, func_get_detail)."""

from collections.abc import Sequence
from typing import Final

from pglast import ast

from sql.binder.resolve import postgresql_functions as postgresql
from sql.binder.resolve.coercion import IMPLICIT, can_coerce, coerce_implicitly
from sql.binder.resolve.overloads import (
    AmbiguousOverload,
    OverloadChoice,
    UndeterminedType,
    choose_function,
)
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, ambiguous_function, not_supported, undefined_function
from sql.functions.table import FunctionKind, functions
from sql.parser.named_arguments import has_named_arguments
from sql.parser.syntax import Node, is_a, offset_to_position, string_values
from sql.plan.nodes import Expr
from sql.types.sql_type import SqlType, format_type


def _shown_argument(binding: Binding, scope: Scope, arg: Node) -> str:
    if is_a(arg, ast.NamedArgExpr):
        return f"{arg.name} => {_shown_argument(binding, scope, arg.arg)}"
    return format_type(SqlType(binding.expression(scope, arg).type.name))


def convert_arguments(
    binding: Binding,
    name: str,
    exprs: Sequence[Expr],
    nodes: Sequence[Node],
    types: Sequence[SqlType],
    place: int | None,
) -> list[Expr]:
    """Convert the arguments of a function that only the binder knows to these types, or 42883."""
    found = zip(exprs, types, strict=True)
    if not all(can_coerce(expr.type.name, type_.name, IMPLICIT) for expr, type_ in found):
        raise undefined_function(function_signature(name, exprs), place)
    each = zip(exprs, nodes, types, strict=True)
    return [coerce_implicitly(binding, expr, node, type_) for expr, node, type_ in each]


def find_function(
    name: str, exprs: Sequence[Expr], shown: str, place: int | None, *, variadic: bool = False
) -> OverloadChoice:
    """The function or aggregate of that name for these arguments; 42883, 42725.

    `variadic`: the last argument is marked VARIADIC.
    """
    types = tuple([expr.type.name for expr in exprs])
    try:
        choice = choose_function(name, types, variadic=variadic)
    except AmbiguousOverload:
        raise ambiguous_function(
            function_signature(shown, exprs), offset_to_position(place)
        ) from None
    except UndeterminedType:
        raise undetermined_type() from None
    if choice is None:
        signature = function_signature(shown, exprs)
        if postgresql.has_function(name, types, variadic=variadic):
            raise not_supported(f"the function {signature}", offset_to_position(place))
        raise undefined_function(signature, offset_to_position(place))
    return choice


def function_signature(name: str, exprs: Sequence[Expr]) -> str:
    """`foo(integer, unknown)`."""
    shown = ", ".join(format_type(SqlType(expr.type.name)) for expr in exprs)
    return f"{name}({shown})"


def operator_signature(name: str, exprs: Sequence[Expr]) -> str:
    """`text + integer`."""
    shown = [format_type(SqlType(expr.type.name)) for expr in exprs]
    return f"{name} {shown[0]}" if len(shown) == 1 else f"{shown[0]} {name} {shown[1]}"


def refuse_named_arguments(binding: Binding, scope: Scope, node: Node) -> None:
    """42883 for remaining named arguments: no function has parameters of such names."""
    args = node.args or ()
    if not has_named_arguments(args):
        return
    shown = ", ".join(_shown_argument(binding, scope, arg) for arg in args)
    name = ".".join(string_values(node.funcname))
    raise undefined_function(f"{name}({shown})", offset_to_position(node.location))


def undetermined_type() -> SqlError:
    """42804: no argument decides the type of anyelement."""
    message = "could not determine polymorphic type because input has type unknown"
    return SqlError("42804", message)


TWO_COLUMN_SETS: Final = frozenset({"json_each", "json_each_text", "jsonb_each", "jsonb_each_text"})
"""Set-returning functions with two columns, bound as two arrays side by side."""


ARRAY_FUNCTION_OF_SET: Final = {
    "string_to_table": "string_to_array",
    "regexp_split_to_table": "regexp_split_to_array",
    "json_array_elements": "json_array_elements",
    "json_array_elements_text": "json_array_elements_text",
    "json_object_keys": "json_object_keys",
    "jsonb_array_elements": "jsonb_array_elements",
    "jsonb_array_elements_text": "jsonb_array_elements_text",
    "jsonb_object_keys": "jsonb_object_keys",
    "jsonb_path_query": "meridian_path_query",
    "regexp_matches": "meridian_regexp_matches",
    "pg_partition_ancestors": "meridian_partition_ancestors",
}
"""Sets that are the elements of an array, which some function of the table gives."""

SESSION_SETS: Final = frozenset({"pg_listening_channels"})
"""Sets that are the elements of an array, which the session gives."""


def returns_set(name: str) -> bool:
    """Whether functions of this name return sets."""
    rows = functions(name)
    if name in ARRAY_FUNCTION_OF_SET:
        return bool(functions(ARRAY_FUNCTION_OF_SET[name]))
    return name in TWO_COLUMN_SETS | SESSION_SETS or (
        bool(rows) and rows[0].kind is FunctionKind.SET
    )
