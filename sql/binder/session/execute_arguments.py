"""Bind the arguments of EXECUTE, each assigned to the type of its parameter."""

from sql.binder.resolve.coercion import ASSIGNMENT, coerce
from sql.binder.state import Binding, Scope
from sql.binder.stored.column_expressions import refuse_subqueries
from sql.errors import datatype_mismatch
from sql.parser.meridian_nodes import ArgumentNode
from sql.parser.syntax import node_position
from sql.plan.nodes import Project
from sql.plan.projections import ONE_ROW
from sql.statements.bound import BoundQuery, OutputColumn
from sql.types.bpchar import is_bpchar
from sql.types.sql_type import format_type


def bind_execute_argument(binding: Binding, node: ArgumentNode) -> BoundQuery:
    """One argument, as a query that computes it in the parameter's type."""
    refuse_subqueries(node.value, "EXECUTE parameter")
    expr = binding.expression(Scope(clause="EXECUTE parameters"), node.value)
    value = coerce(binding, expr, node.value, node.type, ASSIGNMENT)
    if value is None:
        message = (
            f"parameter ${node.number} of type {format_type(expr.type.bare())} cannot be coerced to"
            f" the expected type {format_type(node.type)}"
        )
        hint = "You will need to rewrite or cast the expression."
        raise datatype_mismatch(message, node_position(node.value), hint=hint)
    # A char(n) keeps the blanks that it has, whatever the parameter says of its length.
    type_ = value.type if is_bpchar(value.type) else node.type
    column = binding.new_column("argument", type_)
    plan = Project(ONE_ROW, (column,), (value,))
    return BoundQuery(
        plan, (OutputColumn(column.name, column.type),), tuple(binding.tables.values())
    )
