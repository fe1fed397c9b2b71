"""Derive from a plan the predicates that its scans depend on, one for each table.

The conditions of a plan are derived once and cached by the plan's identity: plans that run again
come from the plan cache.
"""

from collections.abc import Mapping, Sequence

from compute.access.row_predicates import RowPredicate
from compute.identity_cache import REMEMBERED_NODES_MAX, IdentityCache
from sql.catalog.catalog import Table
from sql.plan.nodes import Plan, RelationId
from sql.plan.read_conditions import ReadCondition, read_conditions
from sql.plan.traverse import has_more_nodes
from sql.types.sql_type import Value

_Conditions = Mapping[RelationId, tuple[ReadCondition, ...] | None]

_remembered: IdentityCache[Plan, _Conditions] = IdentityCache()


def read_predicates(
    plan: Plan, tables: Sequence[Table], parameters: Sequence[Value]
) -> list[RowPredicate | None]:
    """One predicate per table; None: the plan may depend on any of its rows."""
    conditions = _conditions(plan)
    given = tuple(parameters)
    predicates: list[RowPredicate | None] = []
    for table in tables:
        # A table that the plan does not scan at all was bound and optimised away: all is safe.
        found = conditions.get(RelationId(table.shard))
        predicates.append(None if found is None else _predicate(table, found, given))
    return predicates


def _predicate(
    table: Table, found: tuple[ReadCondition, ...], given: tuple[Value, ...]
) -> RowPredicate | None:
    try:
        return RowPredicate(table, found, given)
    except RecursionError:
        return None


def _conditions(plan: Plan) -> _Conditions:
    known = _remembered.get(plan)
    if known is not None:
        return known
    try:
        found = read_conditions(plan)
    except RecursionError:
        # Too deep for an engine as well, which will say so.
        found = {}
    if not has_more_nodes(plan, REMEMBERED_NODES_MAX):
        _remembered.put(plan, found)
    return found
