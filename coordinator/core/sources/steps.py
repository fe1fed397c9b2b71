"""Move sources on: start, pull, prepare, commit, acknowledge, and what goes wrong.

Functions over the core's state; the invariants are those of the package. `advance_sources` does
what has become possible, whatever message came; the others handle one completion each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

from coordinator.core.effects import Effect
from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveObject,
    RemoveTable,
)
from coordinator.core.messages.replies import Refused, RefusedReason
from coordinator.core.messages.requests import AwaitLoad, AwaitUpstreams, LeaveUpstreams
from coordinator.core.sources.aside import (
    advance_copy,
    copy_ended,
    left_before,
    reached_later,
    tables_read,
)
from coordinator.core.sources.bad_records import CountedErrors, refused_errors, stopped_by
from coordinator.core.sources.batches import PendingBatch, counted_rows
from coordinator.core.sources.completions import (
    AsideCopied,
    AsideFailed,
    AsideMessage,
    BatchPrepared,
    PartPrepared,
    SourceAcknowledged,
    SourceFailed,
    SourceMessage,
    SourcePulled,
    SourceStarted,
    TablesCopied,
    UpstreamReleased,
    UpstreamReported,
)
from coordinator.core.sources.effects import (
    AcknowledgeSource,
    CopyTables,
    PrepareBatch,
    PullSource,
    StartSource,
    StopSource,
)
from coordinator.core.sources.leftovers import left_by
from coordinator.core.sources.loading import await_load, tell_awaiting
from coordinator.core.sources.recency import answer_waits, await_upstreams, upstream_reported
from coordinator.core.sources.records import NEVER, Leftover, SourceRecord, is_behind
from coordinator.core.sources.running import BatchStage, RunningSource, SourceState
from coordinator.core.state import CoreState
from coordinator.core.transaction_buffers import removal
from ingest.reader import ChangeKind, SourceBatch
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from sql.catalog.sources import connection_by_oid, sources_of, tables_of_source
from storage.batch import ShardView, WriteBatch
from storage.known_rows import OldRows
from storage.types import ShardId, Timestamp

NOTHING_REPLACED: Final[Mapping[ShardId, Sequence[OldRows]]] = {}

BATCH_BYTES_MAX: Final = 1 << 20
"""Of one batch. Larger: clients that commit beside it wait longer. Smaller: more commits."""


def advance_sources(core: CoreState, now: Timestamp) -> list[Effect]:
    """Do what has become possible: look at a changed catalog, try again, pull."""
    sources = core.sources
    if not (sources.changed or len(sources) or len(sources.leftovers) or sources.waits):
        return []
    effects: list[Effect] = []
    if sources.changed:
        sources.changed = False
        effects += _follow_catalog(core, now)
    if core.stopping is None:
        for source in sources:
            effects += advance_copy(core, source, now)
            effects += _go_on(core, source, now)
        effects += sources.leftovers.due(now)
    if sources.waits:
        effects += answer_waits(core, now)
    return effects


def sources_altered(core: CoreState, changes: Sequence[CatalogChange]) -> None:
    """DDL was committed: it may be about sources or what they feed."""
    if core.sources.runs and any(_concerns_sources(core, change) for change in changes):
        core.sources.changed = True
        for leftover in left_by(core.catalog.current, changes):
            core.sources.leftovers.add(leftover)


def _concerns_sources(core: CoreState, change: CatalogChange) -> bool:
    match change:
        case PutObject(object=thing) | RemoveObject(object=thing):
            return isinstance(thing, SourceDefinition | ConnectionDefinition)
        case PutTable(table=table) | RemoveTable(table=table):
            # A table that was detached has no feed any more.
            return bool(len(core.sources)) or table.feed is not None
        case _:
            return False


def stop_sources(core: CoreState) -> list[Effect]:
    """The server stops: nothing is pulled any more. What is in the queue still commits."""
    for source in core.sources:
        if source.stage is not BatchStage.COMMITTING:
            _begin_attempt(core, source)
    return [StopSource(source.definition.oid) for source in core.sources]


# --- the catalog -------------------------------------------------------------------------------


def _follow_catalog(core: CoreState, now: Timestamp) -> list[Effect]:
    """Bring the sources to what the catalog says."""
    catalog, sources = core.catalog.current, core.sources
    effects: list[Effect] = []
    there = {definition.oid: definition for definition in sources_of(catalog)}
    for source in sources:
        if source.definition.oid not in there:
            core.holds.release(source.holder)
            sources.remove(source.definition.oid)
            effects += tell_awaiting(source)
            effects.append(StopSource(source.definition.oid))
    for oid, definition in there.items():
        fed, known = tables_of_source(catalog, oid), sources.get(oid)
        connection = connection_by_oid(catalog, definition.connection)
        if known is None:
            known = sources.add(definition, connection, fed, now)
        elif (known.definition, known.connection, known.fed) == (definition, connection, fed):
            continue
        known.definition, known.connection, known.fed = definition, connection, fed
        known.failures, known.retry_at, known.counted = 0, now, CountedErrors()
        known.aside.begin_attempt()
        effects += _redefined(core, known, now) + tell_awaiting(known)
    return effects


def _redefined(core: CoreState, source: RunningSource, now: Timestamp) -> list[Effect]:
    """Another attempt with these definitions, or none."""
    _begin_attempt(core, source)
    if source.definition.paused or not source.tables:
        source.enter(SourceState.PAUSED if source.definition.paused else SourceState.IDLE, now)
        return [StopSource(source.definition.oid)]
    source.enter(SourceState.STARTING, now)
    return [_start(source)]


def _begin_attempt(core: CoreState, source: RunningSource) -> None:
    core.holds.release(source.holder)
    source.begin_attempt()


def _start(source: RunningSource) -> Effect:
    record, definition = source.record, source.definition
    if record is not None:
        # Another one may be on its way (`aside.py`).
        definition = replace(definition, generation=record.generation)
    return StartSource(definition, source.connection, source.attempt, record, tables_read(source))


# --- going on ----------------------------------------------------------------------------------


def _go_on(core: CoreState, source: RunningSource, now: Timestamp) -> list[Effect]:
    if source.stage is BatchStage.COMMITTING:
        # Also of a source that stands: a copy commits, and decides from where it is read.
        return []
    if source.state is SourceState.STALLED and now >= source.retry_at:
        _begin_attempt(core, source)
        code, reason, hint = source.code, source.reason, source.hint
        source.enter(SourceState.STARTING, now)
        source.code, source.reason, source.hint = code, reason, hint
        return [_start(source)]
    if source.state is not SourceState.RUNNING or source.stage is not BatchStage.NONE:
        return []
    source.waiting = _waits_for(core, source)
    if source.waiting:
        return []
    source.stage = BatchStage.PULLING
    return [PullSource(source.definition.oid, source.attempt, BATCH_BYTES_MAX)]


def _waits_for(core: CoreState, source: RunningSource) -> str:
    """What a source waits for before it brings more: it would only fill memory (F10)."""
    shards = (core.shards.get(ShardId(table.shard)) for table in source.fed)
    if sum(s.tail_bytes for s in shards if s is not None) > 2 * core.settings.cut_bytes_max:
        return "flush"
    if len(core.groups) > core.settings.queue_max // 2:
        return "commits"
    return ""


def step_sources(
    core: CoreState,
    message: SourceMessage
    | AsideMessage
    | UpstreamReleased
    | AwaitLoad
    | AwaitUpstreams
    | LeaveUpstreams,
    now: Timestamp,
) -> list[Effect]:
    """Something about a source, or somebody who waits for one."""
    match message:
        case AwaitLoad():
            return await_load(core, message)
        case AwaitUpstreams():
            return await_upstreams(core, message, now)
        case LeaveUpstreams(request=request):
            core.sources.waits.pop(request, None)
            return []
        case UpstreamReleased(name=name, done=done):
            core.sources.leftovers.released(name, done=done, now=now)
            return []
        case AsideCopied() | AsideFailed():
            return _aside_ended(core, message, now)
        case _:
            return source_reported(core, message, now)


def source_reported(core: CoreState, message: SourceMessage, now: Timestamp) -> list[Effect]:
    """An effect of a source has ended; dropped if it is an older attempt's."""
    source = core.sources.get(message.source)
    if source is None or message.attempt != source.attempt:
        return []
    match message:
        case SourceStarted():
            return _started(core, source, message, now)
        case TablesCopied():
            return _copied(core, source, message, now)
        case SourcePulled():
            return _pulled(core, source, message, now)
        case BatchPrepared():
            return _prepared(core, source, message, now)
        case PartPrepared():
            return _part_prepared(core, source, message, now)
        case SourceFailed():
            return _failed(core, source, message, now)
        case SourceAcknowledged():
            source.acknowledging = None
            if not message.done:
                return []  # the next one tells more
            source.acknowledged = message.upto
            return _acknowledge(source)
        case UpstreamReported():
            upstream_reported(core, message, now)
            return []
        case _:
            assert_never(message)


