"""Logical plans as Spark SQL: the dialect, and the way in.

INVARIANTS
  Q4  a relation is a temporary view, and all strings are arguments of `spark.sql(text, args=..)`.

Not here: running it, and turning Spark's failures into ours (`compute/spark.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sql.emit.asked_windows import with_asked_windows
from sql.emit.carried_columns import with_carried_columns
from sql.emit.emitted import EmittedQuery
from sql.emit.guarding.asked_defaults import with_asked_defaults
from sql.emit.guarding.asked_keys import with_asked_keys
from sql.emit.guarding.asked_subqueries import run_if_asked
from sql.emit.guarding.condition_columns import with_condition_columns
from sql.emit.guarding.filtered_arguments import with_filtered_arguments
from sql.emit.guarding.guarded_conditions import with_guarded_conditions
from sql.emit.guarding.guarded_filters import guarded_parts
from sql.emit.guarding.guarded_subqueries import with_guarded_branches
from sql.emit.guarding.hidden_keys import with_hidden_keys
from sql.emit.guarding.only_rows import with_only_rows
from sql.emit.guarding.outer_guards import guarded_by_outer
from sql.emit.guarding.pulled_up import with_pulled_up
from sql.emit.inherited_order import with_inherited_order
from sql.emit.joined_subqueries import with_joined_subqueries
from sql.emit.key_columns import with_key_columns
from sql.emit.made_rows import with_counted_rows
from sql.emit.outer_zeros import with_outer_zeros
from sql.emit.own_values import with_own_values
from sql.emit.placed_conditions import with_placed_conditions
from sql.emit.rounds import emit_in_rounds
from sql.emit.scope import Dialect
from sql.emit.selects import emit_plan
from sql.emit.spark_aggregates import aggregate, order_by
from sql.emit.spark_arrays import key
from sql.emit.spark_expressions import expression
from sql.emit.spark_outside import OwnSubquery
from sql.emit.spark_sets import set_scan, sets_beside
from sql.emit.spark_types import HINT, array, error, literal
from sql.emit.spark_windows import windows
from sql.plan import Plan, RelationId
from sql.traverse import conjuncts
from sql.types import Value
from sql.volatile_calls import called_once


def emit(
    plan: Plan,
    relations: Mapping[RelationId, str],
    parameters: Sequence[Value] = (),
    *,
    prefix: str = "made",
) -> EmittedQuery:
    """The plan as one statement, and what is made before it. `relations`: the view's name for each
    input; `parameters`: $1 first; `prefix`: what the names of relations that are made begin with.

    Parameters are part of the text, so a statement may be cached by (plan, relations, parameters)
    only.
    """
    return emit_in_rounds(plan, relations, parameters, _emit, _SPARK.unsupported, prefix=prefix)


def _emit(
    plan: Plan, relations: Mapping[RelationId, str], parameters: Sequence[Value]
) -> EmittedQuery:
    """One statement, of a plan whose recursions Spark does."""
    plan = with_pulled_up(called_once(with_inherited_order(plan)))
    plan = run_if_asked(with_joined_subqueries(plan, only_failing=False))
    plan = with_filtered_arguments(with_asked_defaults(plan), by_overflow=False)
    plan = with_hidden_keys(with_guarded_conditions(with_only_rows(plan)))
    plan = with_asked_keys(plan)
    plan = with_condition_columns(with_asked_windows(plan, filters=True), for_spark=True)
    plan = with_guarded_branches(guarded_by_outer(plan), by_key=True)
    plan = with_placed_conditions(with_outer_zeros(with_counted_rows(plan)))
    plan = with_key_columns(with_carried_columns(plan))
    try:
        return emit_plan(plan, relations, parameters, _SPARK)
    except OwnSubquery:
        return emit_plan(with_own_values(plan), relations, parameters, _SPARK)


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
    where=guarded_parts,
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
