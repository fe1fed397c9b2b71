"""Bind the point in time of AS OF, AT and TO, as a timeline's timestamp or a timestamptz."""

from sql.binder.resolve.coercion import IMPLICIT, coerce
from sql.binder.state import Binding, Scope
from sql.errors import datatype_mismatch, not_supported
from sql.parser.syntax import Node, node_position
from sql.plan.nodes import Expr
from sql.plan.traverse import has_subquery
from sql.types.sql_type import INT8, TIMESTAMPTZ, SqlType, format_type

_INTEGERS = ("int2", "int4", "int8")


def time_expression(binding: Binding, node: Node, clause: str) -> Expr:
    """int8 (a timestamp of the timeline), or timestamptz, over constants, parameters and calls of
    them.
    """
    expr = binding.expression(Scope(clause=clause), node)
    if has_subquery(expr):
        raise not_supported(f"a subquery in {clause}", node_position(node))
    target = INT8 if expr.type.name in _INTEGERS else TIMESTAMPTZ
    return _coerced(binding, expr, node, target, clause)


def logical_time_expression(binding: Binding, node: Node, clause: str) -> Expr:
    """The same for a timeline without a clock: int8 only."""
    expr = binding.expression(Scope(clause=clause), node)
    if has_subquery(expr):
        raise not_supported(f"a subquery in {clause}", node_position(node))
    return _coerced(binding, expr, node, INT8, clause)


def _coerced(binding: Binding, expr: Expr, node: Node, target: SqlType, clause: str) -> Expr:
    done = coerce(binding, expr, node, target, IMPLICIT)
    if done is None:
        message = (
            f"argument of {clause} must be type {format_type(target)}, "
            f"not type {format_type(expr.type.bare())}"
        )
        raise datatype_mismatch(message, node_position(node))
    return done
