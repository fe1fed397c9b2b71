"""Rows of pg_stat_*: tables, indexes and databases with what was counted, and pg_stat_statements.

    rows without counts (`statistics.py`, `recorded.py`) ─┐
    ObservedStatistics, ObservedTimeline ─────────────────┴─▶ rows with counts

A row names the columns it has (W2 of `pgcatalog/relations.py`).

INVARIANTS
  T1  (of `activity.py`) a role sees the text of a statement of a role whose privileges it lacks
      only with pg_read_all_stats, as in pg_stat_statements.c.
  T2  rows that are there are those of the newest commit: live ones, and those that wait in files
      until a compaction drops them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final, TypeAlias

from coordinator.core.observation import ObservedTimeline
from coordinator.pgcatalog.activity import HIDDEN_QUERY, ObservedSession
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.recorded import RECORDED_ROWS
from coordinator.pgcatalog.statistics import STATISTICS_ROWS
from coordinator.statistics.relation_counts import DatabaseCounts, IndexCounts, TableCounts
from coordinator.statistics.server_statistics import ObservedStatistics
from coordinator.statistics.statement_entries import EntryKey, StatementEntry, Timings
from sql.binder.resolve.role_names import roles_of
from sql.binder.state import BindContext
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.roles import ALL_STATS_ROLE
from sql.types.sql_type import Value
from storage.shard import ShardState

_Rows: TypeAlias = Callable[
    [BindContext, ObservedStatistics, Sequence[ObservedTimeline], Sequence[ObservedSession]],
    Iterator[NamedRow],
]

_MS: Final = 1e3
"""Times are shown in milliseconds."""


def _tables(
    name: str,
    context: BindContext,
    seen: ObservedStatistics,
    timelines: Sequence[ObservedTimeline],
    _sessions: Sequence[ObservedSession],
) -> Iterator[NamedRow]:
    shards = {s.table.oid: s.state for line in timelines for s in line.shards}
    for row in STATISTICS_ROWS[name](context):
        oid = row["relid"]
        assert isinstance(oid, int), "it is an oid"
        counts = seen.relations.tables.get(oid, TableCounts())
        found: dict[str, Value] = {
            "seq_scan": counts.scans,
            "last_seq_scan": counts.last_at or None,
            "n_tup_ins": counts.inserted,
            "n_tup_upd": counts.updated,
            "n_tup_del": counts.deleted,
            "n_mod_since_analyze": counts.inserted + counts.updated + counts.deleted,
            "n_ins_since_vacuum": counts.inserted,
        }
        if "idx_scan" in row:
            found["idx_scan"] = counts.index_scans
            found["idx_tup_fetch"] = counts.index_fetched
            found["last_idx_scan"] = counts.last_index_at or None
        if oid in shards:
            found["n_live_tup"], found["n_dead_tup"] = _rows_of(shards[oid])
        yield {**row, **found}


def _rows_of(state: ShardState) -> tuple[int, int]:
    """How many rows live, and how many are dead in files (T2)."""
    files = [*state.versions[-1].files.values()] if state.versions else []
    dead = sum(len(live.deleted) for live in files)
    live = sum(live.file.rows for live in files) - dead
    for commit in state.tail:
        live += commit.batch.new_rows - sum(map(len, commit.batch.deletes.values()))
    return max(live, 0), dead


def _indexes(
    name: str,
    context: BindContext,
    seen: ObservedStatistics,
    _timelines: Sequence[ObservedTimeline],
    _sessions: Sequence[ObservedSession],
) -> Iterator[NamedRow]:
    for row in STATISTICS_ROWS[name](context):
        oid = row["indexrelid"]
        assert isinstance(oid, int), "it is an oid"
        counts = seen.relations.indexes.get(oid, IndexCounts())
        yield {
            **row,
            "idx_scan": counts.scans,
            "last_idx_scan": counts.last_at or None,
            "idx_tup_read": counts.fetched,
            "idx_tup_fetch": counts.fetched,
        }


def _databases(
    context: BindContext,
    seen: ObservedStatistics,
    _timelines: Sequence[ObservedTimeline],
    sessions: Sequence[ObservedSession],
) -> Iterator[NamedRow]:
    here = [session.database for session in sessions]
    for row in STATISTICS_ROWS["pg_stat_database"](context):
        name = row.get("datname")
        if not isinstance(name, str):
            yield row
            continue
        counts = seen.databases.get(name, DatabaseCounts())
        yield {
            **row,
            "numbackends": here.count(name),
            "xact_commit": counts.commits,
            "xact_rollback": counts.rollbacks,
            "tup_returned": counts.returned,
            "tup_fetched": counts.fetched,
            "tup_inserted": counts.inserted,
            "tup_updated": counts.updated,
            "tup_deleted": counts.deleted,
            "conflicts": counts.conflicts,
            "deadlocks": counts.deadlocks,
            "session_time": counts.session_s * _MS,
            "active_time": counts.active_s * _MS,
            "sessions": counts.sessions,
            "sessions_abandoned": counts.abandoned,
            "sessions_fatal": counts.fatal,
            "sessions_killed": counts.killed,
            "stats_reset": counts.reset_at or None,
        }


def _of_server(
    rows: Callable[[BindContext], Iterator[NamedRow]],
    kind: str,
    context: BindContext,
    seen: ObservedStatistics,
    _timelines: Sequence[ObservedTimeline],
    _sessions: Sequence[ObservedSession],
) -> Iterator[NamedRow]:
    """Rows that count nothing here, and when this began."""
    for row in rows(context):
        one, all_ = f"{kind}:{row.get('name')!s}", seen.shared_reset_at.get(kind, seen.started_at)
        yield {**row, "stats_reset": max(seen.shared_reset_at.get(one, 0), all_)}


_ZEROS: Final = (
    "plans", "shared_blks_hit", "shared_blks_read", "shared_blks_dirtied", "shared_blks_written",
    "local_blks_hit", "local_blks_read", "local_blks_dirtied", "local_blks_written",
    "temp_blks_read", "temp_blks_written", "wal_records", "wal_fpi", "wal_bytes",
    "wal_buffers_full", "jit_functions", "jit_inlining_count", "jit_optimization_count",
    "jit_emission_count", "jit_deform_count", "parallel_workers_to_launch",
    "parallel_workers_launched",
)  # fmt: skip
_ZERO_TIMES: Final = (
    "total_plan_time", "min_plan_time", "max_plan_time", "mean_plan_time", "stddev_plan_time",
    "shared_blk_read_time", "shared_blk_write_time", "local_blk_read_time", "local_blk_write_time",
    "temp_blk_read_time", "temp_blk_write_time", "jit_generation_time", "jit_inlining_time",
    "jit_optimization_time", "jit_emission_time", "jit_deform_time",
)  # fmt: skip
_NOT_MEASURED: Final[Mapping[str, Value]] = {
    **dict.fromkeys(_ZEROS, 0),
    **dict.fromkeys(_ZERO_TIMES, 0.0),
}


def _statements(
    context: BindContext,
    seen: ObservedStatistics,
    _timelines: Sequence[ObservedTimeline],
    _sessions: Sequence[ObservedSession],
) -> Iterator[NamedRow]:
    shown = _shown_users(context)
    for key, entry in seen.entries:
        is_shown = shown(key.user)
        yield {
            **_NOT_MEASURED,
            **_times(entry.timings),
            "userid": key.user,
            "dbid": DATABASE_OIDS[key.database],
            "toplevel": True,
            "queryid": key.queryid if is_shown else None,
            "query": entry.text if is_shown else HIDDEN_QUERY,
            "calls": entry.timings.calls,
            "rows": entry.rows,
            "stats_since": entry.since,
            "minmax_stats_since": entry.extremes_since,
        }


def _times(timings: Timings) -> dict[str, Value]:
    return {
        "total_exec_time": timings.total * _MS,
        "min_exec_time": timings.least * _MS,
        "max_exec_time": timings.most * _MS,
        "mean_exec_time": timings.mean * _MS,
        "stddev_exec_time": timings.deviation * _MS,
    }


def _shown_users(context: BindContext) -> Callable[[int], bool]:
    """Whether statements of a role are shown (T1)."""
    roles, asking = roles_of(context), context.user_oid
    reads_all = ALL_STATS_ROLE in roles.above(asking) or roles.is_super(asking)
    return lambda user: reads_all or user == asking


def _statements_info(
    _context: BindContext,
    seen: ObservedStatistics,
    _timelines: Sequence[ObservedTimeline],
    _sessions: Sequence[ObservedSession],
) -> Iterator[NamedRow]:
    yield {"dealloc": seen.dropped, "stats_reset": seen.reset_at}


def _statement_engines(
    context: BindContext,
    seen: ObservedStatistics,
    _timelines: Sequence[ObservedTimeline],
    _sessions: Sequence[ObservedSession],
) -> Iterator[NamedRow]:
    shown = _shown_users(context)
    return chain.from_iterable(
        _engines(key, entry, entry_shown=shown(key.user)) for key, entry in seen.entries
    )


def _engines(key: EntryKey, entry: StatementEntry, *, entry_shown: bool) -> Iterator[NamedRow]:
    """Calls that no engine has run were answered in process."""
    left = entry.timings.calls - sum(entry.engines.values())
    for engine, calls in sorted({"in_process": max(left, 0), **entry.engines}.items()):
        if calls:
            yield {
                "userid": key.user,
                "dbid": DATABASE_OIDS[key.database],
                "queryid": key.queryid if entry_shown else None,
                "engine": engine,
                "calls": calls,
            }


_KINDS: Final = {
    "archiver": "archiver",
    "bgwriter": "bgwriter",
    "checkpointer": "checkpointer",
    "recovery_prefetch": "recovery_prefetch",
    "slru": "slru",
    "wal": "wal",
}
"""Views that have one moment of their reset, and what pg_stat_reset_shared() calls them."""

COUNTED_ROWS: Final[Mapping[str, _Rows]] = {
    **{
        f"pg_stat_{which}_tables": partial(_tables, f"pg_stat_{which}_tables")
        for which in ("all", "sys", "user")
    },
    **{
        f"pg_stat_{which}_indexes": partial(_indexes, f"pg_stat_{which}_indexes")
        for which in ("all", "sys", "user")
    },
    **{
        f"pg_stat_{view}": partial(_of_server, STATISTICS_ROWS[f"pg_stat_{view}"], kind)
        for view, kind in _KINDS.items()
    },
    "pg_stat_io": partial(_of_server, RECORDED_ROWS["pg_stat_io"], "io"),
    "pg_stat_database": _databases,
    "pg_stat_statements": _statements,
    "pg_stat_statements_info": _statements_info,
    "statement_engines": _statement_engines,
}
