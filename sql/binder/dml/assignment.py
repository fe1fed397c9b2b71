"""Assign values to columns: defaults, assignment casts, column lists and SET lists."""

from collections.abc import Mapping, Sequence

from pglast import ast
from pglast.enums import SubLinkType

from sql.binder.dml.overriding import check_generated_assignment
from sql.binder.dml.target_relation import TargetRelation
from sql.binder.dml.updatable_views import WriteEvent
from sql.binder.expressions.whole_rows import expanded_row_fields
from sql.binder.resolve.coercion import ASSIGNMENT, coerce, coerce_to_storage, float_literal
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import Binding, Scope
from sql.binder.stored.column_expressions import default_value
from sql.catalog.catalog import Column
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.parser.syntax import Node, is_a, node_position, offset_to_position
from sql.plan.nodes import Call, ColumnRef, Const, Expr, Plan, Project, Subquery, SubqueryKind
from sql.plan.traverse import child_expressions, inputs, plan_expressions
from sql.types.sql_type import SqlType, format_type

DEFAULT_NODE = ast.SetToDefault


def assignment_cast(binding: Binding, expr: Expr, node: Node, column: Column) -> Expr:
    """A value in its column's type; 42804 if there is no assignment cast."""
    # The commonest case by far: a constant that is already what the column wants.
    if expr.type == column.type and type(expr) is Const:
        return expr
    done = coerce(binding, expr, node, column.type, ASSIGNMENT)
    if done is None:
        shown = format_type(SqlType(expr.type.name))
        wanted = format_type(SqlType(column.type.name))
        message = f'column "{column.name}" is of type {wanted} but expression is of type {shown}'
        hint = "You will need to rewrite or cast the expression."
        raise datatype_mismatch(message, node_position(node), hint=hint)
    return coerce_to_storage(binding, done, column.type)


def assigned_value(binding: Binding, scope: Scope, node: Node, column: Column) -> Expr:
    """An expression of VALUES or SET, or DEFAULT, in its column's type."""
    if type(node) is DEFAULT_NODE:
        return default_value(binding, column)
    literal: Expr | None = float_literal(binding, node, column.type)
    expr = binding.bind_expression(binding, scope, node) if literal is None else literal
    return assignment_cast(binding, expr, node, column)


def insert_columns(written: TargetRelation, nodes: Sequence[Node] | None) -> list[int]:
    """The positions of the columns that receive values, in the statement's order."""
    if not nodes:
        return list(range(len(written.columns)))
    by_name = _places(written)
    places: list[int] = []
    for target in nodes:
        if target.indirection:
            raise not_supported(
                "assigning to a part of a column", offset_to_position(target.location)
            )
        place = by_name.get(target.name)
        if place is None:
            raise _no_such_column(written, target)
        if place in places:
            message = f'column "{target.name}" specified more than once'
            raise SqlError("42701", message, offset_to_position(target.location))
        places.append(place)
    return places


def check_value_count(
    columns: Sequence[Node] | None, targets: Sequence[int], nodes: Sequence[Node]
) -> None:
    """42601 for more values than columns, or fewer than a given column list."""
    if len(nodes) > len(targets):
        message = "INSERT has more expressions than target columns"
        raise SqlError("42601", message, node_position(nodes[len(targets)]))
    if columns and len(nodes) < len(targets):
        message = "INSERT has more target columns than expressions"
        raise SqlError("42601", message, offset_to_position(columns[len(nodes)].location))


def _places(written: TargetRelation) -> Mapping[str, int]:
    return {column.name: index for index, column in enumerate(written.columns)}


def _no_such_column(
    written: TargetRelation, target: Node, *, names: Sequence[str | None] = ()
) -> SqlError:
    message = f'column "{target.name}" of relation "{written.name}" does not exist'
    hint = None
    if target.indirection and target.name in names:
        hint = "SET target columns cannot be qualified with the relation name."
    return SqlError("42703", message, offset_to_position(target.location), hint=hint)


# --- SET ---------------------------------------------------------------------------------------


def assignments(
    binding: Binding,
    scope: Scope,
    written: TargetRelation,
    nodes: Sequence[Node],
    event: WriteEvent,
) -> dict[int, Expr]:
    """The new values of a SET list, by ordinal in the table."""
    binding.assigns = True
    try:
        return _assignments(binding, scope, written, nodes, event)
    finally:
        binding.assigns = False


