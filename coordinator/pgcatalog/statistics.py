"""Rows of pg_stat_*: tables and indexes with zero counts, as in a server with reset statistics.

Nothing is counted: counts are zero and times are NULL, as where PostgreSQL has just lost its
statistics. A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.definitions import user_tables
from coordinator.pgcatalog.information_schema import NamedRow
from coordinator.pgcatalog.tables import is_shown_as_view
from sql.binder.state import BindContext
from sql.catalog.catalog import Table
from sql.catalog.oids import index_oid
from sql.catalog.system_catalogs import system_catalogs

_COUNTS: Final = (
    "seq_scan", "seq_tup_read", "n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd",
    "n_tup_newpage_upd", "n_live_tup", "n_dead_tup", "n_mod_since_analyze", "n_ins_since_vacuum",
    "vacuum_count", "autovacuum_count", "analyze_count", "autoanalyze_count",
)  # fmt: skip
_TIMES: Final = (
    "total_vacuum_time", "total_autovacuum_time", "total_analyze_time", "total_autoanalyze_time",
)  # fmt: skip
_Rows = Callable[[BindContext], Iterator[NamedRow]]


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


STATISTICS_ROWS: Final[Mapping[str, _Rows]] = {
    "pg_stat_all_tables": _all_tables,
    "pg_stat_sys_tables": _system_tables,
    "pg_stat_user_tables": _user_tables,
    "pg_stat_user_indexes": _user_indexes,
}
