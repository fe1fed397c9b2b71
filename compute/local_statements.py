"""Emitted statements, remembered by plan: the same question twice is written once.

INVARIANTS
  L1  a plan is recognised by its identity and kept, so that its identity is not given to another.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from compute.plan_nodes import identified_relations
from sql.emit.duckdb import emit
from sql.emit.selects import EmittedQuery
from sql.plan import Plan, RelationId
from sql.types import Value

PLANS_MAX: Final = 500
STATEMENTS_MAX: Final = 8
"""Statements of one plan, which differ in their relations and parameters."""
TEXT_MAX: Final = 16_384
"""Characters. Longer statements are seldom asked twice."""

_Key: TypeAlias = tuple[tuple[tuple[RelationId, str], ...], str]


@dataclass(frozen=True, slots=True)
class _Known:
    plan: Plan
    identified: frozenset[RelationId]
    queries: OrderedDict[_Key, EmittedQuery] = field(
        default_factory=OrderedDict[_Key, EmittedQuery]
    )


class LocalStatements:
    """See the module. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[int, _Known] = OrderedDict()

    def identified(self, plan: Plan) -> frozenset[RelationId]:
        """The relations that the plan scans with the identity of their rows."""
        return self._known(plan).identified

    def emitted(
        self, plan: Plan, names: Mapping[RelationId, str], parameters: Sequence[Value]
    ) -> EmittedQuery:
        """See `sql.emit.duckdb.emit`."""
        known = self._known(plan)
        # As text: 1, 1.0 and true are equal as values.
        key = (tuple(names.items()), repr(parameters) if parameters else "")
        with self._lock:
            query = known.queries.get(key)
            if query is not None:
                known.queries.move_to_end(key)
                return query
        query = emit(plan, names, parameters)
        if len(query.text) <= TEXT_MAX:
            with self._lock:
                known.queries[key] = query
                while len(known.queries) > STATEMENTS_MAX:
                    known.queries.popitem(last=False)
        return query

    def _known(self, plan: Plan) -> _Known:
        with self._lock:
            known = self._plans.get(id(plan))
            if known is not None and known.plan is plan:
                self._plans.move_to_end(id(plan))
                return known
        known = _Known(plan, identified_relations(plan))
        with self._lock:
            self._plans[id(plan)] = known
            while len(self._plans) > PLANS_MAX:
                self._plans.popitem(last=False)
        return known
