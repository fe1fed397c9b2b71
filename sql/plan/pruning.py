"""Read only the columns of tables that a plan uses."""

from collections.abc import Iterator
from dataclasses import replace

from sql.plan.nodes import (
    ColumnId,
    DistinctRows,
    Plan,
    Recursive,
    Scan,
    SetOp,
    With,
    output_columns,
)
from sql.plan.traverse import inputs, plan_column_ids, plan_nodes, rewrite_inputs


def prune_columns(plan: Plan) -> Plan:
    """The plan with scans that read only columns that are used."""
    used = set(used_column_ids(plan))
    used.update(column.id for column in output_columns(plan))
    return _without(plan, used)


def used_column_ids(plan: Plan) -> Iterator[ColumnId]:
    """`plan_column_ids`, and columns that nodes take from their inputs by position."""
    yield from plan_column_ids(plan)
    for node in plan_nodes(plan):
        if isinstance(node, SetOp | DistinctRows | Recursive | With):
            # Of a With only the definition counts; its input's columns are known already.
            for below in inputs(node)[: 1 if isinstance(node, With) else 2]:
                yield from (column.id for column in output_columns(below))


def _without(plan: Plan, used: set[ColumnId]) -> Plan:
    if not isinstance(plan, Scan):
        return rewrite_inputs(plan, lambda part: _without(part, used))
    kept = [index for index, column in enumerate(plan.columns) if column.id in used]
    if len(kept) == len(plan.columns):
        return plan
    columns = tuple([plan.columns[index] for index in kept])
    return replace(plan, columns=columns, ordinals=tuple([plan.ordinals[i] for i in kept]))
