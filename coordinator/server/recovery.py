"""Recover at start-up: take over the stash, read the committed state, build the core.

    fence ─▶ ceiling, catalog, txns shard ─▶ Delta logs of all shards ─▶ + batches ─▶ Core

INVARIANTS
  U1  the epoch is incremented before anything is read, and a timeline is served after the stash has
      confirmed, behind the last read, that it is still the highest. So nothing has changed between
      two reads: a start that stands still may be overtaken by a successor's commits.
  U2  timestamps begin at or above the old ceiling and the txns shard's upper.
  U3  a shard is its newest Delta version plus every batch of the txns shard after that version's
      cut. A batch that was applied but not tidied is not counted twice.
  U4  start-up changes nothing but the epoch and upper; a crash in the middle does no harm. The
      stash of an older program is first upgraded, in one transaction (`storage/upgrade.py`).
  U5 .. U8  the logs of the shards: `load_shards.py`.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final

import pyarrow as pa

from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes, next_oid
from coordinator.core.core import Core
from coordinator.core.locking.wait_graph import WaitGraph
from coordinator.core.messages.catalog_changes import CatalogChange, PutTable, RemoveTable
from coordinator.core.notifications.queue import NotificationQueue
from coordinator.core.read_holds import ReadHolds
from coordinator.core.settings import CoreSettings
from coordinator.core.sources.leftovers import LEFTOVER_RECORDS, decode_leftovers
from coordinator.core.sources.records import SOURCE_RECORDS, decode_source_records
from coordinator.core.state import RecoveredState
from coordinator.core.views.behind_marks import marks_of_history
from coordinator.driver.commit_effects import ORACLE, SYSTEM
from coordinator.driver.driver import Driver
from coordinator.driver.dropped_timelines import DroppedTimelines, dropped_timelines
from coordinator.driver.maintenance_effects import (
    NEXT_OID,
    OIDS,
    RunBlocking,
    decode_catalog_compaction,
    in_thread,
)
from coordinator.driver.notifications import SessionNotifications
from coordinator.driver.sources import SourceComponents, SourceEffects
from coordinator.driver.timelines import Timelines
from coordinator.driver.upstreams import Upstreams
from coordinator.server.load_shards import ShardLoader, ShardToLoad
from coordinator.server_counters import ServerCounters
from ingest.secrets import SecretRules
from sql.catalog.acl import FIRST_OID
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Table, Timeline
from storage.batch import WriteBatch
from storage.clock import Clock
from storage.delta.schema import reported_definition
from storage.errors import Corrupt, NotFound
from storage.object_store import ObjectStore
from storage.shard import TICKS_PER_MS, Definition, Fence, ShardState
from storage.stash import FORMAT, Delete, Stash
from storage.stash_part import StashPart
from storage.txns import Recovered as Found
from storage.txns import TxnsShard
from storage.types import FIRST_TIMESTAMP, Epoch, ShardId, Source, Timestamp, inline_ts, is_file
from storage.upgrade import upgrade
from storage.view_marks import BehindMark

log = logging.getLogger("meridian.recovery")

_TOLD_US: Final = 60_000_000
"""How far the clock may be from the newest timestamp at a start, and nothing is said of it."""

SchemaOf = Callable[[Table], pa.Schema]


@dataclass(frozen=True, slots=True)
class KnownShard:
    """A shard of the catalog's history. `dropped`: None while its table exists."""

    table: Table
    created: Timestamp
    dropped: Timestamp | None
    history: tuple[tuple[Timestamp, Table], ...] = ()
    """The table as it was defined, from when on; the first is of its creation, as far as known."""
    marks: tuple[BehindMark, ...] = ()
    """Of a materialized view: since when it is behind."""

    def definitions(self, schema_of: SchemaOf) -> tuple[Definition, ...]:
        """The fields that it has had; empty if there were never others."""
        if len(self.history) == 1 and self.history[0][1].version == 0:
            return ()
        found: list[Definition] = []
        for ts, table in self.history:
            schema = schema_of(table)
            if not found or reported_definition(found[-1].schema) != reported_definition(schema):
                found.append(Definition(ts, schema))
        altered = self.history[0][1].version > 0 if self.history else False
        return tuple(found) if altered or len(found) > 1 else ()


def known_shards(
    history: Sequence[tuple[Timestamp, Sequence[CatalogChange]]],
) -> dict[ShardId, KnownShard]:
    """Every shard that the catalog has ever had."""
    shards: dict[ShardId, KnownShard] = {}
    for ts, changes in history:
        for change in changes:
            match change:
                case PutTable(table=table):
                    known = shards.get(ShardId(table.shard))
                    created = ts if known is None else known.created
                    before = () if known is None else known.history
                    entry = KnownShard(table, created, None, (*before, (ts, table)))
                    shards[ShardId(table.shard)] = entry
                case RemoveTable(table=table):
                    known = shards[ShardId(table.shard)]
                    # What a transaction alters and drops was never altered for anybody.
                    before = tuple([(at, one) for at, one in known.history if at < ts])
                    table = before[-1][1] if before else table
                    entry = KnownShard(table, known.created, ts, before or known.history)
                    shards[ShardId(table.shard)] = entry
                case _:
                    pass
    marks = marks_of_history(history)
    return {s: replace(one, marks=marks[s]) if s in marks else one for s, one in shards.items()}