def _aside_ended(core: CoreState, message: AsideMessage, now: Timestamp) -> list[Effect]:
    source = core.sources.get(message.source)
    if source is None:
        return []
    is_current = message.attempt == source.aside.attempt
    if is_current and isinstance(message, AsideCopied):
        no = refused_errors(source.definition, message.attempt, message.errors, source.counted, now)
        if no is not None:
            message = AsideFailed(no.source, no.attempt, no.code, no.reason, no.hint, broken=True)
    effects = copy_ended(core, source, message, now)
    if is_current and isinstance(message, AsideFailed) and message.broken:
        oid, attempt = source.definition.oid, source.attempt
        failed = SourceFailed(oid, attempt, message.code, message.reason, message.hint, broken=True)
        effects += _failed(core, source, failed, now)
    return effects


def _started(
    core: CoreState, source: RunningSource, message: SourceStarted, now: Timestamp
) -> list[Effect]:
    if source.record is None:
        source.enter(SourceState.SNAPSHOTTING, now)
        source.staging = core.sources.next_staging()
        return [CopyTables(source.definition, source.attempt, source.fed, now)]
    source.enter(SourceState.RUNNING, now)
    source.identity = message.identity
    source.read_to = source.record.position
    return _acknowledge(source)


def _copied(
    core: CoreState, source: RunningSource, message: TablesCopied, now: Timestamp
) -> list[Effect]:
    """Where it begins is durable, with all rows up to there, before anything is read behind it."""
    assert source.record is None, "F1: who has a position has its rows"
    failed = refused_errors(source.definition, source.attempt, message.errors, source.counted, now)
    if failed is not None:
        return _failed(core, source, failed, now)
    record = SourceRecord(
        message.position,
        identity=message.identity,
        generation=source.definition.generation,
        rows=counted_rows(source.fed, {}, message.writes),
        errors=message.errors,
        loaded={table.oid: NEVER for table in source.tables},
    )
    return _enqueue(core, source, record, message.writes, leaves=left_before(source))


