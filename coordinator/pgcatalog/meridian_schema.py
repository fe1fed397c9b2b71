"""Rows of schema `meridian` (timelines, frontiers, read holds ..), as observed from the cores.

    Coordination.observe() ─▶ rows per relation ─▶ ShardView, an input like any other

All relations of one statement come from one observation, so they are consistent with each other.

INVARIANTS
  M1  a relation's rows have the types of its columns in `sql/catalog/meridian_schema.py`.
  M2  every view has a source of its own, so that no engine takes it for an earlier one (B1 of
      `storage/batch.py`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.core.observation import ObservedShard, ObservedTimeline
from coordinator.core.sources.observed import ObservedSource
from sql.binder.ddl.storage_options import own_storage_options
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import (
    CONFLICT_STATISTICS,
    CUTS,
    FRONTIERS,
    READ_HOLDS,
    SOURCE_TABLES,
    SOURCES,
    SUBSCRIPTIONS,
    TABLE_OPTIONS,
    TIMELINES,
    TRANSACTIONS,
)
from sql.types.sql_type import Interval, Value, quoted_name
from storage.batch import InlineSlice, ShardView
from storage.types import ShardId, Timestamp, inline_source

_TIMESTAMPTZ_MAX: Final = 253_402_300_800_000_000
"""The year 10000: timestamps beyond it are not shown as a time of day."""

_views = count(1)

Row = tuple[Value, ...]


def relation_view(relation: Table, observed: Sequence[ObservedTimeline]) -> ShardView:
    """The relation as a view with rows in memory."""
    return rows_as_view(relation, list(_ROWS[relation.oid](observed)))


def _arrow_values(values: Sequence[Value], type_: pa.DataType) -> Sequence[object]:
    """Values as Arrow takes them: an interval as its three fields."""
    if not pa.types.is_struct(type_):
        return values
    return [asdict(value) if isinstance(value, Interval) else value for value in values]


def rows_as_view(relation: Table, rows: Sequence[Row]) -> ShardView:
    """Rows as a view (M1, M2)."""
    schema = table_schema(relation.columns)
    columns = [
        pa.array(_arrow_values([row[index] for row in rows], field.type), field.type)
        for index, field in enumerate(schema)
    ]
    return table_as_view(relation, pa.Table.from_arrays(columns, schema=schema))


def table_as_view(relation: Table, table: pa.Table) -> ShardView:
    """Rows of the relation's schema as a view (M2)."""
    number = next(_views)
    part = InlineSlice(inline_source(Timestamp(number)), table, BitMap64())
    return ShardView(ShardId(relation.shard), table.schema, f"observed-{number}", (), (part,))


