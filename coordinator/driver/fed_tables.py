"""Tables that a source feeds, as its reader knows them.

    Table, SourceRecord ─▶ UpstreamTable, SourceProgress ─▶ SourceReader

Not here: the rows (`fed_rows.py`), and whoever reads (`sources.py`).
"""

import json
from collections.abc import Sequence
from typing import cast

from coordinator.core.sources.records import SourceRecord
from ingest.reader import RecordPlace, SourceProgress, UpstreamColumn, UpstreamTable
from sql.catalog.catalog import Table
from sql.catalog.objects import SourceDefinition
from sql.catalog.sources import upstream_columns


def fed_tables(tables: Sequence[Table]) -> list[Table]:
    """Without the table of errors."""
    return [table for table in tables if table.feed is not None and table.feed.reference]


def progress_of(
    source: SourceDefinition, record: SourceRecord, tables: Sequence[Table]
) -> SourceProgress:
    """Where its reader goes on."""
    later = {
        reference_of(table): record.later[table.oid]
        for table in fed_tables(tables)
        if table.oid in record.later
    }
    skip = tuple([cast("RecordPlace", json.loads(place)) for place in source.skip])
    return SourceProgress(record.position, record.identity, later, skip)


def reference_of(table: Table) -> str:
    """The name of a fed table upstream."""
    assert table.feed is not None, "it is fed"
    return table.feed.reference


def upstream_table(source: SourceDefinition, table: Table) -> UpstreamTable:
    """What is read of it."""
    assert table.feed is not None, "it is fed"
    names = zip(upstream_columns(table), table.columns, strict=True)
    columns = [UpstreamColumn(name, c.type, c.not_null) for name, c in names]
    stops = dict(source.options).get("schema_changes") == "stop"
    only = table.feed.seen if stops else ()
    return UpstreamTable(reference_of(table), tuple(columns), table.feed.key, only=only)
