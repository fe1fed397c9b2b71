"""Cache parsed and bound statements for all sessions, so that a repeated text needs no analysis.

    text ─▶ Statements                                        (parse: by text)
    statement, types, session, catalog version ─▶ bound statement    (bind: by all it depends on)

INVARIANTS
  L1  a cached ParameterizedStatement is what `bind` would answer now: the key holds everything that
      binding reads. A statement is not cached if binding reads the transaction's time, or a catalog
      that the transaction has changed itself.
  L2  both caches are bounded, also by the length of their texts; the least recently used entry is
      evicted first.
"""

from collections.abc import Callable, Sequence

from coordinator.large_work import aside, aside_if, is_large_statement, is_large_text
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
CACHED_TEXTS_MAX = 1 << 19
"""Characters of all statements of a cache. A tree or plan takes 50 to 100 bytes for each: larger,
and a server that meets ever new statements grows by more than 50 MiB for each cache.
"""


class PlanCache:
    """See the module."""

    def __init__(self, *, entries_max: int = 1_000) -> None:
        self._statements: LruMapping[str, tuple[Statement, ...]] = LruMapping(
            entries_max, CACHED_TEXTS_MAX
        )
        self._plans: LruMapping[tuple[object, ...], ParameterizedStatement] = LruMapping(
            entries_max, CACHED_TEXTS_MAX
        )
        self.stored = StoredPlans(entries_max=entries_max)

    def parse(self, text: str) -> Sequence[Statement]:
        """All statements of a query string. Raises SqlError."""
        known = self._statements.get(text)
        if known is not None:
            return known
        return self._remembered(text, tuple(parse(text)))

    async def parsed(self, text: str) -> Sequence[Statement]:
        """The same, off the loop if the text is large."""
        known = self._statements.get(text)
        if known is not None:
            return known
        return self._remembered(
            text, await aside_if(is_large_text(text), lambda: tuple(parse(text)))
        )

    def _remembered(self, text: str, statements: tuple[Statement, ...]) -> Sequence[Statement]:
        if len(text) <= CACHED_TEXT_MAX:
            self._statements.put(text, statements, len(text))
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
        shared = shared and len(statement.text) <= CACHED_TEXT_MAX
        known = self.known(statement, types, setting=setting) if shared else None
        if known is not None:
            return known
        prepared = plan_prepared(bind(statement, context(), types))
        return self._kept(prepared, statement, types, setting) if shared else prepared

    async def bound(
        self,
        statement: Statement,
        context: Callable[[], BindContext],
        types: tuple[SqlType | None, ...],
        *,
        setting: tuple[object, ...],
        shared: bool,
    ) -> ParameterizedStatement:
        """The same, off the loop if the statement is large."""
        if not is_large_statement(statement):
            return self.bind(statement, context, types, setting=setting, shared=shared)
        shared = shared and len(statement.text) <= CACHED_TEXT_MAX
        known = self.known(statement, types, setting=setting) if shared else None
        if known is not None:
            return known
        made = context()
        prepared = await aside(lambda: plan_prepared(bind(statement, made, types)))
        return self._kept(prepared, statement, types, setting) if shared else prepared

    def _kept(
        self,
        prepared: ParameterizedStatement,
        statement: Statement,
        types: tuple[SqlType | None, ...],
        setting: tuple[object, ...],
    ) -> ParameterizedStatement:
        if not (prepared.uses_now or prepared.rebind):
            key = (statement.text, statement.offset, types, setting)
            self._plans.put(key, prepared, len(statement.text))
        return prepared