def _timelines(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line in observed:
        yield (
            line.timeline.name,
            "manual" if line.timeline.manual else "system",
            line.since,
            line.read_ts,
            line.upper,
            # A timeline without a clock has no ceiling.
            None if line.timeline.manual else line.ceiling,
            _time(line, line.since),
            _time(line, line.read_ts),
            None if line.timeline.manual else line.clock.jumps,
            None if line.timeline.manual else line.clock.doubted,
        )


def _frontiers(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line, shard in _shards(observed):
        state = shard.state
        yield (
            shard.table.schema,
            shard.table.name,
            line.timeline.name,
            shard.since,
            line.upper,
            state.cut,
            _time(line, shard.since),
            _time(line, line.upper),
            _time(line, state.cut),
            state.tail_rows,
            state.tail_bytes,
            state.fenced,
            None if state.fence is None else state.fence.value,
        )


def _read_holds(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line in observed:
        for hold in line.holds:
            yield (
                hold.kind,
                hold.name,
                hold.owner,
                hold.txn,
                line.timeline.name,
                hold.ts,
                _time(line, hold.ts),
            )


def _subscriptions(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line in observed:
        for known in line.subscriptions:
            yield (
                known.id,
                known.owner,
                known.tables[0].schema,
                ", ".join(table.name for table in known.tables),
                line.timeline.name,
                "behind" if known.is_behind else "waiting",
                known.as_of,
                known.up_to,
                known.position,
                _time(line, known.as_of),
                _time(line, known.position),
            )


def _sources(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line in observed:
        for source in line.sources:
            yield (
                source.definition.schema,
                source.definition.name,
                source.definition.connector,
                line.timeline.name,
                source.state,
                _time(line, source.since),
                source.attempt,
                source.waiting or None,
                source.code or None,
                source.reason or None,
                source.hint or None,
                _position(source.position),
                _position(source.acknowledged),
                source.committed,
                _time(line, source.committed),
                sum(source.rows.values()),
                source.errors,
                source.connection or None,
                source.place or None,
                _position(source.newest),
                _lag_bytes(source),
            )


def _lag_bytes(source: ObservedSource) -> int | None:
    """How much of upstream's log has not been read, when it was looked at last."""
    if "lsn" not in source.newest or source.position is None:
        return None
    # Of an idle source only what is acknowledged moves.
    read = max(source.position["lsn"], source.acknowledged.get("lsn", 0))
    return max(0, source.newest["lsn"] - read)


def _position(position: Mapping[str, int] | None) -> str | None:
    return json.dumps({**position}) if position else None


def _source_tables(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line in observed:
        for source in line.sources:
            for table in source.tables:
                assert table.feed is not None, "it is fed"
                yield (
                    source.definition.schema,
                    source.definition.name,
                    table.schema,
                    table.name,
                    table.feed.reference,
                    source.rows.get(table.oid, 0),
                    _time(line, source.loaded.get(table.oid)),
                )


def _transactions(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line in observed:
        for txn in line.transactions:
            yield (
                txn.id,
                txn.owner,
                line.timeline.name,
                "committing" if txn.committing else "open",
                txn.isolation,
                txn.read_only,
                txn.read_ts,
                _time(line, txn.read_ts),
                ", ".join(txn.tables_read),
                ", ".join(txn.tables_written),
                txn.bytes_written,
            )


def _cuts(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line, shard in _shards(observed):
        for version in shard.state.versions:
            files = list(version.files.values())
            yield (
                line.timeline.name,
                version.cut,
                _time(line, version.cut),
                shard.table.schema,
                shard.table.name,
                shard.state.shard,
                version.number,
                len(files),
                sum(live.file.rows - len(live.deleted) for live in files),
                sum(live.file.size_bytes for live in files),
            )


def _conflicts(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    for line in observed:
        found = line.conflicts
        told = (found.by_predicate, found.by_table, found.by_row, found.by_key)
        yield (line.timeline.name, found.validated, *told, found.avoided)


def _table_options(observed: Sequence[ObservedTimeline]) -> Iterator[Row]:
    """What pg_class does not tell: PostgreSQL would refuse a dump with parameters of ours."""
    for line, shard in _shards(observed):
        table = shard.table
        if options := own_storage_options(table):
            shown = ", ".join([f"{name} = {_literal(value)}" for name, value in options])
            name = f"{quoted_name(table.schema)}.{quoted_name(table.name)}"
            definition = f"ALTER TABLE {name} SET ({shown})"
            yield (table.schema, table.name, line.timeline.name, shown, definition)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _shards(
    observed: Sequence[ObservedTimeline],
) -> Iterator[tuple[ObservedTimeline, ObservedShard]]:
    return ((line, shard) for line in observed for shard in line.shards)


def _time(line: ObservedTimeline, ts: Timestamp | None) -> int | None:
    """A timestamp as a time of day, where it is one."""
    if ts is None or line.timeline.manual or not 0 <= ts < _TIMESTAMPTZ_MAX:
        return None
    return ts


_ROWS: Final[dict[int, Callable[[Sequence[ObservedTimeline]], Iterator[Row]]]] = {
    TIMELINES.oid: _timelines,
    FRONTIERS.oid: _frontiers,
    READ_HOLDS.oid: _read_holds,
    TRANSACTIONS.oid: _transactions,
    CUTS.oid: _cuts,
    CONFLICT_STATISTICS.oid: _conflicts,
    TABLE_OPTIONS.oid: _table_options,
    SUBSCRIPTIONS.oid: _subscriptions,
    SOURCES.oid: _sources,
    SOURCE_TABLES.oid: _source_tables,
}
