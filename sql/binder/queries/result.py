"""Put projection, DISTINCT, ORDER BY and LIMIT on top of the rows of a query."""

from collections.abc import Sequence

from sql.binder.queries.limits import with_limit
from sql.binder.queries.target_list import TargetEntry, is_untyped
from sql.binder.resolve.coercion import is_exact
from sql.binder.resolve.collations import set_column_collation
from sql.binder.resolve.expression_domain import set_column_domain
from sql.binder.state import Binding, SelectResult
from sql.plan.nodes import (
    DistinctOn,
    DistinctRows,
    Expr,
    Plan,
    PlanColumn,
    Project,
    Sort,
    SortKey,
)
from sql.plan.projections import column_reference


def finish_query(
    binding: Binding,
    plan: Plan,
    targets: list[TargetEntry],
    order: Sequence[tuple[TargetEntry, bool, bool]],
    limit: tuple[Expr | None, Expr | None, bool],
    distinct: Sequence[TargetEntry] | None,
    number: TargetEntry | None = None,
) -> SelectResult:
    """Projection, DISTINCT, ORDER BY and LIMIT on top of the rows.

    `number`: the order of rows with equal sort keys; for WITH TIES they are ties all the same.
    """
    columns = tuple([_target_column(binding, target) for target in targets])
    made = {id(target): column for target, column in zip(targets, columns, strict=True)}
    plan = Project(plan, columns, tuple([target.expr for target in targets]))
    sort = tuple(
        [
            SortKey(column_reference(made[id(target)]), descending, first)
            for target, descending, first in order
        ]
    )
    if distinct:
        plan = DistinctOn(
            plan, tuple([column_reference(made[id(target)]) for target in distinct]), sort
        )
    elif distinct is not None:
        plan = DistinctRows(plan)
    numbered = (
        () if number is None else (SortKey(column_reference(made[id(number)]), False, False),)
    )
    *_, ties = limit
    if sort:
        plan = Sort(plan, sort if ties else (*sort, *numbered))
    plan = with_limit(plan, limit)
    if ties and numbered:
        plan = Sort(plan, (*sort, *numbered))
    shown = [target for target in targets if not target.junk]
    if len(shown) < len(targets):
        kept = tuple([made[id(target)] for target in shown])
        columns = tuple([_renewed(binding, column) for column in kept])
        plan = Project(plan, columns, tuple([column_reference(column) for column in kept]))
    unknown = {index: target.expr for index, target in enumerate(shown) if is_untyped(target.expr)}
    return SelectResult(plan, columns, [target.node for target in shown], unknown)


def _target_column(binding: Binding, target: TargetEntry) -> PlanColumn:
    expr = target.expr
    column = binding.new_column(target.name, expr.type)
    set_column_domain(binding, column, expr)
    set_column_collation(binding, column, expr)
    binding.shown.set_column(column.id, binding.shown.of(expr))
    if expr.type.name == "numeric" and not is_exact(binding, expr):
        binding.inexact.add(column.id)
    return column


def _renewed(binding: Binding, column: PlanColumn) -> PlanColumn:
    made = binding.new_column(column.name, column.type)
    binding.follow(made.id, column.id)
    return made
