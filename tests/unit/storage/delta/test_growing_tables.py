"""A table that only grows has nothing that a reader might refuse (G4 of `flush_plan.py`)."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError
from pyroaring import BitMap64

from storage.clock import SystemClock
from storage.delta import flush_plan
from storage.delta.maintenance import log_state
from storage.delta.recovery import load_shard
from storage.delta.table import VECTORS_FEATURE, VECTORS_PROPERTY, table_actions
from storage.shard import ShardState
from storage.types import Timestamp
from tests.unit.storage.delta.foreign import SCHEMA, SHARD, Story, plain, row


def grown() -> Story:
    """Rows, staged files, a compaction and a checkpoint, and no row deleted."""
    story = Story(SystemClock().now() - 60_000_000)
    for first in range(0, 40, 10):
        story.commit([row(k) for k in range(first, first + 10)])
        story.flush()
    story.commit([], staged=[row(k) for k in range(100, 200)])
    story.flush()
    story.compact()
    story.commit([row(300)])
    story.flush()
    story.checkpoint()
    return story


def loaded(story: Story) -> ShardState:
    empty = ShardState(SHARD, SCHEMA, story.state.created)
    return asyncio.run(load_shard(story.store, empty, Timestamp(story.now)))


def features(story: Story, number: int) -> tuple[bool, str | None]:
    """Whether the protocol has the feature at a version, and the property."""
    state = asyncio.run(log_state(story.store, SHARD, number))
    assert state.protocol is not None
    assert state.metadata is not None
    has = VECTORS_FEATURE in state.protocol.reader_features
    assert has == (VECTORS_FEATURE in state.protocol.writer_features)
    return has, state.metadata.configuration.get(VECTORS_PROPERTY)


def told(story: Story, number: int) -> list[str]:
    """The actions of a version that tell of the table itself."""
    lines = asyncio.run(story.store.read(f"{SHARD}/_delta_log/{number:020}.json")).splitlines()
    kinds = [next(iter(json.loads(line))) for line in lines]
    return [kind for kind in kinds if kind in {"protocol", "metaData"}]


def test_a_table_that_only_grows_is_read_by_all_of_delta_rs(tmp_path: Path) -> None:
    story = grown()
    newest = story.state.versions[-1].number
    assert features(story, newest) == (False, None)
    path = story.write_out(tmp_path)
    expected = sorted(plain(row) for row in story.rows_at(story.now))
    keys = [line[0] for line in expected]
    table = DeltaTable(path)
    assert sorted(table.to_pyarrow_table().column("k").to_pylist()) == keys
    assert sorted(table.to_pandas()["k"]) == keys
    rows = QueryBuilder().register("t", table).execute("SELECT k FROM t").read_all()
    assert sorted(pa.table(rows).column("k").to_pylist()) == keys


def test_the_first_vector_brings_the_feature_for_good(tmp_path: Path) -> None:
    story = grown()
    before = story.state.versions[-1].number
    story.state = loaded(story)
    assert not story.state.versions[-1].has_vectors
    source = story.commit([row(k) for k in range(400, 410)])
    story.flush()
    story.commit([], {source: BitMap64([2])})
    story.flush()
    story.commit([], {source: BitMap64([3])})
    story.flush()
    assert [told(story, before + n) for n in (1, 2, 3)] == [[], ["protocol", "metaData"], []]
    assert features(story, before + 1) == (False, None)
    assert features(story, before + 2) == (True, "true")
    story.checkpoint()
    assert loaded(story).versions[-1].has_vectors
    path = story.write_out(tmp_path)
    assert DeltaTable(path, version=before + 1).to_pyarrow_table().num_rows == 151
    with pytest.raises(DeltaProtocolError, match="deletionVectors"):
        DeltaTable(path).to_pyarrow_table()


def test_a_table_of_before_keeps_what_it_has_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        always = partial(table_actions, vectors=True)
        patch.setattr(flush_plan, "table_actions", lambda *args, **_: always(*args))
        story = Story(SystemClock().now() - 60_000_000)
        source = story.commit([row(1), row(2)])
        story.flush()
    assert features(story, 0) == (True, "true")
    story.state = loaded(story)
    story.commit([], {source: BitMap64([1])})
    story.flush()
    assert told(story, 1) == []
    assert features(story, 1) == (True, "true")
