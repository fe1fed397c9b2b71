"""ON EMPTY and ON ERROR of SQL/JSON functions: the behaviour, and the value of DEFAULT.

Source: transformJsonBehavior of parse_expr.c.

INVARIANTS
  Q1  a default is computed before the path is evaluated, so it must be constant.
"""

from typing import Final

from pglast import ast
from pglast.enums import JsonBehaviorType, JsonExprOp

from sql.binder.resolve.coercion import ASSIGNMENT, EXPLICIT, coerce
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.parser.syntax import Node, node_position, offset_to_position
from sql.plan.nodes import Const, Expr, is_null
from sql.plan.traverse import column_ids
from sql.types.sql_type import JSONB, TEXT, SqlType, format_type

_WORDS: Final = {
    JsonBehaviorType.JSON_BEHAVIOR_NULL: "null",
    JsonBehaviorType.JSON_BEHAVIOR_ERROR: "error",
    JsonBehaviorType.JSON_BEHAVIOR_EMPTY: "empty array",
    JsonBehaviorType.JSON_BEHAVIOR_TRUE: "true",
    JsonBehaviorType.JSON_BEHAVIOR_FALSE: "false",
    JsonBehaviorType.JSON_BEHAVIOR_UNKNOWN: "unknown",
    JsonBehaviorType.JSON_BEHAVIOR_EMPTY_ARRAY: "empty array",
    JsonBehaviorType.JSON_BEHAVIOR_EMPTY_OBJECT: "empty object",
    JsonBehaviorType.JSON_BEHAVIOR_DEFAULT: "default",
}
_ALLOWED: Final = {
    JsonExprOp.JSON_EXISTS_OP: ("error", "true", "false", "unknown"),
    JsonExprOp.JSON_VALUE_OP: ("error", "null", "default"),
    JsonExprOp.JSON_QUERY_OP: ("error", "null", "empty array", "empty object", "default"),
}
_NO_CONSTANTS: Final = (
    ast.A_ArrayExpr, ast.BoolExpr, ast.BooleanTest, ast.CaseExpr, ast.CoalesceExpr, ast.ColumnRef,
    ast.MinMaxExpr, ast.NullTest, ast.ParamRef, ast.RowExpr, ast.SQLValueFunction, ast.SubLink,
)  # fmt: skip
"""Expressions that are no constant for PostgreSQL, however constant they are."""


def behavior_of(node: Node, behavior: Node | None, clause: str, absent: str) -> str:
    """The keyword of a behaviour; 42601 for one that the function does not support."""
    if behavior is None:
        return absent
    word = _WORDS[behavior.btype]
    if word not in _ALLOWED[node.op]:
        raise SqlError("42601", f"invalid {clause} behavior", offset_to_position(behavior.location))
    return word


def behavior_with_default(
    binding: Binding, scope: Scope, node: Node, behavior: Node | None, clause: str, target: SqlType
) -> tuple[Expr, Expr]:
    """The behaviour and its default (Q1). `target`: the type of the result."""
    word = behavior_of(node, behavior, clause, "null")
    if word in ("empty array", "empty object"):
        return Const("default", TEXT), Const("[]" if word == "empty array" else "{}", target)
    if word != "default" or behavior is None:
        return Const(word, TEXT), Const(None, target)
    expr = binding.expression(scope, behavior.expr)
    if isinstance(behavior.expr, _NO_CONSTANTS):
        message = (
            "can only specify a constant, non-aggregate function, or operator expression for"
            " DEFAULT"
        )
        raise datatype_mismatch(message, node_position(behavior.expr))
    if any(column_ids(expr)):
        raise not_supported(
            "a DEFAULT that depends on columns", offset_to_position(behavior.location)
        )
    if is_null(expr):
        return Const("default", TEXT), Const(None, target)
    if expr.type.name == "jsonb" and node.op == JsonExprOp.JSON_VALUE_OP and not _is_json(target):
        raise not_supported("a DEFAULT of type jsonb", node_position(behavior.expr))
    return Const("default", TEXT), _default(binding, expr, behavior.expr, clause, target)


def _default(binding: Binding, expr: Expr, node: Node, clause: str, target: SqlType) -> Expr:
    """The value as the type of the answer."""
    if expr.type.name == "bool" and target.name not in ("bool", "int4"):
        if not _is_json(target) and (target.name not in ("text", "varchar") or target.typmod >= 0):
            message = f"could not coerce {clause} expression (DEFAULT) to the RETURNING type"
            raise datatype_mismatch(message)
        # PostgreSQL makes it the JSON of a behavior, which is TRUE only where that word stands.
        expr = Const("false", JSONB)
    # A text that is too long for it is an error, where a cast would cut it off.
    context = ASSIGNMENT if target.category == "S" else EXPLICIT
    done = coerce(binding, expr, node, target, context)
    if done is None:
        shown, wanted = format_type(expr.type.bare()), format_type(target.bare())
        message = f"cannot cast behavior expression of type {shown} to {wanted}"
        hint = f"You will need to explicitly cast the expression to type {wanted}."
        raise SqlError("42846", message, node_position(node), hint=hint)
    return done


def _is_json(type_: SqlType) -> bool:
    return type_.name in ("json", "jsonb")