def _pulled(
    core: CoreState, source: RunningSource, message: SourcePulled, now: Timestamp
) -> list[Effect]:
    batch = message.batch
    source.newest = batch.newest or source.newest
    if not batch.ends and not (batch.changes or batch.errors):
        source.stage = BatchStage.NONE
        return []
    if not (batch.changes or batch.errors or source.has_parts):
        assert source.record is not None, "F1: who pulls has a position"
        there = reached_later(replace(source.record, position=batch.upto))
        if there.later != source.record.later:
            # Tables that have joined are loaded with this position.
            return _enqueue(core, source, there, {})
        source.stage = BatchStage.NONE
        # Nothing of ours lies up to there, and all before is committed: batches do not overlap.
        source.read_to = batch.upto
        return _acknowledge(source)
    stopped = stopped_by(source.definition, source.attempt, batch.errors)
    if stopped is not None:
        return _failed(core, source, stopped, now)
    goes_on, source.stage = source.has_parts, BatchStage.PREPARING
    source.pulled_errors = len(batch.errors) + (source.pulled_errors if goes_on else 0)
    if not goes_on:
        source.staging = core.sources.next_staging()
    return [
        PrepareBatch(
            source.definition,
            source.attempt,
            batch,
            source.fed,
            {} if goes_on else _views(core, source, batch),
            now,
            goes_on,
        )
    ]


def _views(
    core: CoreState, source: RunningSource, batch: SourceBatch
) -> Mapping[ShardId, ShardView]:
    """The tables whose rows the batch changes, as they are: the batch before is readable (F5). Of
    a batch that goes on all tables: nobody knows what changes behind it.
    """
    ts = core.oracle.read_ts()
    views: dict[ShardId, ShardView] = {}
    for table in source.tables:
        assert table.feed is not None, "it is fed"
        changes = batch.changes.get(table.feed.reference, ())
        if not batch.ends or any(change.kind is not ChangeKind.INSERT for change in changes):
            state = core.shards[ShardId(table.shard)]
            schema = core.schema_of(table) if state.definitions else None
            views[state.shard] = state.view(ts, schema=schema)
    if views:
        core.holds.acquire(source.holder, ts)
    return views


def _refused_errors(
    source: RunningSource, message: BatchPrepared | PartPrepared, now: Timestamp
) -> SourceFailed | None:
    return refused_errors(
        source.definition, source.attempt, message.errors, source.counted, now,
        known=source.pulled_errors,
    )  # fmt: skip


