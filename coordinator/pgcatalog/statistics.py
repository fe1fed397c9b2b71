"""Rows of pg_stat_*, without counts: zero, and NULL for times.

`counts.py` adds what is counted. The others stay so, as where PostgreSQL has just lost its
statistics. A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.definitions import user_tables
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.privileges import PrivilegeColumns
from coordinator.pgcatalog.tables import is_shown_as_view
from coordinator.statistics.server_statistics import SLRU_NAMES
from sql.binder.state import BindContext
from sql.catalog.catalog import Table
from sql.catalog.objects import StatisticsDefinition
from sql.catalog.oids import DATABASE_OIDS, index_oid, schema_oid
from sql.catalog.ownership import owned_object
from sql.catalog.system_catalogs import system_catalogs
from sql.types.sql_type import Value

_COUNTS: Final = (
    "seq_scan", "seq_tup_read", "n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd",
    "n_tup_newpage_upd", "n_live_tup", "n_dead_tup", "n_mod_since_analyze", "n_ins_since_vacuum",
    "vacuum_count", "autovacuum_count", "analyze_count", "autoanalyze_count",
)  # fmt: skip
_TIMES: Final = (
    "total_vacuum_time", "total_autovacuum_time", "total_analyze_time", "total_autoanalyze_time",
)  # fmt: skip
_Rows = Callable[[BindContext], Iterator[NamedRow]]


def _extended(context: BindContext) -> Iterator[NamedRow]:
    """Objects of CREATE STATISTICS, in the order in which they were made."""
    shown, texts = PrivilegeColumns(context), DefinitionTexts(context)
    found = (o for o in context.catalog.objects.values() if isinstance(o, StatisticsDefinition))
    for statistics in sorted(found, key=lambda one: one.oid):
        table = context.catalog.by_oid(statistics.table)
        assert table is not None, "F1: statistics are of a table that is there"
        yield {
            "oid": statistics.oid,
            "stxrelid": statistics.table,
            "stxname": statistics.name,
            "stxnamespace": schema_oid(statistics.schema),
            "stxowner": shown.of(owned_object(statistics))[0],
            "stxkeys": statistics.columns,
            "stxstattarget": statistics.target,
            "stxkind": statistics.kinds,
            "stxexprs": ", ".join(texts.index_element(table, e) for e in statistics.expressions)
            or None,
        }


def _system_tables(_context: BindContext) -> Iterator[NamedRow]:
    for table in system_catalogs().values():
        if not is_shown_as_view(table):
            yield _table_row(table, indexed=True)


def _user_tables(context: BindContext) -> Iterator[NamedRow]:
    for table in _stored(context):
        indexed = bool(table.keys) or any(context.catalog.indexes(table.oid))
        yield _table_row(table, indexed=indexed)


def _table_row(table: Table, *, indexed: bool) -> NamedRow:
    scans = dict.fromkeys(("idx_scan", "idx_tup_fetch"), 0) if indexed else {}
    return {
        "relid": table.oid,
        "schemaname": table.schema,
        "relname": table.name,
        **dict.fromkeys(_COUNTS, 0),
        **dict.fromkeys(_TIMES, 0.0),
        **scans,
    }


def _stored(context: BindContext) -> Iterator[Table]:
    return (table for table in user_tables(context.catalog) if not is_shown_as_view(table))


def _user_indexes(context: BindContext) -> Iterator[NamedRow]:
    for table in _stored(context):
        indexes = [(index_oid(table, key), key.name) for key in table.keys]
        indexes += [(index.oid, index.name) for index in context.catalog.indexes(table.oid)]
        for oid, name in indexes:
            yield {
                "relid": table.oid,
                "indexrelid": oid,
                "schemaname": table.schema,
                "relname": table.name,
                "indexrelname": name,
                **dict.fromkeys(("idx_scan", "idx_tup_read", "idx_tup_fetch"), 0),
            }


def _all_tables(context: BindContext) -> Iterator[NamedRow]:
    yield from _system_tables(context)
    yield from _user_tables(context)


_XACT_COUNTS: Final = (
    "seq_scan", "seq_tup_read", "n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd",
    "n_tup_newpage_upd",
)  # fmt: skip
_BLOCK_COUNTS: Final = ("heap_blks_read", "heap_blks_hit")
_INDEX_BLOCK_COUNTS: Final = ("idx_blks_read", "idx_blks_hit")


def _with_counts(rows: _Rows, counts: Sequence[str], of_indexed: Sequence[str] = ()) -> _Rows:
    """Zeros in place of the counts of rows; `of_indexed`: of tables with indexes only."""

    def counted(context: BindContext) -> Iterator[NamedRow]:
        for row in rows(context):
            zeros = [*counts, *(of_indexed if row.get("idx_scan") is not None else ())]
            named: dict[str, Value] = {name: row[name] for name in row if name in _NAMES}
            for name in zeros:
                named[name] = 0
            yield named

    return counted


_NAMES: Final = ("relid", "indexrelid", "schemaname", "relname", "indexrelname")


def _sequences(context: BindContext) -> Iterator[NamedRow]:
    for sequence in context.catalog.sequences():
        yield {"relid": sequence.oid, "schemaname": sequence.schema, "relname": sequence.name}


def _nothing(_context: BindContext) -> Iterator[NamedRow]:
    yield from ()


def _database_conflicts(_context: BindContext) -> Iterator[NamedRow]:
    """No standby cancels a query."""
    counts: dict[str, Value] = dict.fromkeys(
        ("confl_tablespace", "confl_lock", "confl_snapshot", "confl_bufferpin", "confl_deadlock",
         "confl_active_logicalslot"), 0
    )  # fmt: skip
    for name, oid in DATABASE_OIDS.items():
        yield {"datid": oid, "datname": name, **counts}


def _of_server(counts: Sequence[str], times: Sequence[str] = ()) -> _Rows:
    """The only row of a view about the server."""
    row: NamedRow = dict.fromkeys(counts, 0) | dict.fromkeys(times, 0.0)
    return lambda _context: iter([row])


_TABLES: Final[Mapping[str, _Rows]] = {
    "all": _all_tables,
    "sys": _system_tables,
    "user": _user_tables,
}
_INDEXES: Final[Mapping[str, _Rows]] = {
    "all": _user_indexes,
    "sys": _nothing,
    "user": _user_indexes,
}
_SEQUENCES: Final[Mapping[str, _Rows]] = {
    "all": _sequences,
    "sys": _nothing,
    "user": _sequences,
}

_DATABASE_COUNTS: Final = (
    "numbackends", "xact_commit", "xact_rollback", "blks_read", "blks_hit", "tup_returned",
    "tup_fetched", "tup_inserted", "tup_updated", "tup_deleted", "conflicts", "temp_files",
    "temp_bytes", "deadlocks", "sessions", "sessions_abandoned", "sessions_fatal",
    "sessions_killed", "parallel_workers_to_launch", "parallel_workers_launched",
)  # fmt: skip
_DATABASE_TIMES: Final = (
    "blk_read_time", "blk_write_time", "session_time", "active_time", "idle_in_transaction_time",
)  # fmt: skip


def _databases(_context: BindContext) -> Iterator[NamedRow]:
    """All databases, and one row for what belongs to none."""
    counts: dict[str, Value] = {
        **dict.fromkeys(_DATABASE_COUNTS, 0),
        **dict.fromkeys(_DATABASE_TIMES, 0.0),
    }
    yield {**counts, "datid": 0, "numbackends": None}
    for name, oid in DATABASE_OIDS.items():
        yield {**counts, "datid": oid, "datname": name}


def _slru(_context: BindContext) -> Iterator[NamedRow]:
    counts = ("zeroed", "hit", "read", "written", "exists")
    zeros = dict.fromkeys((*(f"blks_{count}" for count in counts), "flushes", "truncates"), 0)
    for name in SLRU_NAMES:
        yield {"name": name, **zeros}


STATISTICS_ROWS: Final[Mapping[str, _Rows]] = {
    "pg_statistic_ext": _extended,
    **{f"pg_stat_{which}_tables": rows for which, rows in _TABLES.items()},
    **{f"pg_stat_{which}_indexes": rows for which, rows in _INDEXES.items()},
    **{
        f"pg_stat_xact_{which}_tables": _with_counts(
            rows, _XACT_COUNTS, ("idx_scan", "idx_tup_fetch")
        )
        for which, rows in _TABLES.items()
    },
    **{
        f"pg_statio_{which}_tables": _with_counts(rows, _BLOCK_COUNTS, _INDEX_BLOCK_COUNTS)
        for which, rows in _TABLES.items()
    },
    **{
        f"pg_statio_{which}_indexes": _with_counts(rows, _INDEX_BLOCK_COUNTS)
        for which, rows in _INDEXES.items()
    },
    **{
        f"pg_statio_{which}_sequences": _with_counts(rows, ("blks_read", "blks_hit"))
        for which, rows in _SEQUENCES.items()
    },
    "pg_stat_archiver": _of_server(("archived_count", "failed_count")),
    "pg_stat_bgwriter": _of_server(("buffers_clean", "maxwritten_clean", "buffers_alloc")),
    "pg_stat_checkpointer": _of_server(
        ("num_timed", "num_requested", "num_done", "restartpoints_timed", "restartpoints_req",
         "restartpoints_done", "buffers_written", "slru_written"),
        ("write_time", "sync_time"),
    ),
    "pg_stat_database": _databases,
    "pg_stat_database_conflicts": _database_conflicts,
    "pg_stat_recovery_prefetch": _of_server(
        ("prefetch", "hit", "skip_init", "skip_new", "skip_fpw", "skip_rep", "wal_distance",
         "block_distance", "io_depth")
    ),
    "pg_stat_slru": _slru,
    "pg_stat_wal": _of_server(("wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full")),
}  # fmt: skip
