"""ShardState against a naive model: rows with the times they came and went."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.batch import DataFile, FileSlice, WriteBatch
from storage.live_files import FileMap, LiveFile, Run, Runs, slice_digest
from storage.row_versions import single_origin
from storage.shard import ShardState, Version, staged_file
from storage.types import OWN, Source, Timestamp, inline_source
from tests.unit.storage.delta.model import ACTIONS, SCHEMA, SHARD, STEP, Model, rows_of


@given(st.lists(ACTIONS, max_size=25))
@settings(max_examples=150, deadline=None)
def test_every_timestamp_sees_what_the_model_says(actions: list[tuple]) -> None:
    model = Model()
    for name, *arguments in actions:
        getattr(model, name)(*arguments)
    model.check()


def committed(*batches: WriteBatch, step: int = STEP) -> ShardState:
    state = ShardState(SHARD, SCHEMA, Timestamp(0))
    for number, batch in enumerate(batches, start=1):
        state = state.committed(Timestamp(number * step), batch)
    return state


def insert(*keys: int) -> WriteBatch:
    return WriteBatch(rows_of(*keys))


def test_own_writes_lie_on_top() -> None:
    state = committed(insert(1, 2), insert(3))
    own = WriteBatch(rows_of(9), deletes={inline_source(Timestamp(STEP)): BitMap64([1])})
    view = state.view(Timestamp(2 * STEP), own)
    shown = [(part.source, list(part.deleted)) for part in view.inline]
    assert shown == [(f"@{STEP}", [1]), (f"@{2 * STEP}", []), (OWN, [])]
    assert [list(part.deleted) for part in state.view(Timestamp(2 * STEP)).inline] == [[], []]


def test_own_deletes_follow_their_rows_into_a_file() -> None:
    model = Model()
    model.commit(2, (), [], 0)
    model.commit(2, (), [], 0)
    own = WriteBatch(deletes={inline_source(Timestamp(2 * STEP)): BitMap64([1])})
    model.flush(0)
    view = model.state.view(Timestamp(2 * STEP), own)
    assert model.seen(view) == [0, 1, 2]


def test_own_deletes_of_rows_that_are_gone_with_their_file_are_ignored() -> None:
    model = Model()
    model.commit(1, (), [], 0)
    model.commit(1, (), [], 0)
    model.flush(0)
    last = model.state.versions[-1]
    empty = Version(last.number + 1, Timestamp(4 * STEP), FileMap(), (), ())
    state = model.state.flushed(empty).pruned(Timestamp(5 * STEP))
    own = WriteBatch(deletes={inline_source(Timestamp(STEP)): BitMap64([0])})
    assert state.view(Timestamp(5 * STEP), own).files == ()
    with pytest.raises(AssertionError, match="V2"):
        state.resolve(own.deletes)


def test_before_since_is_refused() -> None:
    model = Model()
    for _ in range(3):
        model.commit(1, (), [], 0)
        model.flush(0)
    model.prune(0)
    with pytest.raises(AssertionError, match="V1"):
        model.state.view(Timestamp(STEP // 2))
    assert model.state.wrote_between(Timestamp(0), Timestamp(STEP // 2))


def test_commits_come_in_order() -> None:
    state = committed(insert(1))
    with pytest.raises(AssertionError, match="T2"):
        state.committed(Timestamp(STEP), insert(2))


def test_dirty_is_a_tail_or_a_missing_table() -> None:
    state = ShardState(SHARD, SCHEMA, Timestamp(STEP // 2))
    assert state.dirty
    assert not state.dirty_at(Timestamp(STEP // 2 - 1))
    assert state.dirty_at(Timestamp(STEP // 2))
    state = state.flushed(Version(0, Timestamp(STEP // 2 + 1), FileMap()))
    assert not state.dirty
    state = state.committed(Timestamp(STEP), insert(1, 2))
    assert state.dirty
    assert (state.dirty_at(Timestamp(STEP - 1)), state.dirty_at(Timestamp(STEP))) == (False, True)
    assert state.tail_rows == 2
    assert state.tail_bytes > 16


def test_file_map_shares_and_keeps_order() -> None:
    def live(name: int) -> LiveFile:
        origins = single_origin(Timestamp(1), name)
        return staged_file(DataFile(Source(f"f{name}"), 1, 1, "{}", origins), Timestamp(1))

    first = FileMap(live(n) for n in range(300))
    dead = LiveFile(live(7).file, BitMap64([0]), Runs.single(Timestamp(1)))
    second = first.changed([dead, live(300)], drops=[Source("f299")])
    assert [*second] == [f"f{n}" for n in (*range(299), 300)]
    assert (first[Source("f7")].dead, second[Source("f7")].dead) == (False, True)
    assert (len(first), len(second)) == (300, 300)
    assert "f299" in first
    assert "f299" not in second
    assert [live.file.name for live in second.live_files()] == [*second]


def test_equal_files_have_equal_keys_however_their_bitmaps_were_made() -> None:
    file = DataFile(Source("f"), 2_000, 1, "{}")
    made = [BitMap64(range(1_000)), BitMap64(), BitMap64(range(0, 1_000, 2))]
    for row in range(1_000):
        made[1].add(row)
    made[2] |= BitMap64(range(1, 1_000, 2))
    digests = {slice_digest(FileSlice(file, 2_000, bitmap)) for bitmap in made}
    assert len(digests) == 1


def test_runs() -> None:
    runs = Runs((5, 8), (0, 3))
    assert [*runs] == [Run(Timestamp(5), 0), Run(Timestamp(8), 3)]
    limits = [runs.rows_until(Timestamp(ts), 10) for ts in (4, 5, 7, 8, 9)]
    assert limits == [0, 3, 3, 10, 10]
    assert [runs.first_row_at(Timestamp(ts)) for ts in (5, 6, 8)] == [0, None, 3]
    with pytest.raises(AssertionError, match="F1"):
        Runs((5, 5), (0, 1))
