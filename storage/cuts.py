"""Cuts: flush every dirty shard at one shared timestamp.

    plan (a thread) ─▶ data file, deletion vectors ─▶ log entry, by create-exclusive ─▶ Version
                       └ change data feed, if the table has one

INVARIANTS
  C1  a cut lies on a millisecond; it is the in-commit timestamp of every Delta version written at
      it.
  C2  a flush is idempotent: the version carries `txn(appId = shard, version = cut)`. After a crash
      the log says which cut a shard has reached; the same batches are not written again.
  C3  `flush` returns only after data files, deletion vectors, log file and directories are durable.
  C4  the log file decides: it is created last, it is never overwritten, and one that is there
      already is either this flush (or an earlier attempt at it) or a foreign writer's.
  C5  a log file's modification time is its version's cut, also of one that is adopted: delta-rs
      looks for `TIMESTAMP AS OF` by this time, and not in the log.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from storage.delta.actions import ChangeDataFile
from storage.delta.change_feed import FEED_FILE_ROWS, FeedOutput, FeedRows
from storage.delta.flush_plan import FlushPlan, plan_flush
from storage.delta.layout import data_path
from storage.delta.log import decode_commit, encode_commit
from storage.delta.snapshot import next_version
from storage.delta.writes import batch_writes, version_writes
from storage.errors import AlreadyExists, ForeignWriter
from storage.live_files import LiveFile
from storage.object_store import ObjectStore
from storage.shard import ShardState, Version
from storage.types import ShardId, Source, Timestamp

RunBlocking: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that takes a while, off the loop. The simulation runs it on the spot."""


async def flush(
    store: ObjectStore,
    state: ShardState,
    cut: Timestamp,
    *,
    rewritten: tuple[LiveFile, ...] = (),
    run_blocking: RunBlocking = asyncio.to_thread,
) -> Version:
    """Write the tail of `state` up to `cut` (and the table itself, if new) as one Delta version.

    `rewritten`: files of a compaction that come with it. Without them, `state.dirty_at(cut)` must
    hold. Raises ForeignWriter, Determinate, Indeterminate; after the latter two it may be tried
    again, at the same cut or a later one, with other rewritten files or none. The version's cut may
    be an earlier one, if an attempt before turns out to have compacted: then flush again. Must not
    be called twice at once for a shard.
    """
    assert cut % state.ticks_per_ms == 0, "C1: a cut lies on a millisecond"
    assert rewritten or state.dirty_at(cut), "a flush has something to write"
    return await _flush(store, state, cut, frozenset(), rewritten, run_blocking)


async def _flush(
    store: ObjectStore,
    state: ShardState,
    cut: Timestamp,
    keep: frozenset[Source],
    rewritten: tuple[LiveFile, ...],
    run_blocking: RunBlocking,
) -> Version:
    assert state.cut is None or cut > state.cut, "C1: cuts ascend"
    plan: FlushPlan = await run_blocking(lambda: plan_flush(state, cut, keep, rewritten))
    for name, content in plan.objects.items():
        await _create_same(store, name, content)
    entry = plan.log_entry
    if plan.feed is not None:
        told = await _write_feed(store, state.shard, plan, plan.feed, run_blocking)
        entry = await run_blocking(partial(encode_commit, (*plan.actions, *told)))
    try:
        await store.create(plan.log_path, entry, modified_ms=cut // state.ticks_per_ms)
    except AlreadyExists:
        return await _adopt(store, state, cut, plan, keep, run_blocking)
    return plan.version


async def _write_feed(
    store: ObjectStore,
    shard: ShardId,
    plan: FlushPlan,
    parts: tuple[FeedRows, ...],
    run_blocking: RunBlocking,
) -> list[ChangeDataFile]:
    """The files of the change data feed, one data file's rows at a time; at least one (D2)."""
    output = FeedOutput(plan.version.number, plan.schema)
    told: list[ChangeDataFile] = []

    async def close() -> None:
        file, content = await run_blocking(output.finish)
        await _create_same(store, data_path(shard, file.path), content)
        told.append(file)

    for part in parts:
        name = data_path(shard, part.source)
        content = plan.objects[name] if name in plan.objects else await store.read(name)
        await run_blocking(partial(output.add, part, content))
        if output.rows >= FEED_FILE_ROWS:
            await close()
    if output.rows or not told:
        await close()
    return told


async def _create_same(store: ObjectStore, name: str, content: bytes) -> None:
    """Create an object named after its content: if the name is taken, the object is there."""
    try:
        await store.create(name, content)
    except AlreadyExists:
        # The attempt that made it may have died before its directory was durable (C3).
        await store.sync([name])


async def _adopt(
    store: ObjectStore,
    state: ShardState,
    cut: Timestamp,
    plan: FlushPlan,
    keep: frozenset[Source],
    run_blocking: RunBlocking,
) -> Version:
    """The version exists: an earlier attempt, at this cut or before, or a foreign writer's (C4)."""
    actions = decode_commit(await store.read(plan.log_path))
    previous = state.versions[-1] if state.versions else None
    found = next_version(state.shard, previous, plan.version.number, actions)
    tail = [batch_writes(c.ts, c.batch) for c in state.tail if c.ts <= found.cut]
    if found.cut > cut or version_writes(found) != set().union(*tail):
        raise ForeignWriter(f"{plan.log_path} was written by another coordinator")
    # Also one that came with another time, from a Meridian that set none (C5).
    await store.sync([plan.log_path], modified_ms=found.cut // state.ticks_per_ms)
    after = state.flushed(found)
    if found.rewritten or not after.dirty_at(cut):
        # With its own cut, as the log has it: a deposed coordinator may still be adding versions.
        return found
    # The two versions in the log become one here. Files that came with the first must still be
    # there after the second, even dead ones: readers between the cuts need them (G2).
    rest = await _flush(store, after, cut, keep | {*found.added}, (), run_blocking)
    if rest.rewritten or not all(name in rest.files for name in found.added):
        # The second was adopted, too: it knows nothing of `keep`, or names other files in its
        # deletes than the first. The two cannot be one; the next cut finds the second again.
        return found
    return replace(
        rest,
        added=(*found.added, *rest.added),
        deletes=(*found.deletes, *rest.deletes),
        merged_from=found.number,
    )