def _part_prepared(
    core: CoreState, source: RunningSource, message: PartPrepared, now: Timestamp
) -> list[Effect]:
    """What follows is pulled; nothing of it is committed before its end (F2)."""
    failed = _refused_errors(source, message, now)
    if failed is not None:
        return _failed(core, source, failed, now)
    source.has_parts, source.stage = True, BatchStage.NONE
    return []


def _prepared(
    core: CoreState, source: RunningSource, message: BatchPrepared, now: Timestamp
) -> list[Effect]:
    failed = _refused_errors(source, message, now)
    if failed is not None:
        return _failed(core, source, failed, now)
    assert source.record is not None, "F1: who pulls has a position"
    record = replace(
        source.record,
        position=message.upto,
        identity=source.identity or source.record.identity,
        rows=counted_rows(source.fed, source.record.rows, message.writes),
        errors=source.record.errors + message.errors,
    )
    assert is_behind(source.record.position, message.upto), "F4: a position only advances"
    return _enqueue(core, source, reached_later(record), message.writes, message.replaced)


def _enqueue(
    core: CoreState,
    source: RunningSource,
    record: SourceRecord,
    writes: Mapping[ShardId, WriteBatch],
    replaced: Mapping[ShardId, Sequence[OldRows]] = NOTHING_REPLACED,
    leaves: tuple[Leftover, ...] = (),
) -> list[Effect]:
    """Into the queue; the group begins in the same step, if it can (`_advance` of the core)."""
    source.stage = BatchStage.COMMITTING
    ticket = core.leases.ticket()
    core.groups.enqueue(
        PendingBatch(
            source.definition, source.fed, source.attempt, writes, record, ticket, replaced, leaves
        )
    )
    return []


def _acknowledge(source: RunningSource) -> list[Effect]:
    """Tell upstream what it has not heard; one at a time, since the newest covers all (F3)."""
    if source.acknowledging is not None or not is_behind(source.acknowledged, source.read_to):
        return []
    source.acknowledging = source.read_to
    return [AcknowledgeSource(source.definition.oid, source.attempt, source.read_to)]


def _failed(
    core: CoreState, source: RunningSource, message: SourceFailed, now: Timestamp
) -> list[Effect]:
    broken = message.broken
    _begin_attempt(core, source)
    source.enter(SourceState.BROKEN if broken else SourceState.STALLED, now)
    source.code, source.reason, source.hint = message.code, message.reason, message.hint
    if source.record is not None:
        # What is copied at first has no order in which something could be skipped.
        source.place = message.place
    if broken:
        return [StopSource(source.definition.oid), *tell_awaiting(source)]
    source.retry_after(now, core.settings.source_retry_max_us)
    return []


# --- the fate of a batch -----------------------------------------------------------------------


def batch_committed(
    core: CoreState, batch: PendingBatch, ts: Timestamp, now: Timestamp
) -> list[Effect]:
    """It is durable, and the oracle has applied its timestamp (F3)."""
    source = core.sources.get(batch.definition.oid)
    assert source is not None, "F5: what drops a source is in no group with its batch"
    before = 0 if source.record is None else source.record.errors
    source.counted.add(batch.record.errors - before, now)
    source.record = batch.record.at(ts)
    effects = tell_awaiting(source)
    for leftover in batch.leaves:
        core.sources.leftovers.add(leftover)
    if batch.attempt != source.attempt:
        return effects  # the server stops, or definitions change in the same step
    core.holds.release(source.holder)
    source.end_batch()
    source.failures = 0
    if batch.restarts:
        source.aside.begin_attempt()
        source.acknowledged = {}
        return effects + _redefined(core, source, now)
    source.enter(SourceState.RUNNING, now)
    source.read_to = batch.record.position
    return effects + _acknowledge(source)


def batch_refused(
    core: CoreState, batch: PendingBatch, refused: Refused, now: Timestamp
) -> list[Effect]:
    """It was not written: it is read again, or a person has to mend something."""
    effects = removal(batch.staged_files())
    source = core.sources.get(batch.definition.oid)
    if source is None or batch.attempt != source.attempt:
        return effects
    if batch.restarts:
        source.aside.begin_attempt()
    stale = refused.reason is RefusedReason.STALE
    # Nobody writes to a fenced table before a person has looked at it.
    broken, hint = refused.table is not None, refused.hint or ""
    failed = SourceFailed(
        batch.definition.oid, batch.attempt, refused.sqlstate, refused.message, hint, broken=broken
    )
    effects += _failed(core, source, failed, now)
    if stale:
        # Who has changed a definition is committed, or is about to be.
        source.failures, source.retry_at = 0, now
    return effects
