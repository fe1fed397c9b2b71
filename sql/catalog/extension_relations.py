"""The views of extensions: pg_stat_statements and pg_stat_statements_info, as of version 1.12.

They are there while their extension is, in its schema, and show the server's present state.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import ExtensionDefinition
from sql.catalog.system_catalogs import PG_CATALOG
from sql.types.sql_type import BOOL, FLOAT8, INT8, OID, TEXT, TIMESTAMPTZ, SqlType, plain_type

PG_STAT_STATEMENTS: Final = "pg_stat_statements"
PG_STAT_STATEMENTS_INFO: Final = "pg_stat_statements_info"

_FIRST_OID: Final = 15_100
_NUMERIC: Final = plain_type("numeric")


def _times(kind: str) -> dict[str, SqlType]:
    names = ("total", "min", "max", "mean", "stddev")
    return {f"{name}_{kind}_time": FLOAT8 for name in names}


def _view(number: int, name: str, /, **columns: SqlType) -> Table:
    made = tuple(Column(column, type_) for column, type_ in columns.items())
    shard = f"{PG_CATALOG}.{name}"
    return Table(_FIRST_OID + number, "", name, shard, made, timeline="")


_VIEWS: Final = {
    PG_STAT_STATEMENTS: (
        _view(
            0, PG_STAT_STATEMENTS,
            userid=OID, dbid=OID, toplevel=BOOL, queryid=INT8, query=TEXT, plans=INT8,
            **_times("plan"), calls=INT8, **_times("exec"), rows=INT8,
            shared_blks_hit=INT8, shared_blks_read=INT8, shared_blks_dirtied=INT8,
            shared_blks_written=INT8, local_blks_hit=INT8, local_blks_read=INT8,
            local_blks_dirtied=INT8, local_blks_written=INT8, temp_blks_read=INT8,
            temp_blks_written=INT8, shared_blk_read_time=FLOAT8, shared_blk_write_time=FLOAT8,
            local_blk_read_time=FLOAT8, local_blk_write_time=FLOAT8, temp_blk_read_time=FLOAT8,
            temp_blk_write_time=FLOAT8, wal_records=INT8, wal_fpi=INT8, wal_bytes=_NUMERIC,
            wal_buffers_full=INT8, jit_functions=INT8, jit_generation_time=FLOAT8,
            jit_inlining_count=INT8, jit_inlining_time=FLOAT8, jit_optimization_count=INT8,
            jit_optimization_time=FLOAT8, jit_emission_count=INT8, jit_emission_time=FLOAT8,
            jit_deform_count=INT8, jit_deform_time=FLOAT8, parallel_workers_to_launch=INT8,
            parallel_workers_launched=INT8, stats_since=TIMESTAMPTZ,
            minmax_stats_since=TIMESTAMPTZ,
        ),
        _view(1, PG_STAT_STATEMENTS_INFO, dealloc=INT8, stats_reset=TIMESTAMPTZ),
    )
}  # fmt: skip


def all_extension_views() -> Iterator[Table]:
    """The views of all extensions; they are in no schema."""
    for views in _VIEWS.values():
        yield from views


def views_of_extension(found: ExtensionDefinition) -> Iterator[Table]:
    """The views that came with an extension, in the schema where it is."""
    return (replace(view, schema=found.schema) for view in _VIEWS.get(found.name, ()))


def extension_views(catalog: Catalog) -> Iterator[Table]:
    """Those of all extensions of a catalog."""
    for found in catalog.objects.values():
        if isinstance(found, ExtensionDefinition):
            yield from views_of_extension(found)


def is_extension_view(table: Table) -> bool:
    """Whether a relation is one of these."""
    return table.shard in _SHARDS


def extension_view(
    catalog: Catalog, schema: str, name: str
) -> tuple[Table, ExtensionDefinition] | None:
    """The view of that name, and its extension."""
    if name not in _NAMES:
        return None
    for found in catalog.objects.values():
        if isinstance(found, ExtensionDefinition) and found.schema == schema:
            for view in views_of_extension(found):
                if view.name == name:
                    return view, found
    return None


_NAMES: Final = frozenset(view.name for view in all_extension_views())
_SHARDS: Final = frozenset(view.shard for view in all_extension_views())
