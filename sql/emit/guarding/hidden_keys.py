"""What rows are joined by is hidden from Spark where it would ask a condition of too many rows.

    t join u on t.id = u.v where 60/u.v > t.id  ─▶  t join u on coalesce(t.id, t.id) = u.v ..

Of `t.id = u.v` Spark concludes `60/u.v > u.v`, which it asks of all rows of u. It concludes nothing
of an expression, but joins by it.

INVARIANTS
  H1  only columns are hidden that a condition over several tables speaks of, if it may fail
      otherwise than by overflow.

Not here: what a subquery is joined by (`asked_keys.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sql.conditions import all_of, equal_sides
from sql.emit.guarding.asked_keys import as_expression
from sql.emit.guarding.guarded_filters import tables_of
from sql.emit.guarding.guards import may_fail
from sql.plan import Call, ColumnId, ColumnRef, Expr, Filter, Join, Plan, Subquery
from sql.traverse import (
    column_ids,
    conjuncts,
    has_subquery,
    rewritten_node,
    with_children,
    with_inputs,
)
from sql.traverse import inputs as inputs_of

_Ids = frozenset[ColumnId]
_NOTHING: Final[_Ids] = frozenset()


def with_hidden_keys(plan: Plan) -> Plan:
    """The plan with such keys hidden (H1)."""
    return _plan(plan, _NOTHING)


def _plan(plan: Plan, asked: _Ids) -> Plan:
    """`asked`: the columns that conditions above it speak of."""
    is_joining = isinstance(plan, Filter | Join)
    hidden = asked.union(*_failing(plan)) if is_joining else _NOTHING

    def query(expr: Expr) -> Expr:
        if isinstance(expr, Subquery):
            return replace(
                expr, args=tuple(map(query, expr.args)), plan=with_hidden_keys(expr.plan)
            )
        return with_children(expr, query) if has_subquery(expr) else expr

    made = rewritten_node(with_inputs(plan, lambda part: _plan(part, hidden)), query)
    return rewritten_node(made, lambda expr: _told(expr, hidden)) if hidden else made


def _failing(plan: Plan) -> Iterator[_Ids]:
    """The columns of each condition that may fail."""
    tables: Sequence[_Ids] = ()
    for part in _conditions(plan):
        if may_fail(part, by_overflow=False) and not has_subquery(part):
            tables = tables or [table for below in inputs_of(plan) for table in tables_of(below)]
            used = frozenset(column_ids(part))
            if sum(not table.isdisjoint(used) for table in tables) > 1:
                yield used


def _conditions(plan: Plan) -> tuple[Expr, ...]:
    if isinstance(plan, Filter):
        return conjuncts(plan.predicate)
    if isinstance(plan, Join) and plan.condition is not None:
        return conjuncts(plan.condition)
    return ()


def _told(condition: Expr, hidden: _Ids) -> Expr:
    return all_of([_hiding(part, hidden) for part in conjuncts(condition)])


def _hiding(part: Expr, hidden: _Ids) -> Expr:
    columns = [side for side in equal_sides(part) if isinstance(side, ColumnRef)]
    if len(columns) < 2 or hidden.isdisjoint(column.id for column in columns):
        return part
    left, right = columns
    if isinstance(part, Call):
        return replace(part, args=(as_expression(left), right))
    return part
