"""The statistics of a server: statements, tables, indexes and databases, since their last reset.

INVARIANTS
  S1  all of it is changed on the loop's thread; who reads it elsewhere is given copies.
  S2  what is kept is bounded: statements by KNOWN_MAX and PENDING_MAX, entries by E1 of
      `statement_entries.py`, tables by R1 of `relation_counts.py`.
  S3  nothing is lost when a statement is forgotten, a table is altered or an entry goes: what was
      counted waits among `pending` until it is folded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import Final

from coordinator.planning.lru_cache import LruMapping
from coordinator.statistics.counted_statements import CountedStatement
from coordinator.statistics.query_texts import QueryText, query_text
from coordinator.statistics.relation_accesses import AccessKind, RelationAccess, accesses_of
from coordinator.statistics.relation_counts import DatabaseCounts, RelationCounts
from coordinator.statistics.statement_entries import EntryKey, StatementEntries, StatementEntry
from sql.catalog.catalog import Catalog
from sql.catalog.oids import DATABASE_OIDS
from sql.parser.parse import Statement
from sql.statements.bound import ParameterizedStatement

KNOWN_MAX: Final = 4_000
"""Statements, by text, role and database, whose fingerprint is remembered. Larger: more memory."""
PENDING_MAX: Final = 5_000
"""Statements that have counts until all of them are folded. Larger: a longer pause then."""
TEXT_MAX: Final = 16_384
"""Characters. Longer texts are seldom sent twice: who they are is asked anew each time."""


@dataclass(frozen=True, slots=True)
class ObservedStatistics:
    """Copies of everything, for a thread (S1)."""

    entries: tuple[tuple[EntryKey, StatementEntry], ...] = ()
    relations: RelationCounts = field(default_factory=RelationCounts)
    databases: Mapping[str, DatabaseCounts] = field(default_factory=dict[str, DatabaseCounts])
    dropped: int = 0
    reset_at: int = 0
    """Of the statements; microseconds."""
    started_at: int = 0
    """Of the server."""
    shared_reset_at: Mapping[str, int] = field(default_factory=dict[str, int])
    """By what pg_stat_reset_shared() calls it, or `slru:` and the name of one of these."""


SLRU_NAMES: Final = (
    "commit_timestamp", "multixact_member", "multixact_offset", "notify", "serializable",
    "subtransaction", "transaction", "other",
)  # fmt: skip
"""Caches of PostgreSQL that have statistics of their own."""


def query_of(statement: Statement) -> QueryText:
    """The statement as pg_stat_statements names it."""
    return query_text(statement.own_text)


class ServerStatistics:
    """See the module."""

    def __init__(self, now: Callable[[], int] = lambda: 0, *, is_on: bool = True) -> None:
        self._now = now
        self.is_on = is_on
        self._pending: list[CountedStatement] = []
        self._known: LruMapping[tuple[object, ...], CountedStatement] = LruMapping(KNOWN_MAX)
        self.entries = StatementEntries()
        self.entries.reset_at = self._started_at = now()
        self._relations = RelationCounts()
        self._databases = {name: DatabaseCounts() for name in DATABASE_OIDS}
        self._shared_reset_at: dict[str, int] = {}

    def counted(
        self, statement: Statement, user: int, database: str, query: QueryText | None = None
    ) -> CountedStatement | None:
        """Where a statement of a role in a database is counted; None: nothing is counted. `query`:
        what `query_of` says, if somebody has asked.
        """
        if not self.is_on:
            return None
        own = statement.own_text
        key = (own, user, database)
        found = self._known.get(key)
        if found is None:
            query = query or query_of(statement)
            found = self._made(EntryKey(user, database, query.queryid), query)
            if len(own) <= TEXT_MAX:
                self._known.put(key, found)
        return found

    def counted_plan(
        self,
        statement: Statement,
        user: int,
        database: str,
        planned: ParameterizedStatement,
        catalog: Catalog,
    ) -> CountedStatement | None:
        """Where one plan of a statement is counted, beside other plans that its text may have."""
        known = self.counted(statement, user, database)
        if known is None:
            return None
        made = self._made(known.key, known.query)
        self.plan(made, planned, catalog)
        return made

    def _made(self, key: EntryKey, query: QueryText) -> CountedStatement:
        if len(self._pending) > PENDING_MAX:
            self.fold()
        return CountedStatement(key, query, self._pending)

    def plan(
        self, counted: CountedStatement, planned: ParameterizedStatement, catalog: Catalog
    ) -> None:
        """The statement's plan has become this one."""
        if counted.planned is planned:
            return
        self._fold_one(counted, self._now(), perf_counter())
        counted.planned = planned
        counted.accesses = accesses_of(planned.bound, catalog)

    def changed(
        self, database: str, table: int, *, inserted: int, updated: int, deleted: int
    ) -> None:
        """A statement has done this to a table, whose tag does not tell."""
        if not self.is_on:
            return
        counts, whole = self._relations.table(table), self.database(database)
        for into in (counts, whole):
            into.inserted += inserted
            into.updated += updated
            into.deleted += deleted

    def database(self, name: str) -> DatabaseCounts:
        """Where a database is counted."""
        return self._databases[name]

    # --- folding --------------------------------------------------------------------------------

    def fold(self) -> None:
        """Bring everything that waits to its entries and tables."""
        now, clock = self._now(), perf_counter()
        for counted in self._pending:
            self._fold_one(counted, now, clock)
            counted.waits = False
        self._pending.clear()

    def _fold_one(self, counted: CountedStatement, now: int, clock: float) -> None:
        if not counted.calls and not counted.rows:
            return
        at = now - round((clock - counted.last) * 1e6)
        self._fold_statement(counted, now)
        database = self.database(counted.key.database)
        database.active_s += counted.total
        for access in counted.accesses:
            self._fold_access(access, counted, database, at)
        counted.clear()

    def _fold_statement(self, counted: CountedStatement, now: int) -> None:
        entry = self.entries.entry(counted.key, counted.query.text, now)
        entry.timings.merge(counted.timings)
        entry.rows += counted.rows
        entry.usage += counted.calls
        for engine, calls in (counted.engines or {}).items():
            entry.engines[engine] = entry.engines.get(engine, 0) + calls

    def _fold_access(
        self, access: RelationAccess, counted: CountedStatement, database: DatabaseCounts, at: int
    ) -> None:
        table = self._relations.table(access.table)
        match access.kind:
            case AccessKind.INSERT:
                table.inserted += counted.rows
                database.inserted += counted.rows
            case AccessKind.UPDATE:
                table.updated += counted.rows
                database.updated += counted.rows
            case AccessKind.DELETE:
                table.deleted += counted.rows
                database.deleted += counted.rows
            case AccessKind.SCAN:
                table.scans += counted.calls
                table.last_at = max(table.last_at, at)
                database.returned += counted.rows
            case AccessKind.LOOK_UP | AccessKind.CHECK:
                by_row = access.kind is AccessKind.CHECK
                scans = counted.rows if by_row else counted.calls
                fetched = 0 if by_row else counted.rows
                index = self._relations.index(access.index)
                index.scans += scans
                index.fetched += fetched
                table.index_scans += scans
                table.index_fetched += fetched
                database.returned += fetched
                database.fetched += fetched
                if scans:
                    index.last_at = max(index.last_at, at)
                    table.last_index_at = max(table.last_index_at, at)

    # --- reading and resetting ------------------------------------------------------------------

    def observe(self, *, with_entries: bool) -> ObservedStatistics:
        """Everything, as it is now; statements only if they are asked for: there may be many."""
        self.fold()
        entries = self.entries.items() if with_entries else ()
        return ObservedStatistics(
            tuple([(key, entry.copy()) for key, entry in entries]),
            self._relations.copy(),
            {name: replace(counts) for name, counts in self._databases.items()},
            self.entries.dropped,
            self.entries.reset_at,
            self._started_at,
            dict(self._shared_reset_at),
        )

    def reset_statements(self, user: int, database: int, queryid: int, *, extremes: bool) -> int:
        """pg_stat_statements_reset(): the moment, in microseconds. `database`: an oid; 0: all."""
        self.fold()
        names = [name for name, oid in DATABASE_OIDS.items() if oid == database]
        now = self._now()
        if not database or names:
            name = names[0] if database else ""
            self.entries.reset(now, user=user, database=name, queryid=queryid, extremes=extremes)
        return now

    def reset_database(self, name: str) -> None:
        """pg_stat_reset()."""
        self.fold()
        self._relations = RelationCounts()
        # Sessions keep the object: they add to it.
        fresh, kept = DatabaseCounts(reset_at=self._now()), self._databases[name]
        for each in fields(DatabaseCounts):
            setattr(kept, each.name, getattr(fresh, each.name))

    def reset_relation(self, oid: int, database: str) -> None:
        """pg_stat_reset_single_table_counters(): of a table or an index."""
        self.fold()
        if self._relations.indexes.pop(oid, None) is None:
            self._relations.tables.pop(oid, None)
        self._databases[database].reset_at = self._now()

    def reset_shared(self, what: str) -> None:
        """pg_stat_reset_shared() and pg_stat_reset_slru(): nothing of these is counted here."""
        self._shared_reset_at[what] = self._now()
