"""Emit plans as Spark SQL: the entry point and Spark's dialect.

INVARIANTS
  Q4  a relation is a temporary view, and all strings are arguments of `spark.sql(text, args=..)`.

Not here: running it, and translating Spark's failures (`compute/spark/executor.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sql.emit.emitted_query import EmittedQuery
from sql.emit.plans import emit_plan
from sql.emit.recursion_rounds import emit_with_iterations
from sql.emit.spark.aggregates import aggregate, order_by
from sql.emit.spark.arrays import key
from sql.emit.spark.expressions import expression
from sql.emit.spark.passes import SPARK_PASSES, WORKER_PASSES
from sql.emit.spark.sets import set_scan, sets_beside
from sql.emit.spark.types import HINT, array, error, literal
from sql.emit.spark.windows import windows
from sql.emit.spark.worker_functions import UncorrelatedSubqueryRefused
from sql.emit.state import Dialect
from sql.plan.nodes import Plan, RelationId
from sql.plan.traverse import conjuncts
from sql.rewrite.guards.guard_where_conditions import guarded_where_conditions
from sql.rewrite.passes import RewrittenPlans, apply_passes
from sql.types.sql_type import Value

_REWRITTEN: Final = RewrittenPlans(SPARK_PASSES)


def emit(
    plan: Plan,
    relations: Mapping[RelationId, str],
    parameters: Sequence[Value] = (),
    *,
    prefix: str = "made",
) -> EmittedQuery:
    """The plan as one statement, and the relations computed before it. `relations`: the view's name
    for each input; `parameters`: $1 first; `prefix`: the first part of the names of these
    relations.

    Parameters are part of the text, so a statement may be cached by (plan, relations, parameters)
    only.
    """
    return emit_with_iterations(
        plan, relations, parameters, _emit, _SPARK.unsupported, prefix=prefix
    )


def _emit(
    plan: Plan, relations: Mapping[RelationId, str], parameters: Sequence[Value]
) -> EmittedQuery:
    """One statement, of a plan whose recursions Spark does."""
    plan = _REWRITTEN.of(plan)
    try:
        return emit_plan(plan, relations, parameters, _SPARK)
    except UncorrelatedSubqueryRefused:
        return emit_plan(apply_passes(plan, WORKER_PASSES), relations, parameters, _SPARK)


def _values(rows: Sequence[str], alias: str, columns: Sequence[str]) -> str:
    return f"values {', '.join(rows)} as {alias}({', '.join(columns)})"


_SPARK: Final = Dialect(
    engine="spark",
    quote="`",
    key=key,
    literal=literal,
    array=array,
    string=lambda name: f"cast(:{name} as string)",
    argument=lambda _value, _type, _reference: None,
    expression=expression,
    aggregate=aggregate,
    windows=windows,
    order_by=order_by,
    on=lambda _join, condition: conjuncts(condition),
    where=guarded_where_conditions,
    values=_values,
    error=error,
    set_scan=set_scan,
    sets_beside=sets_beside,
    empty_sets=False,
    materialized="",
    any_recursion=False,
    deep_correlation=False,
    changed_by_groups=frozenset({"float4", "float8"}),  # to 0 from -0
    hint=HINT,
)
