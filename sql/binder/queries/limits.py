"""Bind LIMIT, OFFSET, FETCH FIRST .. WITH TIES (transformLimitClause) and DISTINCT ON.

DISTINCT ON follows transformDistinctOnClause.
"""

from collections.abc import Sequence

from pglast import ast
from pglast.enums import LimitOption

from sql.binder.queries.target_list import TargetEntry, settle_target, sort_target
from sql.binder.resolve.coercion import ASSIGNMENT, coerce
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.parser.syntax import Node, is_a, node_position
from sql.plan.nodes import (
    ColumnRef,
    Const,
    DistinctOn,
    Expr,
    Limit,
    Plan,
    Project,
    SortKey,
    output_columns,
)
from sql.plan.traverse import column_ids, is_volatile_expression
from sql.types.comparability import check_equality
from sql.types.sql_type import INT8, format_type


def with_limit(plan: Plan, parts: tuple[Expr | None, Expr | None, bool]) -> Plan:
    """The plan under LIMIT and OFFSET, if there are any."""
    limit, offset, ties = parts
    return plan if limit is None and offset is None else Limit(plan, limit, offset, ties)


def bind_limit(binding: Binding, scope: Scope, node: Node) -> tuple[Expr | None, Expr | None, bool]:
    """LIMIT and OFFSET as int8 expressions, and whether WITH TIES is given."""
    offset = _part(binding, scope, node.limitOffset, "OFFSET", "2201X")
    ties = node.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES
    count = node.limitCount
    if ties and is_a(count, ast.A_Const) and count.isnull:
        message = "row count cannot be null in FETCH FIRST ... WITH TIES clause"
        raise SqlError("2201W", message)
    return _part(binding, scope, count, "LIMIT", "2201W"), offset, ties


def _part(
    binding: Binding, scope: Scope, node: Node | None, clause: str, sqlstate: str
) -> Expr | None:
    if node is None:
        return None
    scope.clause = clause
    expr = binding.expression(scope, node)
    shown = format_type(expr.type.bare())
    done = coerce(binding, expr, node, INT8, ASSIGNMENT)
    if done is None:
        message = f"argument of {clause} must be type bigint, not type {shown}"
        raise datatype_mismatch(message, node_position(node))
    if not scope.ids.isdisjoint(column_ids(done)):
        raise SqlError(
            "42P10", f"argument of {clause} must not contain variables", node_position(node)
        )
    if isinstance(done, Const):
        if isinstance(done.value, int) and done.value < 0:
            raise SqlError(sqlstate, f"{clause} must not be negative")
        return None if done.value is None else done
    if is_volatile_expression(done):
        # What an engine is asked twice, it may answer in two ways.
        raise not_supported(f"{clause} with a volatile function", node_position(node))
    return done


def bind_distinct_on(
    binding: Binding,
    scope: Scope,
    targets: list[TargetEntry],
    nodes: Sequence[Node],
    order: Sequence[tuple[TargetEntry, bool, bool]],
) -> list[TargetEntry]:
    """The targets that DISTINCT ON compares; they must be the leading ones of ORDER BY."""
    scope.clause = "DISTINCT ON"
    keys: list[tuple[TargetEntry, Node]] = []
    for node in nodes:
        target = sort_target(binding, scope, targets, node, computed=True)
        check_equality(settle_target(binding, target).type, node_position(node))
        if all(target is not key for key, _ in keys):
            keys.append((target, node))
    left = list(keys)
    sorted_by = [target for target, _, _ in order]
    for at, target in enumerate(sorted_by):
        found = next((pair for pair in keys if pair[0] is target), None)
        if found is None:
            later = [key for key in keys if any(key[0] is item for item in sorted_by[at:])]
            wrong = [key for key in keys if key in later or key in left]
            if wrong:
                message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
                raise SqlError("42P10", message, node_position(wrong[0][1]))
            break
        left = [pair for pair in left if pair[0] is not target]
    return [target for target, _ in keys]


def distinct_before_sets(
    binding: Binding,
    scope: Scope,
    plan: Plan,
    distinct: Sequence[TargetEntry] | None,
    order: Sequence[tuple[TargetEntry, bool, bool]],
) -> tuple[Plan, Sequence[TargetEntry] | None]:
    """Apply DISTINCT ON with ORDER BY below the set-returning functions (make_sort_input_target).

    If one of its keys is a set, or there is no ORDER BY, the plan stays, and the keys are returned
    for the caller to apply later.
    """
    if not distinct or not order:
        return plan, distinct
    keys = [*distinct, *(target for target, _, _ in order)]
    sets = {column.id for column in scope.set_calls.values()}
    if not sets or any(not sets.isdisjoint(column_ids(key.expr)) for key in keys):
        return plan, distinct
    if any(is_volatile_expression(key.expr) for key in keys):
        raise not_supported("DISTINCT ON of a volatile function beside a set", None)
    passed = output_columns(plan)
    made = {id(key): binding.new_column("key", key.expr.type) for key in keys}
    exprs = {id(key): key.expr for key in keys}
    shown = [ColumnRef(column.id, column.type) for column in passed]
    plan = Project(plan, (*passed, *made.values()), (*shown, *exprs.values()))

    def key(target: TargetEntry) -> ColumnRef:
        column = made[id(target)]
        return ColumnRef(column.id, column.type)

    sort = tuple([SortKey(key(target), descending, first) for target, descending, first in order])
    return DistinctOn(plan, tuple(map(key, distinct)), sort), None
