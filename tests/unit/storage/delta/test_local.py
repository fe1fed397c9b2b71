"""The same flush, checkpoint, recovery and check on a real directory."""

import asyncio
from pathlib import Path

from pyroaring import BitMap64

from storage.batch import WriteBatch
from storage.check import ShardRecord, check_shard
from storage.cuts import flush
from storage.delta.maintenance import wants_checkpoint, write_checkpoint
from storage.delta.recovery import load_shard
from storage.local_store import LocalObjectStore
from storage.object_store import ObjectStore
from storage.shard import ShardState
from storage.types import Timestamp, inline_source
from tests.unit.storage.delta.foreign import SCHEMA, SHARD, normal, plain, row, table_of, tell_story
from tests.unit.storage.delta.model import STEP


async def write(store: ObjectStore, state: ShardState, versions: int) -> ShardState:
    for number in range(versions):
        ts = Timestamp(state.last_write + STEP)
        deletes = {inline_source(Timestamp(ts - STEP)): BitMap64([1])} if number else {}
        batch = WriteBatch(table_of([row(number), row(number + 1)]), deletes=deletes)
        state = state.committed(ts, batch)
        version = await flush(store, state, Timestamp(ts + 1_000))
        state = state.flushed(version)
        if wants_checkpoint(version):
            await write_checkpoint(store, SHARD, version.number)
    return state


def test_a_restart_finds_everything_on_disk(tmp_path: Path) -> None:
    first = LocalObjectStore.open(tmp_path)
    empty = ShardState(SHARD, SCHEMA, Timestamp(0))
    written = asyncio.run(write(first, empty, 103))
    first.close()

    async def reopen() -> tuple[ShardState, ShardState]:
        store = LocalObjectStore.open(tmp_path)
        record = ShardRecord(SHARD, SCHEMA, Timestamp(0), written.versions[-1].cut)
        assert await check_shard(store, record) == []
        whole = await load_shard(store, empty, Timestamp(0))
        late = Timestamp(written.last_write + STEP)
        recent = await load_shard(store, empty, late)
        store.close()
        return whole, recent

    whole, recent = asyncio.run(reopen())
    assert whole.versions == written.versions
    assert [version.number for version in recent.versions] == [102]
    now = written.last_write
    assert recent.view(Timestamp(now + STEP)) == written.view(Timestamp(now + STEP))


def test_the_story_for_foreign_readers_is_sound() -> None:
    story = tell_story()
    record = ShardRecord(SHARD, SCHEMA, Timestamp(0), Timestamp(story.now))
    assert asyncio.run(check_shard(story.store, record)) == []
    newest = max(story.answers)
    assert normal(map(plain, story.rows_at(story.now))) == story.answers[newest]
