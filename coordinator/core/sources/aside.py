"""Copies beside a source that is read: of tables that join it later, and of all for RESNAPSHOT.

    CopyAside ─▶ AsideCopied(position) ─▶ a batch of its own, between two of the source
                                          ─▶ the source starts again, with what it has now

What is copied is of a position of its own. A joining table leaves out what the source reads up to
there, and is loaded when the source has reached it. A RESNAPSHOT begins another generation: in one
commit every row of its tables goes, and the copied ones come.

INVARIANTS
  J1  what stands upstream for the source goes on being read and acknowledged if making a slot takes
      long: it waits for transactions there, which may wait for us.
  J2  the commit of a copy is between two batches, so nobody else writes to the tables meanwhile.
  J3  the generation before is left behind in the commit of the new one (F8).
  J4  a copy is not of a position before one that was read to: it would lack what was committed in
      between. Such a copy is made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.core.effects import Effect
from coordinator.core.sources.batches import PendingBatch, counted_rows
from coordinator.core.sources.completions import AsideCopied, AsideMessage
from coordinator.core.sources.effects import CopyAside
from coordinator.core.sources.records import NEVER, Leftover, SourceRecord, is_behind
from coordinator.core.sources.running import BatchStage, RunningSource, SourceState
from coordinator.core.state import CoreState
from sql.catalog.catalog import Table
from sql.catalog.sources import has_snapshot
from storage.batch import WriteBatch, all_rows
from storage.types import ShardId, Timestamp

_STILL = (SourceState.IDLE, SourceState.PAUSED)


@dataclass(frozen=True, slots=True)
class WantedCopy:
    """What is to be copied: the tables, and the generation, if that is a new one."""

    tables: tuple[Table, ...]
    generation: int | None


def wanted_copy(source: RunningSource) -> WantedCopy | None:
    """What a source needs beside what it reads."""
    record = source.record
    if record is None or not has_snapshot(source.definition):
        return None
    if source.definition.generation > record.generation:
        return WantedCopy(source.tables, source.definition.generation)
    new = tuple([table for table in source.tables if not _is_read(record, table)])
    return WantedCopy(new, None) if new else None


def tables_read(source: RunningSource) -> tuple[Table, ...]:
    """What the stream is read for, with the table of errors: all but what joins it."""
    record = source.record
    if record is None or not has_snapshot(source.definition):
        return source.fed
    return tuple([table for table in source.fed if _is_read(record, table)])


def _is_read(record: SourceRecord, table: Table) -> bool:
    is_of_errors = table.feed is not None and not table.feed.reference
    return is_of_errors or table.oid in record.loaded or table.oid in record.later


def advance_copy(core: CoreState, source: RunningSource, now: Timestamp) -> list[Effect]:
    """Ask for a copy that is wanted, or commit the one that was made (J2)."""
    if source.state in _STILL:
        return []
    wanted = wanted_copy(source)
    if wanted is None:
        return []
    aside = source.aside
    if aside.copied is not None:
        is_read = source.state is SourceState.RUNNING or wanted.generation is None
        if is_read and is_behind(aside.copied.position, source.read_to):
            # J4
            longest_us = core.settings.source_retry_max_us
            aside.fail("upstream went on while a copy was made", now, longest_us)
            return []
        if source.stage in (BatchStage.NONE, BatchStage.PULLING):
            # A batch that is pulled meanwhile is of an attempt that ends with this commit.
            return _commit(core, source, wanted, aside.copied)
        return []
    is_due = not aside.asked and now >= aside.retry_at
    if not is_due or (wanted.generation is None and source.state is not SourceState.RUNNING):
        return []
    aside.asked, aside.staging = True, core.sources.next_staging()
    definition = source.definition
    if wanted.generation is None:
        assert source.record is not None, "who is joined has been read"
        definition = replace(definition, generation=source.record.generation)
    return [
        CopyAside(
            definition,
            source.connection,
            aside.attempt,
            wanted.tables,
            tuple([t for t in source.fed if t not in source.tables]),
            now,
            joins=wanted.generation is None,
        )
    ]


def copy_ended(
    core: CoreState, source: RunningSource, message: AsideMessage, now: Timestamp
) -> list[Effect]:
    """A copy was made, or could not be; that of an older attempt is dropped."""
    aside = source.aside
    if message.attempt != aside.attempt:
        return []
    if isinstance(message, AsideCopied):
        aside.copied, aside.failures, aside.reason = message, 0, ""
        return []
    aside.fail(message.reason, now, core.settings.source_retry_max_us)
    return []


def _commit(
    core: CoreState, source: RunningSource, wanted: WantedCopy, copied: AsideCopied
) -> list[Effect]:
    record = source.record
    assert record is not None, "F1: it was read before"
    core.holds.release(source.holder)
    writes = dict(copied.writes)
    leaves: tuple[Leftover, ...] = ()
    if wanted.generation is None:
        after = joined(source, record, copied, wanted.tables)
    else:
        writes |= _replacing(core, source, wanted.tables, writes)
        after = SourceRecord(
            copied.position,
            generation=wanted.generation,
            identity=copied.identity,
            rows=counted_rows(source.fed, record.rows, writes),
            errors=record.errors + copied.errors,
            loaded={t.oid: record.loaded.get(t.oid, NEVER) for t in source.tables},
        )
        leaves = left_before(source)
    # It is committed once: its fate asks for the next one.
    source.aside.copied = None
    source.begin_attempt()
    source.stage = BatchStage.COMMITTING
    core.groups.enqueue(
        PendingBatch(
            source.definition,
            source.fed,
            source.attempt,
            writes,
            after,
            core.leases.ticket(),
            leaves=leaves,
            restarts=True,
        )
    )
    return []


def left_before(source: RunningSource) -> tuple[Leftover, ...]:
    """What the first commit of a generation leaves behind: those before it, committed or not."""
    before = source.definition.generation - 1
    if not before:
        return ()
    return (Leftover(replace(source.definition, generation=before), source.connection),)


def joined(
    source: RunningSource,
    record: SourceRecord,
    copied: AsideCopied,
    tables: tuple[Table, ...],
) -> SourceRecord:
    """The record with tables that leave out what is read up to the copy's position."""
    return replace(
        record,
        # What the open reader knows stays: it is of the position that is read to. Tables that have
        # left are not in it, and may be others by now.
        identity={**copied.identity, **(source.identity or record.identity)},
        rows=counted_rows(source.fed, record.rows, copied.writes),
        errors=record.errors + copied.errors,
        later={**record.later, **{table.oid: copied.position for table in tables}},
    )


def reached_later(record: SourceRecord) -> SourceRecord:
    """The record, in which tables are loaded whose copies the position has reached."""
    there = [oid for oid, place in record.later.items() if not is_behind(record.position, place)]
    if not there:
        return record
    return replace(
        record,
        loaded={**record.loaded, **dict.fromkeys(there, NEVER)},
        later={oid: place for oid, place in record.later.items() if oid not in there},
    )


def _replacing(
    core: CoreState,
    source: RunningSource,
    tables: tuple[Table, ...],
    writes: Mapping[ShardId, WriteBatch],
) -> dict[ShardId, WriteBatch]:
    """The writes, with every row of the tables deleted."""
    ts = core.oracle.read_ts()
    core.holds.acquire(source.holder, ts)
    found: dict[ShardId, WriteBatch] = {}
    for table in tables:
        state = core.shards[ShardId(table.shard)]
        schema = core.schema_of(table) if state.definitions else None
        rows = writes.get(state.shard, WriteBatch())
        found[state.shard] = replace(rows, deletes=all_rows(state.view(ts, schema=schema)))
    return found
