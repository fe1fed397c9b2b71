"""Start-up: take over the stash, read what is committed, and hand a core its state (DESIGN §12).

    fence ─▶ ceiling, catalog, txns shard ─▶ Delta logs of all shards ─▶ + batches ─▶ Core

INVARIANTS
  U1  the epoch is incremented before anything is read: what is read cannot change any more.
  U2  timestamps begin at or above the old ceiling and the txns shard's upper.
  U3  a shard is its newest Delta version plus every batch of the txns shard after that version's
      cut: a batch that was applied but not tidied is not counted twice.
  U4  start-up changes nothing but the epoch and upper; a crash in the middle does no harm.
  U5  a log that ends before the cut it has reached has lost acknowledged data: start-up is refused.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes
from coordinator.core.core import FIRST_OID, Core, Recovered
from coordinator.core.messages import CatalogChange, PutTable, RemoveTable
from coordinator.core.settings import CoreSettings
from coordinator.driver import ORACLE, SYSTEM, Driver, RunBlocking, in_thread
from sql.catalog import Table
from storage.batch import WriteBatch
from storage.clock import Clock
from storage.delta.recovery import load_shard
from storage.errors import Corrupt
from storage.object_store import ObjectStore
from storage.shard import ShardState
from storage.stash import Stash
from storage.txns import TxnsShard
from storage.types import ShardId, Timestamp

SchemaOf = Callable[[Table], pa.Schema]


@dataclass(frozen=True, slots=True)
class _KnownShard:
    """A shard of the catalog's history. `dropped`: None while its table exists."""

    table: Table
    created: Timestamp
    dropped: Timestamp | None


def known_shards(
    history: Sequence[tuple[Timestamp, Sequence[CatalogChange]]],
) -> dict[ShardId, _KnownShard]:
    """Every shard that the catalog has ever had."""
    shards: dict[ShardId, _KnownShard] = {}
    for ts, changes in history:
        for change in changes:
            match change:
                case PutTable(table=table):
                    known = shards.get(ShardId(table.shard))
                    created = ts if known is None else known.created
                    shards[ShardId(table.shard)] = _KnownShard(table, created, None)
                case RemoveTable(table=table):
                    known = shards[ShardId(table.shard)]
                    shards[ShardId(table.shard)] = _KnownShard(table, known.created, ts)
                case _:
                    pass
    return shards


async def recover(
    stash: Stash,
    store: ObjectStore,
    clock: Clock,
    settings: CoreSettings,
    schema_of: SchemaOf,
    *,
    run_blocking: RunBlocking = in_thread,
) -> Driver:
    """Take over and build the driver; `Driver.run` then finishes what was left to apply."""
    epoch = await stash.fence()
    txns = TxnsShard(stash, epoch)
    found = await txns.load()
    stored = await stash.read(ORACLE, SYSTEM)
    history = decode_changes(await stash.scan(COLLECTION))
    now = clock.now()
    ceiling = now if stored is None else Timestamp(int.from_bytes(stored, "big"))
    ceiling = max(ceiling, found.upper)
    await txns.advance(ceiling)
    since = max(Timestamp(0), Timestamp(ceiling - 1 - settings.history_us))
    known = known_shards(history)
    _check_registered(known, found.shards)
    shards = await _load_shards(store, known, schema_of, since)
    _check_nothing_lost(shards, found.flushed)
    for ts, shard, batch in found.batches:
        if shard not in known:
            raise Corrupt(f"the stash has rows of {shard}, but not its table")
        if shard in shards:
            shards[shard] = _replayed(shards[shard], ts, batch)
    recovered = Recovered(
        epoch=epoch,
        ceiling=ceiling,
        applied=found.applied,
        catalog=VersionedCatalog(history),
        shards=shards,
        next_oid=max((shard.table.oid + 1 for shard in known.values()), default=FIRST_OID),
    )
    core = Core(recovered, settings, schema_of, now)
    return Driver(core, clock, stash, txns, store, epoch, run_blocking=run_blocking)


async def _load_shards(
    store: ObjectStore,
    known: dict[ShardId, _KnownShard],
    schema_of: SchemaOf,
    since: Timestamp,
) -> dict[ShardId, ShardState]:
    """All shards that some `AS OF t >= since` can read."""
    shards: dict[ShardId, ShardState] = {}

    async def load(shard: ShardId, found: _KnownShard) -> None:
        schema = schema_of(found.table)
        shards[shard] = await load_shard(store, shard, schema, found.created, since)

    try:
        async with asyncio.TaskGroup() as tasks:
            for shard, found in known.items():
                if found.dropped is None or found.dropped >= since:
                    tasks.create_task(load(shard, found))
    except ExceptionGroup as group:
        # One reason is enough to refuse to start, and it must be said in one line.
        raise group.exceptions[0] from group
    return shards


def _check_registered(
    known: Mapping[ShardId, _KnownShard], registered: Mapping[ShardId, Timestamp]
) -> None:
    """A table and its registration are committed together: one without the other is damage."""
    for shard, found in known.items():
        if found.dropped is None and shard not in registered:
            raise Corrupt(f"the stash has a table of {shard}, but not its registration")


def _check_nothing_lost(
    shards: Mapping[ShardId, ShardState], flushed: Mapping[ShardId, Timestamp]
) -> None:
    """Compare the logs with what tidy noted (U5). Raises Corrupt."""
    for shard, state in shards.items():
        reached = flushed.get(shard)
        if reached is not None and (state.cut is None or state.cut < reached):
            raise Corrupt(f"the Delta log of {shard} ends before its newest commits")


def _replayed(state: ShardState, ts: Timestamp, batch: WriteBatch) -> ShardState:
    """The shard with a batch of the txns shard, unless its newest version has it already (U3)."""
    cut = state.versions[-1].cut if state.versions else Timestamp(-1)
    return state if ts <= cut else state.committed(ts, batch)
