"""Plans of the expressions that tables store as text, bound once: checks, defaults, domain rules.

    table, which of its texts, settings ─▶ plan, and the look-ups that its meaning depends on

INVARIANTS
  R1  a cached plan is the one that binding would make now: the table is equal to the one it was
      bound for (its columns' types and domains are part of it), every name that binding looked up
      still means the same by oid and version, and the settings that binding reads are the key.
  R2  a plan that depends on the clock or the session is not cached.
  R3  the cache is bounded; the least recently used entry goes first.

Not here: running the plans (`coordinator/execution/dml/row_constraints.py`).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.core.catalog import is_look_up_current
from coordinator.planning.lru_cache import LruMapping
from sql.binder.bind import bind_with_context
from sql.binder.state import BindContext, Binding
from sql.catalog.catalog import Catalog, NameDependency, Table
from sql.plan.nodes import Plan

_Key: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A plan, and what it was bound for. It holds no catalog: there may be many versions of it."""

    table: Table
    look_ups: frozenset[NameDependency]
    plan: Plan

    def is_valid(self, table: Table, catalog: Catalog) -> bool:
        """Whether binding would make this plan under that catalog (R1)."""
        if table is not self.table and table != self.table:
            return False
        return all(is_look_up_current(catalog, name) for name in self.look_ups)


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
    ) -> Plan:
        """What `make` binds for that part of the table's definition, or made before (R1)."""
        settings = context.timezone, context.styles, context.user
        key: _Key = (table.oid, part, tuple(context.search_path), settings)
        known = self._plans.get(key)
        if known is not None and known.is_valid(table, context.catalog):
            return known.plan
        plan, binding = bind_with_context(context, lambda binding: (make(binding), binding))
        if not (binding.uses_now or binding.read_clock or binding.uses_session):
            look_ups = frozenset(binding.look_ups)
            self._plans.put(key, _Stored(table, look_ups, plan))
        return plan
