"""Rows of work that no session does: cuts, compaction and vacuum, as PostgreSQL's processes.

    checkpointer          writes commits into Delta tables (`core/cuts.py`)
    autovacuum launcher   decides when files are rewritten and removed (`core/maintenance.py`)
    autovacuum worker     one job of it, in each timeline that has one

They are tasks of one process, so their pids are only numbers: of no session, and always the same.
Nobody can cancel or terminate them.

INVARIANTS
  T1 of `activity.py`: in PostgreSQL they belong to nobody, so pg_read_all_stats is needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from coordinator.core.observation import ObservedTimeline
from coordinator.pgcatalog.activity import BACKGROUND_PIDS, HIDDEN_QUERY, reads_all_stats
from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.state import BindContext
from sql.catalog.oids import DATABASE_OIDS
from sql.types.sql_type import quoted_name

_WORKERS: Final = BACKGROUND_PIDS + 0x10


def background_activity(
    context: BindContext, timelines: Sequence[ObservedTimeline]
) -> Iterator[NamedRow]:
    """Rows of pg_stat_activity."""
    writes = any(line.flushing for line in timelines)
    waits = ("IO", "DataFileWrite") if writes else ("Activity", "CheckpointerMain")
    rows: list[NamedRow] = [
        _row(context, 1, "checkpointer", waits),
        _row(context, 2, "autovacuum launcher", ("Activity", "AutovacuumMain")),
    ]
    for place, line in enumerate(timelines):
        if line.maintaining is not None:
            row = _row(context, _WORKERS - BACKGROUND_PIDS + place, "autovacuum worker", None)
            database: NamedRow = {
                "datid": DATABASE_OIDS[context.database],
                "datname": context.database,
            }
            query = f"autovacuum: {line.maintaining.verb}{_table_name(line)}"
            rows.append({**row, **database, "state": "active", "query": query})
    for row in rows:
        yield row if reads_all_stats(context) else {"pid": row["pid"], "query": HIDDEN_QUERY}


def _row(context: BindContext, number: int, kind: str, wait: tuple[str, str] | None) -> NamedRow:
    waits = {} if wait is None else {"wait_event_type": wait[0], "wait_event": wait[1]}
    return {
        "datid": None,
        "pid": BACKGROUND_PIDS + number,
        "application_name": "",
        "backend_start": context.started_at,
        "query": "",
        "backend_type": kind,
        **waits,
    }


def _table_name(line: ObservedTimeline) -> str:
    """A space and the name; nothing if the table is gone."""
    assert line.maintaining is not None, "somebody works at a table"
    for shard in line.shards:
        if shard.state.shard == line.maintaining.shard:
            return f" {quoted_name(shard.table.schema)}.{quoted_name(shard.table.name)}"
    return ""


def _pg_stat_progress_vacuum(
    context: BindContext, timelines: Sequence[ObservedTimeline]
) -> Iterator[NamedRow]:
    """Vacuum looks at the files of a table as a whole: there are no blocks to count."""
    for place, line in enumerate(timelines):
        job = line.maintaining
        if job is None or job.verb != "VACUUM":
            continue
        row: NamedRow = {
            "pid": _WORKERS + place,
            "datid": DATABASE_OIDS[context.database],
            "datname": context.database,
        }
        relation = next((s.table.oid for s in line.shards if s.state.shard == job.shard), 0)
        counts = dict.fromkeys(_VACUUM_COUNTS, 0)
        shown: NamedRow = {**row, "relid": relation, "phase": "scanning heap", **counts}
        yield shown if reads_all_stats(context) else row


_VACUUM_COUNTS: Final = (
    "heap_blks_total", "heap_blks_scanned", "heap_blks_vacuumed", "index_vacuum_count",
    "max_dead_tuple_bytes", "dead_tuple_bytes", "num_dead_item_ids", "indexes_total",
    "indexes_processed",
)  # fmt: skip

BACKGROUND_ROWS: Final[
    Mapping[str, Callable[[BindContext, Sequence[ObservedTimeline]], Iterator[NamedRow]]]
] = {"pg_stat_progress_vacuum": _pg_stat_progress_vacuum}
