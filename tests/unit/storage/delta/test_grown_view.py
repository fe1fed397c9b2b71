"""Views that grow from others are those that are made anew (V7 of `storage/shard.py`)."""

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, ShardView, WriteBatch
from storage.live_files import FileMap, LiveFile, Runs
from storage.shard import NOTHING, ShardState, Version
from storage.types import OWN, Source, Timestamp
from tests.unit.storage.delta.model import ACTIONS, SCHEMA, SHARD, STEP, Model, rows_of
from tests.unit.storage.delta.test_flush import FlushedModel

LOOKS = st.tuples(
    st.just("look"),
    st.integers(-1, 5),  # commits back from now
    st.lists(st.integers(0, 30), max_size=3),  # rows that an own write deletes
    st.lists(st.integers(0, 30), max_size=3),  # rows that others hold
    st.booleans(),  # own rows
)
COMPACTIONS = st.tuples(st.just("compact"), st.lists(st.integers(0, 9), min_size=1, max_size=3))


def made_anew(
    state: ShardState, ts: Timestamp, own: WriteBatch | None, hidden: Deletes
) -> ShardView:
    return state._view(ts, own, state.schema, hidden)


def look(model: Model, back: int, own_victims: list[int], held: list[int], own_rows: bool) -> None:
    """Compare a view, with own writes and hidden rows, with one that shares nothing."""
    ts = Timestamp(max(model.now - back * STEP, model.since))
    alive = model.live(ts)

    def named(chosen: list[int]) -> dict[Source, BitMap64]:
        found: dict[Source, BitMap64] = {}
        for place in chosen if alive else ():
            row = alive[place % len(alive)]
            found.setdefault(row.source, BitMap64()).add(row.index)
        return found

    state = model.state
    assert state.view(ts) == made_anew(state, ts, None, NOTHING)
    assert sorted(model.seen(state.view(ts))) == sorted(row.key for row in alive)
    if state.cut is not None and ts < state.cut:
        return  # Rows of an older version have other names than the model knows.
    rows = rows_of(-1, -2) if own_rows else None
    deletes = named(own_victims)
    if rows and own_victims:
        # Of its own rows some may be gone again.
        deletes[OWN] = BitMap64(victim % 2 for victim in own_victims)
    own = WriteBatch(rows, deletes=deletes) if rows or own_victims else None
    # Locks may name a row that is in no view yet, or never was.
    hidden = named(held) | {Source("@7"): BitMap64([0]), Source("gone.parquet"): BitMap64([3])}
    grown = state.view(ts, own, hidden=hidden)
    assert grown == made_anew(state, ts, own, hidden)
    assert grown.inline_rows == sum(part.rows.num_rows for part in grown.inline)
    assert all(grown.inline_slice(part.source) is part for part in grown.inline)
    assert grown.inline_slice(Source("@8")) is None
    assert state.view(ts) == made_anew(state, ts, None, NOTHING), "B4: the views share slices"


def run(model: Model, actions: list[tuple]) -> None:
    for name, *arguments in actions:
        if name == "look":
            look(model, *arguments)
        else:
            getattr(model, name)(*arguments)
    look(model, 0, [1, 2], [2, 3], own_rows=True)
    event(f"kept views: {len(model.state._shown)}")


@given(st.lists(st.one_of(ACTIONS, LOOKS, LOOKS), max_size=30))
@settings(max_examples=200, deadline=None)
def test_over_commits_deletes_flushes_and_older_timestamps(actions: list[tuple]) -> None:
    run(Model(), actions)


@given(st.lists(st.one_of(ACTIONS, LOOKS, COMPACTIONS), max_size=20))
@settings(max_examples=40, deadline=None)
def test_over_real_files_and_compactions(actions: list[tuple]) -> None:
    run(FlushedModel(), actions)


def test_a_view_that_somebody_holds_does_not_change() -> None:
    model = Model()
    model.commit(3, (2,), [], 0)
    held = model.state.view(Timestamp(model.now))
    seen, key = model.seen(held), held.base_key
    model.commit(1, (1,), [0, 3], 0)
    assert model.seen(model.state.view(Timestamp(model.now))) != seen
    assert (model.seen(held), held.base_key) == (seen, key)


def test_another_definition_is_another_view() -> None:
    model = Model()
    model.commit(2, (), [], 0)
    before = model.state.view(Timestamp(model.now))
    wider = pa.schema([*SCHEMA, pa.field("more", pa.string())])
    model.now += STEP
    state = model.state.redefined(Timestamp(model.now), wider)
    after = state.view(Timestamp(model.now), schema=wider)
    assert (before.schema, after.schema) == (SCHEMA, wider)
    assert after.inline[0].rows.column_names == ["k", "more"]
    rows = WriteBatch(pa.table({"k": [7], "more": ["x"]}, wider))
    state = state.committed(Timestamp(model.now + STEP), rows)
    grown = state.view(Timestamp(model.now + STEP), schema=wider)
    assert [part.rows.column_names for part in grown.inline] == [["k", "more"]] * 2
    # Who was bound before sees the fields of then.
    assert state.view(Timestamp(model.now - STEP), schema=SCHEMA) == before


def test_a_successor_adopts_a_version_that_it_has_read_past() -> None:
    file = DataFile(Source("part-1"), 2, 1, "{}")
    first = Timestamp(STEP)
    known = ShardState(SHARD, SCHEMA, Timestamp(0)).committed(first, WriteBatch(rows_of(1, 2)))
    known = known.committed(Timestamp(3 * STEP), WriteBatch(rows_of(3)))
    seen = known.view(Timestamp(3 * STEP))
    assert [part.source for part in seen.inline] == [f"@{STEP}", f"@{3 * STEP}"]
    live = LiveFile(file, BitMap64(), Runs.single(first))
    adopted = known.flushed(Version(0, Timestamp(2 * STEP), FileMap([live]), (file.name,)))
    deletes = {Source(f"@{STEP}"): BitMap64([0])}
    after = adopted.committed(Timestamp(4 * STEP), WriteBatch(deletes=deletes))
    view = after.view(Timestamp(4 * STEP))
    assert [(part.file.name, [*part.deleted]) for part in view.files] == [("part-1", [0])]
    assert view == made_anew(after, Timestamp(4 * STEP), None, NOTHING)


def test_keys_of_files_are_equal_whoever_asked_for_them_before() -> None:
    def last_key(*, asked: bool) -> str:
        model = Model()
        model.commit(0, (3, 2), [], 0)
        for victim in (0, 2, 1):
            if asked:
                assert model.state.view(Timestamp(model.now)).base_key
            model.commit(0, (1,), [victim], 0)
            assert model.state.view(Timestamp(model.now)).files
        return model.state.view(Timestamp(model.now)).base_key

    assert last_key(asked=True) == last_key(asked=False)
