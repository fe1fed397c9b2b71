"""Drop set-returning functions whose result cannot matter, as PostgreSQL's planner does.

    select unnest(a) + null from t      one row of NULL for each row of t

A strict function of a NULL constant folds to NULL at planning time (evaluate_function). The
set-returning function in its other argument is then removed before sets are expanded.
"""

from collections.abc import Collection

from sql.binder.queries.target_list import TargetEntry
from sql.binder.state import Scope
from sql.plan.nodes import Call, Const, Expr
from sql.plan.traverse import column_ids, rewrite_children


def drop_unreachable_sets(scope: Scope, targets: Collection[TargetEntry]) -> None:
    """Remove the set-returning functions that no target needs."""
    if not scope.set_calls:
        return
    sets = {column.id for column in scope.set_calls.values()}
    for target in targets:
        if not sets.isdisjoint(column_ids(target.expr)):
            target.expr = _known(target.expr)
    needed = {column for target in targets for column in column_ids(target.expr)}
    scope.set_calls = {c: column for c, column in scope.set_calls.items() if column.id in needed}


def _known(expr: Expr) -> Expr:
    made = rewrite_children(expr, _known)
    if isinstance(made, Call) and made.function.strict and any(map(_is_null, made.args)):
        return Const(None, made.type)
    return made


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value is None
