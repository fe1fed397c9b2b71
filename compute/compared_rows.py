"""How many pairs of rows a plan compares where a join has no equality to look rows up by.

    t a, t b  where a.v < b.v        rows of a × rows of b
    t a, t b  where a.v = b.v        none: a hash table finds them

INVARIANTS
  C1  it is an estimate, and costs microseconds: that a plan has no such join is remembered.
"""

from collections.abc import Iterator, Mapping, Set
from typing import Final

from compute.identity_cache import REMEMBERED_NODES_MAX, IdentityCache
from compute.reference.cost import series_rows
from compute.scan import row_count_bound
from sql.plan.conditions import equality_sides, flatten_conjuncts
from sql.plan.nodes import (
    ColumnId,
    Expr,
    Filter,
    GroupBy,
    Join,
    Plan,
    RelationId,
    Scan,
    SetScan,
    Values,
    output_columns,
)
from sql.plan.traverse import column_ids, has_more_nodes, inputs, walk
from storage.batch import ShardView

_ROWS_MAX: Final = 1 << 40

_known: IdentityCache[Plan, tuple[Join, ...]] = IdentityCache()


def compared_pairs(plan: Plan, views: Mapping[RelationId, ShardView]) -> int:
    """The most pairs of any join without an equality; 0 if there is none (C1)."""
    joins = _known.get(plan)
    if joins is None:
        joins = tuple(_joins_without_keys(plan))
        if not has_more_nodes(plan, REMEMBERED_NODES_MAX):
            _known.put(plan, joins)
    rows = _Rows(views, frozenset(map(id, joins)))
    return max((rows.of(join) for join in joins), default=0)


def _joins_without_keys(plan: Plan) -> Iterator[Join]:
    nodes = list(walk(plan))
    filters = [node.predicate for node in nodes if isinstance(node, Filter)]
    conditions = [*filters, *(node.condition for node in nodes if isinstance(node, Join))]
    equalities = [sides for condition in conditions for sides in _equalities(condition)]
    for node in nodes:
        if isinstance(node, Join):
            left, right = (_columns(side) for side in (node.left, node.right))
            if not any(
                (one <= left and other <= right) or (one <= right and other <= left)
                for one, other in equalities
            ):
                yield node


def _equalities(condition: Expr | None) -> Iterator[tuple[Set[ColumnId], Set[ColumnId]]]:
    """The columns of both sides of each equality; both have some."""
    for part in flatten_conjuncts(condition) if condition is not None else ():
        sides = [frozenset(column_ids(side)) for side in equality_sides(part)]
        if sides and all(sides):
            yield sides[0], sides[1]


def _columns(plan: Plan) -> Set[ColumnId]:
    return {column.id for column in output_columns(plan)}


class _Rows:
    """About how many rows plans give. `products`: the joins, by identity, that look nothing up."""

    def __init__(self, views: Mapping[RelationId, ShardView], products: Set[int]) -> None:
        self._views = views
        self._products = products

    def of(self, plan: Plan) -> int:
        """Of one plan."""
        match plan:
            case Scan():
                view = self._views.get(plan.relation)
                return 0 if view is None else row_count_bound(view)
            case Values():
                return len(plan.rows)
            case SetScan():
                return series_rows(plan)
            case GroupBy() if not plan.keys and plan.sets is None:
                return 1
            case Join():
                left, right = self.of(plan.left), self.of(plan.right)
                found = left * right if id(plan) in self._products else max(left, right)
            case _:
                found = sum(map(self.of, inputs(plan)))
        return min(max(found, 1), _ROWS_MAX)