@asynccontextmanager
async def _leading(stash: Stash, epoch: Epoch) -> AsyncGenerator[None]:
    """Read what nobody else changes; if it looks damaged, ask whether that is still so (U7)."""
    try:
        yield
    except (Corrupt, NotFound):
        await stash.confirm(epoch)
        raise


@dataclass(frozen=True, slots=True)
class TimelineComponents:
    """The components that all timelines of a server share."""

    stash: Stash
    store: ObjectStore
    clock: Clock
    settings: CoreSettings
    schema_of: SchemaOf
    epoch: Epoch
    notifications: SessionNotifications
    sources: SourceComponents
    run_blocking: RunBlocking = in_thread
    counters: ServerCounters = field(default_factory=ServerCounters)
    waits: WaitGraph = field(default_factory=WaitGraph)
    """Who waits for whose locks, over all timelines."""


async def recover_timelines(
    stash: Stash,
    store: ObjectStore,
    clock: Clock,
    settings: CoreSettings,
    schema_of: SchemaOf,
    *,
    run_blocking: RunBlocking = in_thread,
    counters: ServerCounters | None = None,
    sources: SourceComponents | None = None,
) -> Timelines:
    """Take over and build the drivers of all timelines. Raises Corrupt (U5)."""
    await _check_belongs_together(stash, store)
    epoch = await stash.fence()
    # Whoever listened to the process before is gone with it.
    notifications = SessionNotifications(NotificationQueue(settings.notification_bytes_max))
    ground = TimelineComponents(
        stash, store, clock, settings, schema_of, epoch, notifications,
        sources or SourceComponents(Upstreams(SecretRules())), run_blocking,
        counters or ServerCounters(),
    )  # fmt: skip
    async with _leading(stash, epoch):
        history = decode_changes(await stash.scan(COLLECTION))
        await _upgrade(stash, epoch, history)
        system = await _recover_timeline(ground, SYSTEM_TIMELINE, history)
        catalog = system.core.catalog
        lines = [
            await open_timeline(ground, timeline, catalog)
            for timeline in catalog.timelines.values()
            if timeline != SYSTEM_TIMELINE
        ]
        dropped = DroppedTimelines(stash, store, epoch)
        for gone in dropped_timelines(history, catalog.timelines.values()):
            await dropped.remove(gone)
    return Timelines(system, lines, partial(open_timeline, ground), dropped.remove)


async def _upgrade(
    stash: Stash, epoch: Epoch, history: Sequence[tuple[Timestamp, Sequence[CatalogChange]]]
) -> None:
    """Bring the stash of an older program to the present format (U4)."""
    if await upgrade(stash, epoch, _places(history)):
        log.info("the stash has format %s now", FORMAT)


def _places(
    history: Sequence[tuple[Timestamp, Sequence[CatalogChange]]],
) -> Generator[str]:
    """The parts of the stash; the catalog is not made before somebody asks for them."""
    yield ""
    lines = VersionedCatalog(history).current.timelines.values()
    yield from [line.place for line in lines if line != SYSTEM_TIMELINE]


async def _check_belongs_together(stash: Stash, store: ObjectStore) -> None:
    """A stash that was never served has no tables: those of the warehouse belong to a lost one."""
    if await stash.read(ORACLE, SYSTEM) is not None:
        return
    if any("/_delta_log/" in name for name in await store.list("")):
        raise Corrupt("the stash is empty, but the warehouse has tables: the stash was lost")


async def open_timeline(ground: TimelineComponents, timeline: Timeline, catalog: Catalog) -> Driver:
    """The driver of a timeline other than `system`; it has the tables of the present catalog."""
    present = [PutTable(table) for table in catalog.tables.values()]
    return await _recover_timeline(ground, timeline, [(FIRST_TIMESTAMP, present)], catalog)


