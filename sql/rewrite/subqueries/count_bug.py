"""Give a correlated aggregate a row for every outer row, as in PostgreSQL (the COUNT bug).

    (select array_agg(m) from (select max(v) as m from u where u.k = t.k) q)
      DuckDB ─▶  .. from (select case when true then c end as m from (select max(v) as c from u ..))
      Spark  ─▶  .. from (select max(v) as m, count(1) as c from u ..)

There is a row of `m` for each row of t, NULL where u has no match. Engines join the aggregates of
the matches to the outer rows. DuckDB drops the outer rows without a match if everything above the
aggregates is NULL for NULL; it wrongly counts lists, windows, unions and joins as such. CASE is not
NULL for NULL, and DuckDB's optimizer removes it after the joins are planned. Spark drops them if
every aggregate is NULL over no rows; a count is not.

INVARIANTS
  M1  a form that an engine gets right by itself stays as it is, so that the engine makes a plain
      join of it. Such are scalar subqueries over the aggregates alone (no row is as good as NULL);
      on Spark also a lateral join of them, and those that `single_row_subqueries.py` turns into
      values.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sql.functions.table import function_by_id
from sql.plan.nodes import (
    Aggregate,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    GroupBy,
    Join,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    SubqueryKind,
)
from sql.plan.renumbering import free_columns
from sql.plan.traverse import Rewrite, rewrite_queries
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.plan_facts import PlanFacts
from sql.types.sql_type import BOOL, INT8


def fix_count_bug_by_case(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with such aggregates in CASE, for DuckDB."""
    known = frozenset({SubqueryKind.SCALAR})
    rows = _Rows(_in_case, known, lateral=False, numbers=range_of_column_ids(IdRange.COUNT_BUG))
    return rows.plan(plan) if facts.has_outer_rows else plan


def fix_count_bug_by_count(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with a count beside such aggregates, for Spark."""
    known = frozenset(SubqueryKind) - {SubqueryKind.ARRAY}
    rows = _Rows(_counted, known, lateral=True, numbers=range_of_column_ids(IdRange.COUNT_BUG))
    return rows.plan(plan) if facts.has_outer_rows else plan


@dataclass(frozen=True, slots=True)
class _Rows:
    """A way to keep the rows. `known`, `lateral`: where an engine keeps them by itself (M1)."""

    way: Callable[[GroupBy, Iterator[int]], Plan]
    known: frozenset[SubqueryKind]
    lateral: bool
    numbers: Iterator[int]

    def plan(self, plan: Plan, *, is_known: bool = False) -> Plan:
        """The plan with its aggregates changed."""

        def below(part: Plan) -> Plan:
            beside = self.lateral and isinstance(plan, Join) and plan.lateral and part is plan.right
            return self.plan(part, is_known=beside or (is_known and isinstance(plan, Project)))

        def subquery(expr: Subquery, within: Rewrite) -> Subquery:
            inner = self.plan(expr.plan, is_known=expr.kind in self.known)
            return replace(expr, args=tuple(map(within, expr.args)), plan=inner)

        made = rewrite_queries(plan, below, subquery)
        if is_known or not isinstance(made, GroupBy) or made.keys or made.sets is not None:
            return made
        return self.way(made, self.numbers) if free_columns(made) else made


def _in_case(plan: GroupBy, numbers: Iterator[int]) -> Plan:
    found = tuple(
        [
            PlanColumn(ColumnId(next(numbers)), column.name, column.type)
            for column in plan.aggregate_columns
        ]
    )
    cases = [
        Case(
            ((Const(True, BOOL), ColumnRef(column.id, column.type)),),
            Const(None, column.type),
            column.type,
        )
        for column in found
    ]
    return Project(replace(plan, aggregate_columns=found), plan.aggregate_columns, tuple(cases))


def _counted(plan: GroupBy, numbers: Iterator[int]) -> Plan:
    column = PlanColumn(ColumnId(next(numbers)), "rows", INT8)
    call = Aggregate(function_by_id("count()"), (), False, None, (), INT8)
    return replace(
        plan,
        aggregate_columns=(*plan.aggregate_columns, column),
        aggregates=(*plan.aggregates, call),
    )
