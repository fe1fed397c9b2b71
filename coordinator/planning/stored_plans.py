"""Plans of the expressions that tables store as text, bound once: checks, defaults, domain rules.

    table, which of its texts, settings ─▶ plan, and the catalog version that it was bound under

INVARIANTS
  R1  a cached plan is the one that binding would make now: it was bound under the same version of
      the catalog, for the same table, and the settings that binding reads are the key.
  R2  a plan that depends on the clock or the session is not cached; nor is one of a transaction
      that has changed the catalog itself: nobody else sees that catalog, and its version (negative,
      never used twice) would only displace the plan of all others.
  R3  the cache is bounded; the least recently used entry goes first.

Rejected: an entry that stays valid as long as the names that binding looked up mean the same by oid
and version. The versions of objects are no identities: DDL that is rolled back, or not committed
yet, takes a version that other DDL takes as well. And binding reads more than it records.

Not here: running the plans (`coordinator/execution/dml/row_constraints.py`).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.planning.lru_cache import LruMapping
from sql.binder.bind import bind_with_context
from sql.binder.state import BindContext, Binding
from sql.catalog.catalog import NameDependency, Table
from sql.plan.nodes import Plan

_Key: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan, and the definitions that it is made of besides the table's."""

    plan: Plan
    uses: frozenset[NameDependency]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A plan, and what it was bound for."""

    catalog_version: int
    table: Table
    plan: StoredPlan


class StoredPlans:
    """See the module."""

    def __init__(self, *, entries_max: int = 1_000) -> None:
        self._plans: LruMapping[_Key, _Stored] = LruMapping(entries_max)

    def plan(
        self,
        table: Table,
        part: Hashable,
        context: BindContext,
        make: Callable[[Binding], Plan],
        *,
        shared: bool,
    ) -> StoredPlan:
        """What `make` binds for that part of the table's definition, or made before (R1). `shared`:
        the catalog is one that has committed (R2).
        """
        if not shared:
            return _bound(context, make)[0]
        settings = context.timezone, context.styles, context.user
        key: _Key = (table.oid, part, tuple(context.search_path), settings)
        version, known = context.catalog.version, self._plans.get(key)
        if known is not None and known.catalog_version == version and known.table is table:
            return known.plan
        plan, binding = _bound(context, make)
        if not (binding.uses_now or binding.read_clock or binding.uses_session):
            self._plans.put(key, _Stored(version, table, plan))
        return plan


def _bound(context: BindContext, make: Callable[[Binding], Plan]) -> tuple[StoredPlan, Binding]:
    plan, binding = bind_with_context(context, lambda binding: (make(binding), binding))
    return StoredPlan(plan, frozenset(binding.uses)), binding
