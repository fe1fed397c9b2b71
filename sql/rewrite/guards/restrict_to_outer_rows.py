"""Compute what may fail in a correlated subquery only for rows that outer rows join, on DuckDB.

    (select 10/t.v from t where t.id = u.id)
      ─▶  (select 10/t.v from t where t.id = u.id and t.id is not distinct from u.id)

DuckDB joins the rows of a subquery to the outer rows. If it joins by equal columns alone, it leaves
the outer rows out (its optimizer `deliminator`) and computes 10/t.v for all rows of t. A second
comparison, which has the same result, keeps the outer rows in.

INVARIANTS
  K1  only a subquery that may fail is changed, and none that can only overflow: DuckDB finds the
      distinct outer rows for it, and joins them once more.
"""

from dataclasses import replace
from typing import Final

from sql.plan.conditions import conjunction
from sql.plan.nodes import Call, ColumnRef, Distinct, Expr, Filter, Join, JoinKind, Plan
from sql.plan.traverse import conjuncts, rewrite_inputs
from sql.rewrite.guards.correlated_failures import OuterColumns, rewrite_failing_correlated_queries
from sql.rewrite.plan_facts import PlanFacts
from sql.types.sql_type import BOOL

_COMPARED: Final = frozenset({
    "bool", "int2", "int4", "int8", "oid", "text", "varchar", "bpchar", "date", "timestamp",
    "timestamptz", "uuid",
})  # fmt: skip
"""Types whose columns an engine compares as they are."""


def restrict_to_outer_rows(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan, whose subqueries and lateral joins stay joined to their outer rows."""
    return rewrite_failing_correlated_queries(plan, facts, _compared)


def _compared(plan: Plan, outside: OuterColumns) -> Plan:
    made = rewrite_inputs(plan, lambda part: _compared(part, outside))
    if isinstance(made, Filter):
        return replace(made, predicate=_once_more(made.predicate, outside))
    if isinstance(made, Join) and made.kind is JoinKind.INNER and made.condition is not None:
        return replace(made, condition=_once_more(made.condition, outside))
    return made


def _once_more(condition: Expr, outside: OuterColumns) -> Expr:
    parts = conjuncts(condition)
    again = [_again(part) for part in parts if isinstance(part, Call) and _joins(part, outside)]
    return conjunction((*parts, *again)) if again else condition


def _joins(part: Call, outside: OuterColumns) -> bool:
    """Whether a column is said to be equal to one of a outer row."""
    if part.function.name != "=":
        return False
    columns = [arg for arg in part.args if isinstance(arg, ColumnRef)]
    kinds = {column.type.name for column in columns}
    return (
        len(columns) == len(part.args)
        and len(kinds) == 1
        and kinds <= _COMPARED
        and len([column for column in columns if column.id in outside]) == 1
    )


def _again(part: Call) -> Expr:
    left, right = part.args
    return Distinct(left, right, True, BOOL)