def _assignments(
    binding: Binding,
    scope: Scope,
    written: TargetRelation,
    nodes: Sequence[Node],
    event: WriteEvent,
) -> dict[int, Expr]:
    by_name = _places(written)
    changes: dict[int, Expr] = {}
    bound: list[tuple[Node, Node, Expr | None]] = []
    for target in nodes:
        # All expressions come before all columns, as in PostgreSQL: the first error decides.
        value, expr = _source(binding, scope, target, written, by_name)
        bound.append((target, value, expr))
    for target, value, expr in bound:
        place = by_name.get(target.name)
        if place is None:
            raise _no_such_column(written, target, names=[item.name for item in scope.items[:1]])
        if target.indirection:
            raise not_supported(
                "assigning to a part of a column", offset_to_position(target.location)
            )
        column = written.columns[place]
        if not written.is_view:
            check_generated_assignment(column, default=expr is None)
        done = (
            written.default(binding, place, acts=scope.acts)
            if expr is None
            else assignment_cast(binding, expr, value, column)
        )
        if place in changes:
            message = f'multiple assignments to same column "{target.name}"'
            raise SqlError("42601", message)
        changes[place] = done
    mapped = written.mapped(changes, event)
    if written.is_view:
        for ordinal in mapped:
            # A view hands over NULL for DEFAULT, so that it is a value like any other.
            check_generated_assignment(written.table.columns[ordinal], default=False)
    return mapped


def _source(
    binding: Binding,
    scope: Scope,
    target: Node,
    written: TargetRelation,
    by_name: Mapping[str, int],
) -> tuple[Node, Expr | None]:
    """The node that a column is assigned from, and its expression; None for DEFAULT."""
    value = target.val
    if is_a(value, ast.MultiAssignRef):
        if is_a(value.source, ast.SubLink):
            return value.source, _subquery_part(binding, scope, value)
        value = _row_part(binding, scope, value)
    if is_a(value, DEFAULT_NODE):
        return value, None
    place = by_name.get(target.name)
    literal = None if place is None else float_literal(binding, value, written.columns[place].type)
    return value, literal or binding.expression(scope, value)


def _row_part(binding: Binding, scope: Scope, value: Node) -> Node:
    """One column of `(a, b) = (x, y)`."""
    source = value.source
    if not is_a(source, ast.RowExpr):
        message = (
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression"
        )
        raise SqlError("0A000", message, node_position(source))
    parts = expanded_row_fields(binding, scope, source)
    if len(parts) != value.ncolumns:
        message = "number of columns does not match number of values"
        raise SqlError("42601", message, offset_to_position(source.location))
    return parts[value.colno - 1]


def _subquery_part(binding: Binding, scope: Scope, value: Node) -> Expr:
    """One column of `(a, b) = (SELECT ..)`: the subquery, of which the others are left out.

    It runs once for each column, so it must be the same each time.
    """
    node = value.source
    if node.subLinkType != SubLinkType.EXPR_SUBLINK:
        raise not_supported(
            "this subquery as the source of several columns", offset_to_position(node.location)
        )
    result = binding.bind_query(binding, node.subselect, scope)
    resolve_unknown_columns(binding, result)
    if len(result.columns) != value.ncolumns:
        message = "number of columns does not match number of values"
        raise SqlError("42601", message, offset_to_position(node.location))
    if _is_volatile(result.plan):
        raise not_supported(
            "a volatile function in a subquery for several columns", node_position(node)
        )
    column = result.columns[value.colno - 1]
    made = binding.new_column(column.name, column.type)
    if column.id in binding.inexact:
        binding.inexact.add(made.id)
    chosen = Project(result.plan, (made,), (ColumnRef(column.id, column.type),))
    expr = Subquery(SubqueryKind.SCALAR, chosen, (), column.type)
    binding.places[id(expr)] = (expr, node.location)
    return expr


def _is_volatile(plan: Plan) -> bool:
    waiting: list[Expr] = list(plan_expressions(plan))
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Call) and expr.function.volatility == "volatile":
            return True
        if isinstance(expr, Subquery) and _is_volatile(expr.plan):
            return True
        waiting.extend(child_expressions(expr))
    return any(map(_is_volatile, inputs(plan)))