async def _recover_timeline(
    ground: TimelineComponents,
    timeline: Timeline,
    history: Sequence[tuple[Timestamp, Sequence[CatalogChange]]],
    catalog: Catalog | None = None,
) -> Driver:
    """`catalog`: the present one, for a timeline that does not keep the catalog itself."""
    stash = timeline_stash(ground.stash, timeline)
    txns = TxnsShard(stash, ground.epoch, run_blocking=ground.run_blocking)
    found = await txns.load()
    now = ground.clock.now()
    ceiling = await _first_timestamp(ground, timeline, found.upper, now)
    if not timeline.manual:
        await txns.advance(ceiling)
    versions = VersionedCatalog(history) if catalog is None else VersionedCatalog.only(catalog)
    everything = known_shards(history)
    known = {
        shard: entry for shard, entry in everything.items() if entry.table.timeline == timeline.name
    }
    known_oid, beginning = decode_catalog_compaction(await ground.stash.read(OIDS, NEXT_OID))
    beginning = beginning if catalog is None else Timestamp(0)
    holds = ReadHolds(
        versions.current,
        frontier=Timestamp(ceiling - 1),
        history_us=ground.settings.history_us,
        timeline=timeline.name,
        beginning=beginning,
    )
    dropped = _dropped(known, found)
    kept = {s: entry for s, entry in known.items() if entry.dropped is None or s in found.shards}
    loading = ShardLoader(ground.store, partial(ground.stash.confirm, ground.epoch))
    shards = await _load(loading, _to_load(ground, timeline, kept, holds, found), found)
    await loading.keep_logs(shards, found.flushed)
    _replay(shards, known, found, present_only=catalog is not None)
    # Only now is nobody left who knows rows by the names that they had in the tail.
    shards = {shard: state.pruned(holds.since_of(shard)) for shard, state in shards.items()}
    recovered = RecoveredState(
        epoch=ground.epoch,
        ceiling=ceiling,
        applied=found.applied,
        catalog=versions,
        shards=shards,
        # One that no table has had, nor one that is forgotten.
        next_oid=next_oid(history, max(FIRST_OID, known_oid)),
        beginning=beginning,
        timeline=timeline,
        registered=frozenset(found.shards),
        dropped=dropped,
        sources=decode_source_records(await ground.stash.scan(SOURCE_RECORDS)),
        leftovers=decode_leftovers(await ground.stash.scan(LEFTOVER_RECORDS)),
    )
    await _confirm_all_was_read_leading(ground)
    return _driver(ground, recovered, txns, now)


async def _confirm_all_was_read_leading(ground: TimelineComponents) -> None:
    """U1. Raises Fenced."""
    await ground.stash.confirm(ground.epoch)


def _driver(
    ground: TimelineComponents, recovered: RecoveredState, txns: TxnsShard, now: Timestamp
) -> Driver:
    core = Core(
        recovered,
        ground.settings,
        ground.schema_of,
        now,
        ground.waits,
        ground.notifications.queue,
    )
    return Driver(
        core,
        ground.clock,
        ground.stash,
        txns,
        ground.store,
        ground.epoch,
        run_blocking=ground.run_blocking,
        notifications=ground.notifications,
        counters=ground.counters,
        feeding=SourceEffects(
            ground.sources,
            ground.schema_of,
            partial(_forget_leftover, ground),
            partial(ground.stash.confirm, ground.epoch),
            ground.epoch,
            ground.run_blocking,
        ),
    )


async def _forget_leftover(ground: TimelineComponents, name: str) -> None:
    await ground.stash.transact(ground.epoch, [Delete(LEFTOVER_RECORDS, name)])


def timeline_stash(stash: Stash, timeline: Timeline) -> Stash:
    """Where a timeline keeps its txns shard."""
    return stash if timeline == SYSTEM_TIMELINE else StashPart(stash, timeline.place)


def ticks_per_ms(timeline: Timeline) -> int:
    """How many timestamps of a timeline make one of a Delta log."""
    return 1 if timeline.manual else TICKS_PER_MS


async def _first_timestamp(
    ground: TimelineComponents, timeline: Timeline, upper: Timestamp, now: Timestamp
) -> Timestamp:
    """Where timestamps begin (U2). A timeline without a clock goes on where it stood."""
    if timeline.manual:
        # 0 is before everything: no shard has a write there.
        return max(upper, Timestamp(1))
    stored = await ground.stash.read(ORACLE, timeline.name)
    ceiling = now if stored is None else Timestamp(int.from_bytes(stored, "big"))
    if abs(now - ceiling) > _TOLD_US:
        # A clock that is wrong at a start is believed (J1 of `storage/clock.py`), but told of.
        away = timedelta(microseconds=now - ceiling)
        log.info("the clock is %s after the newest timestamp of %s", away, timeline.name)
    return max(ceiling, upper)


def _dropped(known: Mapping[ShardId, KnownShard], found: Found) -> dict[ShardId, Timestamp]:
    """Shards without a table, since when; of those that are unknown it was long ago."""
    gone = dict.fromkeys((*found.shards, *found.forgotten), FIRST_TIMESTAMP)
    for shard, entry in known.items():
        gone.pop(shard, None)
        if entry.dropped is not None and (shard in found.shards or shard in found.forgotten):
            gone[shard] = entry.dropped
    return gone


