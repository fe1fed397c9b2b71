"""A new coordinator meets versions that the deposed one wrote after it had been read past."""

import asyncio

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import WriteBatch
from storage.cuts import flush
from storage.memory import MemoryObjectStore
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp

SCHEMA = pa.schema([("n", pa.int64())])


def rows(*numbers: int) -> WriteBatch:
    return WriteBatch(pa.table({"n": numbers}, SCHEMA))


def flushed(store: MemoryObjectStore, state: ShardState, cut: int) -> ShardState:
    async def on_the_spot(work):  # type: ignore[no-untyped-def]
        return work()

    version = asyncio.run(flush(store, state, Timestamp(cut), run_blocking=on_the_spot))
    return state.flushed(version)


def live(state: ShardState, ts: int) -> int:
    view = state.view(Timestamp(ts))
    in_files = sum(part.row_limit - len(part.deleted) for part in view.files)
    return in_files + sum(part.rows.num_rows - len(part.deleted) for part in view.inline)


def test_two_versions_of_the_deposed_one_after_the_other() -> None:
    store = MemoryObjectStore()
    known = flushed(store, ShardState(ShardId("t1"), SCHEMA, Timestamp(500)), 1_000)
    known = known.committed(Timestamp(1_500), rows(1, 2))
    gone = WriteBatch(deletes={Source("@1500"): BitMap64([0, 1])})
    old = flushed(store, known, 2_000).committed(Timestamp(2_500), gone)
    flushed(store, old, 3_000)
    # The successor read the log before both, and has a commit of its own.
    new = known.committed(Timestamp(2_500), gone).committed(Timestamp(3_500), rows(3))
    for cut in (4_000, 5_000, 6_000):
        if new.dirty_at(Timestamp(cut)):
            new = flushed(store, new, cut)
    assert not new.dirty
    assert [live(new, ts) for ts in (1_000, 1_500, 2_499, 2_500, 3_500)] == [0, 2, 2, 0, 1]


def test_a_version_of_the_deposed_that_comes_after_one_was_adopted() -> None:
    store = MemoryObjectStore()
    known = flushed(store, ShardState(ShardId("t1"), SCHEMA, Timestamp(500)), 1_000)
    known = known.committed(Timestamp(1_500), rows(1, 2))
    flushed(store, known, 2_000)
    new = flushed(store, known, 9_000)
    # What it adopted keeps the cut that the log has: a compaction at 3,000 may still come.
    assert new.cut == 2_000
    assert not new.dirty_at(Timestamp(9_000))
