"""Decide whether the local engine can run a plan, without running it and without loading DuckDB.

INVARIANTS
  S1  for a plan that has been asked about before, the answer costs about a microsecond: the same
      statement is run again and again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from compute.identity_cache import REMEMBERED_NODES_MAX, IdentityCache
from sql.emit.state import GivenParameter
from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.plan.traverse import has_more_nodes, scans
from sql.types.sql_type import Value


@dataclass(frozen=True, slots=True)
class LocalSupport:
    """What the local engine does with a plan. `refusal`: why it does not run it; `row_by_row`: it
    computes functions in Python for every row; `given`: for which parameters this was found.
    """

    refusal: str | None
    row_by_row: bool = False
    given: tuple[GivenParameter, ...] = ()


_remembered: IdentityCache[Plan, LocalSupport] = IdentityCache()


def local_support(plan: Plan, parameters: Sequence[Value]) -> LocalSupport:
    """What the local engine does with the plan."""
    known = _remembered.get(plan)
    if known is not None and _is_for(known, parameters):
        return known
    found, remember = _found(plan, parameters)
    if remember and not has_more_nodes(plan, REMEMBERED_NODES_MAX):
        _remembered.put(plan, found)
    return found


def _is_for(known: LocalSupport, parameters: Sequence[Value]) -> bool:
    if len(known.given) != len(parameters):
        return False
    # A server starts without it, and imports it with the local engine.
    from sql.emit.duckdb.dialect import has_same_text

    return has_same_text(known.given, parameters)


def _found(plan: Plan, parameters: Sequence[Value]) -> tuple[LocalSupport, bool]:
    """The answer, and whether it may be remembered: what is refused may depend on values."""
    from sql.emit.duckdb.dialect import emit

    try:
        query = emit(plan, {scan.relation: "t" for scan in scans(plan)}, parameters)
    except SqlError as error:
        # Other errors than 0A000 are the same on every engine.
        refused = error.message if error.sqlstate == "0A000" else None
        return LocalSupport(refused), not parameters
    return LocalSupport(None, query.row_by_row, query.parameters), True