def _replay(
    shards: dict[ShardId, ShardState],
    known: Mapping[ShardId, KnownShard],
    found: Found,
    *,
    present_only: bool,
) -> None:
    """Bring the shards up to the last commit (U3). `present_only`: dropped tables are not known."""
    if not present_only:
        _check_registered(known, found.shards)
    for ts, shard, batch in found.batches:
        if shard not in known and not present_only:
            raise Corrupt(f"the stash has rows of {shard}, but not its table")
        if shard in shards:
            shards[shard] = _replayed(shards[shard], ts, batch)
    for shard, state in shards.items():
        named = _named_files([(commit.ts, commit.batch) for commit in state.tail], None)
        if state.fence is None and not state.knows(named):
            log.error("the log of %s does not tell where rows went, so it is fenced", shard)
            shards[shard] = replace(state, fence=Fence.DAMAGED)


async def _load(
    loading: ShardLoader, wanted: list[ShardToLoad], found: Found
) -> dict[ShardId, ShardState]:
    """The shards as their logs have them, as far back as batches need them (U3)."""
    loaded = await loading.load(wanted)
    # A commit keeps the names that it had when it was sent, and several compactions may have
    # landed since; with a short history, or after a leap of the clock, all of them are old.
    batches: dict[ShardId, list[tuple[Timestamp, WriteBatch]]] = {}
    for ts, shard, batch in found.batches:
        batches.setdefault(shard, []).append((ts, batch))
    older = [
        replace(one, since=FIRST_TIMESTAMP)
        for one in wanted
        if not loaded[one.shard].knows(
            _named_files(batches.get(one.shard, ()), loaded[one.shard].cut)
        )
    ]
    return loaded | await loading.load(older, warehouse_is_there=True)


def _named_files(
    batches: Sequence[tuple[Timestamp, WriteBatch]], cut: Timestamp | None
) -> set[Source]:
    """The files whose rows batches after `cut` delete, without those that such batches bring."""
    left = [batch for ts, batch in batches if ts > (cut or 0)]
    coming = {file.name for batch in left for file in batch.staged}
    return {name for batch in left for name in batch.deletes if is_file(name)} - coming


def _oldest_named(
    batches: Sequence[tuple[Timestamp, ShardId, WriteBatch]],
) -> Mapping[ShardId, Timestamp]:
    """The oldest commit whose rows a batch deletes by their names in the tail, of each shard.

    They may have been flushed since, by a coordinator that was deposed, and even rewritten: the
    versions that say where to are needed (U3), however old the shard's since lets them be.
    """
    oldest: dict[ShardId, Timestamp] = {}
    for _, shard, batch in batches:
        for source in batch.deletes:
            if not is_file(source):
                ts = inline_ts(source)
                oldest[shard] = min(oldest.get(shard, ts), ts)
    return oldest


def _to_load(
    ground: TimelineComponents,
    timeline: Timeline,
    known: Mapping[ShardId, KnownShard],
    holds: ReadHolds,
    found: Found,
) -> list[ShardToLoad]:
    """All shards that some `AS OF t >= since` can read, with the versions that batches name."""
    named = _oldest_named(found.batches)
    wanted: list[ShardToLoad] = []
    for shard, entry in known.items():
        since = holds.since_of(shard)
        if entry.dropped is not None and entry.dropped < since:
            continue
        if shard in named:
            since = min(since, Timestamp(named[shard] - 1))
        schema = ground.schema_of(entry.table)
        reached = found.flushed.get(shard)
        definitions = entry.definitions(ground.schema_of)
        if definitions and entry.table.timeline != SYSTEM_TIMELINE.name:
            # The catalog's timestamps are of another timeline: the log may tell what it likes.
            definitions = (Definition(found.upper, schema),)
        # A catalog whose history was compacted says when that was, not when the table came.
        created = min(entry.created, found.shards.get(shard, entry.created))
        wanted.append(
            ShardToLoad(
                entry.table, schema, created, since, reached, definitions,
                entry.table.history_us or ground.settings.history_us, ticks_per_ms(timeline),
                entry.marks,
            )
        )  # fmt: skip
    return wanted


def _check_registered(
    known: Mapping[ShardId, KnownShard], registered: Mapping[ShardId, Timestamp]
) -> None:
    """A table and its registration are committed together: one without the other is damage."""
    for shard, found in known.items():
        if found.dropped is None and shard not in registered:
            raise Corrupt(f"the stash has a table of {shard}, but not its registration")


def _replayed(state: ShardState, ts: Timestamp, batch: WriteBatch) -> ShardState:
    """The shard with a batch of the txns shard, unless its newest version has it already (U3)."""
    cut = state.versions[-1].cut if state.versions else Timestamp(-1)
    return state if ts <= cut else state.committed(ts, batch)
