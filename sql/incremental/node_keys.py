"""Which nodes have keys, and what of a node is treated in another way than the rest of it.

Nodes with keys are sums: what they are over all rows is what they are over the rows of each key.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sql.incremental.affected_rows import join_keys, reading_subqueries
from sql.plan.conditions import conjunction, flatten_conjuncts
from sql.plan.nodes import (
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Plan,
    Project,
    RelationId,
    SetOp,
    Subquery,
    SubqueryKind,
    Window,
    output_columns,
)
from sql.plan.projections import column_references
from sql.plan.renumbering import free_columns
from sql.plan.traverse import has_subquery, scans


@dataclass(frozen=True, slots=True)
class KeyedInputs:
    """A node that is the sum of what it is for the rows of each key. `keys`: of each input."""

    keys: tuple[tuple[Expr, ...], ...]


def node_inputs(plan: Plan) -> tuple[Plan, ...]:
    """The inputs of a node with keys."""
    if isinstance(plan, SetOp | Join):
        return (plan.left, plan.right)
    assert isinstance(plan, GroupBy | Window | DistinctRows | DistinctOn), "it has keys"
    return (plan.input,)


def keyed_inputs(plan: Plan) -> KeyedInputs | None:
    """The keys of a node; None: it has none, so that each row may depend on every other."""
    if reading_subqueries(plan):
        return None
    match plan:
        case GroupBy():
            every = range(len(plan.keys))
            kept = [at for at in every if plan.sets is None or all(at in s for s in plan.sets)]
            keys = tuple([plan.keys[at] for at in kept])
            return KeyedInputs((keys,)) if keys else None
        case Window():
            shared = [
                expr
                for expr in dict.fromkeys(plan.calls[0].partition)
                if all(expr in call.partition for call in plan.calls)
            ]
            return KeyedInputs((tuple(shared),)) if shared else None
        case DistinctOn():
            return KeyedInputs((plan.keys,)) if plan.keys else None
        case DistinctRows():
            columns = output_columns(plan.input)
            return KeyedInputs((column_references(columns),)) if columns else None
        case SetOp():
            sides = [column_references(output_columns(side)) for side in (plan.left, plan.right)]
            return KeyedInputs(tuple(sides)) if plan.columns else None
        case Join(kind=JoinKind.FULL, lateral=False):
            found = join_keys(plan)
            return None if found is None else KeyedInputs((tuple(found[0]), tuple(found[1])))
        case _:
            return None


def relations_read(plans: Iterable[Plan]) -> frozenset[RelationId]:
    """All inputs that these read."""
    return frozenset(scan.relation for plan in plans for scan in scans(plan))


def with_conditions_above(plan: Join) -> Filter:
    """An inner join with the conditions that have subqueries above it."""
    parts = [] if plan.condition is None else flatten_conjuncts(plan.condition)
    within = [part for part in parts if not has_subquery(part)]
    above = [part for part in parts if has_subquery(part)]
    kind = JoinKind.INNER if within else JoinKind.CROSS
    below = replace(plan, kind=kind, condition=conjunction(within) if within else None)
    return Filter(below, conjunction(above))


def listed_query(plan: Filter | Project) -> Subquery | None:
    """The only subquery of a filter, if it stands there as `args IN (query)` of its own."""
    if not isinstance(plan, Filter):
        return None
    parts = [part for part in flatten_conjuncts(plan.predicate) if has_subquery(part)]
    match parts:
        case [Subquery(kind=SubqueryKind.IN) as found] if not free_columns(found.plan):
            return None if any(map(has_subquery, found.args)) else found
        case _:
            return None
