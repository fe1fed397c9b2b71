"""Write checkpoints of a log, work that no commit waits for.

INVARIANTS
  K2  `_last_checkpoint` is a hint: while it is replaced it may be missing, never torn.
  K4  a checkpoint has its version's time as its modification time, as log entries do.
  K3  a checkpoint is made from the log, so it can be made at any time, by anybody, again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from storage.delta.checkpoint import LogState, encode_checkpoint
from storage.delta.layout import checkpoint_path, last_checkpoint_path
from storage.delta.recovery import list_log, read_checkpoint, read_commit
from storage.delta.table import CHECKPOINT_VERSIONS
from storage.errors import AlreadyExists, Corrupt
from storage.object_store import ObjectStore
from storage.shard import Version
from storage.types import ShardId

EncodeBlocking: TypeAlias = Callable[
    [Callable[[], tuple[bytes, int]]], Awaitable[tuple[bytes, int]]
]


def wants_checkpoint(version: Version) -> bool:
    """True if it is time for a checkpoint when this version has been flushed."""
    return version.number > 0 and version.number % CHECKPOINT_VERSIONS == 0


async def write_checkpoint(
    store: ObjectStore,
    shard: ShardId,
    number: int,
    *,
    run_blocking: EncodeBlocking = asyncio.to_thread,
) -> None:
    """Write the checkpoint of a version, which must be durable. Raises Corrupt, Determinate."""
    state = await log_state(store, shard, number)
    assert state.txn is not None, "K1: every version has a marker"
    content, size = await run_blocking(lambda: encode_checkpoint(state))
    try:
        await store.create(
            checkpoint_path(shard, number), content, modified_ms=state.txn.updated_ms
        )
    except AlreadyExists:
        return
    _, checkpoints = await list_log(store, shard)
    if checkpoints[-1] > number:
        return
    hint = json.dumps({"version": number, "size": size}).encode()
    await store.delete(last_checkpoint_path(shard))
    await store.create(last_checkpoint_path(shard), hint)


async def log_state(store: ObjectStore, shard: ShardId, number: int) -> LogState:
    """What the log says at a version, from the newest checkpoint that can be read."""
    _, checkpoints = await list_log(store, shard)
    state, first = LogState(), 0
    for candidate in reversed([c for c in checkpoints if c <= number]):
        try:
            state, first = await read_checkpoint(store, shard, candidate), candidate + 1
        except Corrupt:
            continue
        break
    commits = [await read_commit(store, shard, n) for n in range(first, number + 1)]
    return state.after(commits)
