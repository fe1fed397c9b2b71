"""Cache parsed and bound statements for all sessions, so that a repeated text needs no analysis.

    text ─▶ Statements                                        (parse: by text)
    statement, types, session, catalog version ─▶ bound statement    (bind: by all it depends on)

INVARIANTS
  L1  a cached ParameterizedStatement is what `bind` would answer now: the key holds everything that
      binding reads. A statement is not cached if binding reads the transaction's time, or a catalog
      that the transaction has changed itself.
  L2  both caches are bounded; the least recently used entry is evicted first.
"""

from collections.abc import Callable, Sequence

from coordinator.planning.lru_cache import LruMapping
from coordinator.planning.planner import plan_prepared
from coordinator.planning.stored_plans import StoredPlans
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.parser.parse import Statement, parse
from sql.statements.bound import ParameterizedStatement
from sql.types.sql_type import SqlType

CACHED_TEXT_MAX = 16_384
"""Characters. Longer texts are seldom sent twice, and would fill the cache with literals."""


class PlanCache:
    """See the module."""

    def __init__(self, *, entries_max: int = 1_000) -> None:
        self._statements: LruMapping[str, tuple[Statement, ...]] = LruMapping(entries_max)
        self._plans: LruMapping[tuple[object, ...], ParameterizedStatement] = LruMapping(
            entries_max
        )
        self.stored = StoredPlans(entries_max=entries_max)

    def parse(self, text: str) -> Sequence[Statement]:
        """All statements of a query string. Raises SqlError."""
        known = self._statements.get(text)
        if known is not None:
            return known
        statements = tuple(parse(text))
        if len(text) <= CACHED_TEXT_MAX:
            self._statements.put(text, statements)
        return statements

    def known(
        self,
        statement: Statement,
        types: tuple[SqlType | None, ...],
        *,
        setting: tuple[object, ...],
    ) -> ParameterizedStatement | None:
        """The cached result of `bind`, if there is one."""
        return self._plans.get((statement.text, statement.offset, types, setting))

    def bind(
        self,
        statement: Statement,
        context: Callable[[], BindContext],
        types: tuple[SqlType | None, ...],
        *,
        setting: tuple[object, ...],
        shared: bool,
    ) -> ParameterizedStatement:
        """Bind, or remember; `context` is made for what is not known.

        `setting`: the variables' binding key, the catalog's version and whether parameters are
        fixed; `shared`: see L1.
        """
        if not shared or len(statement.text) > CACHED_TEXT_MAX:
            return plan_prepared(bind(statement, context(), types))
        key = (statement.text, statement.offset, types, setting)
        known = self._plans.get(key)
        if known is not None:
            return known
        prepared = plan_prepared(bind(statement, context(), types))
        if not (prepared.uses_now or prepared.rebind):
            self._plans.put(key, prepared)
        return prepared
