"""The changes between any two timestamps, over histories of everything that happens to a shard.

The model knows each row with its birth, death and values, by id; what is read is read from the very
places that a Change names, and vacuum has deleted what it may.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage import changes as changes_module
from storage.batch import WriteBatch
from storage.changes import (
    Change,
    InlinePlaces,
    changes,
    changes_since,
    split_places,
    view_of_places,
)
from storage.live_files import FileMap
from storage.shard import Version
from storage.types import Timestamp
from tests.unit.storage.delta.changed_model import ChangedModel, Rows, play
from tests.unit.storage.delta.model import SCHEMA, SHARD, STEP
from tests.unit.storage.delta.test_flush import STEPS
from tests.unit.storage.delta.test_late_flush import succeeded

MORE = st.lists(
    st.sampled_from(
        [
            ("add_column",),
            ("drop_column",),
            ("rewrite_rows",),
            ("flush", 0, 0),
            ("flush", 1, 0),
            ("flush", 0),
            ("prune", 3),
            ("vacuum",),
            ("restart",),
            ("commit", 0, (3, 2), [0, 1], 1),
            ("commit", 0, (), [0, 1, 2], 2),
        ]
    ),
    max_size=3,
)


@given(st.lists(st.tuples(STEPS, MORE), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_folding_the_changes_over_a_view_gives_every_later_view(
    steps: list[tuple[list[tuple], list[tuple]]],
) -> None:
    """C1 to C5, C7, with every schedule of cuts, compactions, vacuums and restarts."""
    model = ChangedModel()
    for step, more in steps:
        play(model, step)
        model.check_last_changes()
        play(model, more)
        model.check_last_changes()
    model.faults([])
    model.commit(1, (), [3, 7], 2)
    model.check_changes()
    model.flush(0)
    model.restart()
    model.check_changes()
    event(f"compactions: {min(model.compactions, 3)}, definitions: {len(model.definitions)}")


def altered_model() -> ChangedModel:
    """Two versions, the second with a compaction, and a tail; columns come and go."""
    model = ChangedModel()
    actions = [
        ("commit", 3, (), [], 0),
        ("flush", 0, 0),
        ("commit", 2, (3,), [0], 0),
        ("add_column",),
        ("commit", 2, (), [1, 3], 0),
        ("flush", 0),
        ("compact", [0, 1, 2]),
        ("commit", 1, (), [0, 1], 0),
        ("flush", 0, 0),
        ("drop_column",),
        ("rewrite_rows",),
        ("commit", 2, (2,), [2, 3], 0),
    ]
    play(model, actions)
    assert model.compactions == 1
    assert len(model.state.tail) == 2
    return model


def all_changes(model: ChangedModel, after: int = 0) -> list[Change]:
    return [*changes(model.state, Timestamp(after), Timestamp(model.now))]


def test_a_commit_at_a_cut_is_told_once_whichever_side_one_asks_from() -> None:
    model = ChangedModel()
    play(model, [("commit", 2, (), [], 0), ("flush", 0, 0), ("commit", 1, (), [0], 0)])
    assert model.state.cut == STEP
    for after, upto, commits in [
        (0, STEP - 1, []),
        (0, STEP, [STEP]),
        (STEP - 1, STEP, [STEP]),
        (STEP, STEP, []),
        (STEP, 2 * STEP, [2 * STEP]),
        (0, 2 * STEP, [STEP, 2 * STEP]),
    ]:
        found = changes(model.state, Timestamp(after), Timestamp(upto))
        assert [one.ts for one in found] == commits, (after, upto)


def test_two_versions_of_the_log_that_are_one_here_tell_each_commit_once() -> None:
    """A flush whose reply was lost, and the next one at a later cut (`merged_from`)."""
    model = ChangedModel()
    model.commit(2, (3,), [], 0)
    model.faults([None, "after"])
    model.flush(0)
    assert model.state.versions == ()
    play(model, [("commit", 1, (), [0, 1, 2, 3], 1), ("flush", 0), ("commit", 1, (), [0], 0)])
    assert [version.merged_from for version in model.state.versions] == [0]
    assert [one.ts for one in all_changes(model)] == [STEP, 2 * STEP, 3 * STEP]
    model.check_changes()
    model.restart()
    assert [version.number for version in model.state.versions] == [0, 1]
    model.check_changes()


def test_a_late_flush_of_a_deposed_coordinator_changes_no_change() -> None:
    model = altered_model()
    model.flush(0)
    model.compact([0, 1, 2])
    model.commit(1, (2,), [0], 0)
    old = succeeded(model)
    model.commit(1, (), [0, 3], 0)
    model.check_changes()
    old.come_late(model)
    for _ in range(2):
        model.flush(0)
        model.now += STEP
    assert model.state.versions[-1].number > 3
    model.check_changes()
    model.restart()
    model.check_changes()


def test_nothing_is_netted_between_commits() -> None:
    """C3: a row that came and went between both ends is told twice, before a flush and after."""
    model = ChangedModel()
    play(model, [("commit", 1, (), [], 0), ("commit", 1, (), [0], 0), ("commit", 0, (), [0], 0)])
    expected = [(STEP, 1, 0), (2 * STEP, 1, 1), (3 * STEP, 0, 1)]
    for _ in range(2):
        found = all_changes(model)
        assert [(one.ts, len(one.came), len(one.went)) for one in found] == expected
        model.flush(0)


def test_what_a_commit_stages_and_deletes_itself_is_not_told() -> None:
    model = ChangedModel()
    model.commit(0, (3,), [], 0)
    for _ in range(2):
        (change,) = all_changes(model)
        assert [[*place.rows] for place in change.came] == [[0, 2]]
        assert change.went == ()
        model.flush(0)
    assert model.state.versions


def test_a_commit_that_changes_nothing_is_left_out() -> None:
    model = ChangedModel()
    model.now = 2 * STEP
    model.commit(0, (2,), [], 0)
    assert all_changes(model) == []
    model.flush(0)
    assert all_changes(model) == []
    assert len(model.state.versions[-1].added) == 1


def test_a_row_goes_with_the_first_commit_that_deletes_it() -> None:
    """C7."""
    model = ChangedModel()
    model.commit(2, (), [], 0)
    row = {model.rows[0].source: BitMap64([0])}
    for _ in range(2):
        model.now += STEP
        model.state = model.state.committed(Timestamp(model.now), WriteBatch(deletes=row))
        model.rows[0].died = model.rows[0].died or model.now
    for _ in range(2):
        assert [one.ts for one in all_changes(model)] == [STEP, 2 * STEP]
        assert [one.ts for one in all_changes(model, 2 * STEP)] == []
        model.flush(0)


def test_rows_are_in_the_fields_of_the_definition_at_the_end() -> None:
    model = altered_model()
    ends = {tuple(model.schema_at(ts).names) for ts in range(STEP, model.now, STEP)}
    assert ends == {("k",), ("k", "c1"), ("k", "c2")}
    model.check_changes()
    wide = pa.schema([*SCHEMA, pa.field("c1", pa.int64()), pa.field("c2", pa.int64())])
    (*_, last) = changes(model.state, Timestamp(0), Timestamp(model.now), wide)
    assert {place.table.schema for place in last.came if isinstance(place, InlinePlaces)} == {wide}


def test_a_rewriting_alter_is_all_rows_that_went_and_came() -> None:
    model = altered_model()
    change = all_changes(model)[-2]
    came, went = (model.rows_of_places(rows, model.schema) for rows in (change.came, change.went))
    before = model.state.view(Timestamp(change.ts - 1), schema=model.schema)
    assert went == model.rows_of_view(before)
    assert len(came) == len(went) > 0


def test_changes_are_a_value_that_later_writes_do_not_touch() -> None:
    """C6: what is asked of a state is answered of it, whatever has become of the shard."""
    model = altered_model()
    kept = all_changes(model)
    late = changes(model.state, Timestamp(0), Timestamp(model.now))
    play(model, [("commit", 1, (), [0, 1], 0), ("flush", 0), ("prune", 0)])
    assert [*late] == kept


def test_before_since_is_refused() -> None:
    model = altered_model()
    assert changes_since(model.state) == 0
    model.flush(0)
    model.prune(0)
    since = model.state.versions[0].cut
    assert 0 < changes_since(model.state) == since
    with pytest.raises(AssertionError, match="C5"):
        changes(model.state, Timestamp(since - 1), Timestamp(model.now))
    assert [*changes(model.state, since, Timestamp(model.now))] == all_changes(model, since)


def test_a_first_version_from_a_checkpoint_does_not_know_its_commits() -> None:
    model = ChangedModel()
    assert changes_since(model.state) == 0
    play(model, [("commit", 2, (), [], 0), ("flush", 0)])
    assert changes_since(model.state) == 0
    play(model, [("checkpoint",), ("commit", 1, (), [], 0), ("prune", 0), ("restart",)])
    assert model.state.versions[0].number == 0
    assert changes_since(model.state) == model.state.cut
    assert [one.ts for one in all_changes(model, model.since)] == []


def test_an_empty_table_has_changes_from_its_beginning_on() -> None:
    model = ChangedModel()
    model.flush(0)
    assert changes_since(model.state) == 0
    assert [*changes(model.state, Timestamp(0), Timestamp(STEP))] == []


@pytest.mark.parametrize("rows_max", [1, 2, 100])
def test_places_are_cut_into_pieces(rows_max: int) -> None:
    model = altered_model()
    for change in all_changes(model):
        for places in (change.came, change.went):
            pieces = [*split_places(places, rows_max)]
            assert all(len(piece.rows) <= rows_max for piece in pieces)
            # Named twice, a row would fail here.
            whole = model.rows_of_places(places, model.schema)
            assert model.rows_of_places(pieces, model.schema) == whole
            assert len(pieces) >= len(places)


def test_many_changes_are_read_as_one_view() -> None:
    model = altered_model()
    found = all_changes(model)
    came: Rows = {}
    for one in found:
        came |= model.rows_of_places(one.came, model.schema)
    view = view_of_places(SHARD, model.schema, [place for one in found for place in one.came])
    assert model.rows_of_view(view) == came
    assert len({part.file.name for part in view.files}) == len(view.files)
    again = view_of_places(SHARD, model.schema, [place for one in found for place in one.came])
    fewer = view_of_places(SHARD, model.schema, [place for one in found[1:] for place in one.came])
    assert view.base_key == again.base_key != fewer.base_key


# --- planted -------------------------------------------------------------------------------------


def _lost_at_the_border_of_a_cut(patch: pytest.MonkeyPatch) -> None:
    version_cut = changes_module._version_cut
    patch.setattr(changes_module, "_version_cut", lambda version: version_cut(version) - 1)


def _twice_after_a_flush(patch: pytest.MonkeyPatch) -> None:
    of_version = changes_module._changes_of_version

    def twice(before: FileMap, version: Version, *range_: Timestamp) -> Iterator[Change]:
        for change in of_version(before, version, *range_):
            yield change
            if change.ts == version.cut:
                yield change

    patch.setattr(changes_module, "_changes_of_version", twice)


def _wrong_names_after_a_compaction(patch: pytest.MonkeyPatch) -> None:
    """Rows that a version deletes are looked for in the files that it has, not those before."""
    of_version = changes_module._changes_of_version

    def later(_: FileMap, version: Version, *range_: Timestamp) -> Iterator[Change]:
        return of_version(version.files, version, *range_)

    patch.setattr(changes_module, "_changes_of_version", later)


def _netted_between_commits(patch: pytest.MonkeyPatch) -> None:
    """All changes of a version have the timestamp of its cut."""
    of_version = changes_module._changes_of_version

    def at_the_cut(before: FileMap, version: Version, *range_: Timestamp) -> Iterator[Change]:
        for change in of_version(before, version, *range_):
            yield replace(change, ts=version.cut)

    patch.setattr(changes_module, "_changes_of_version", at_the_cut)


@pytest.mark.parametrize(
    "plant",
    [
        _lost_at_the_border_of_a_cut,
        _twice_after_a_flush,
        _wrong_names_after_a_compaction,
        _netted_between_commits,
    ],
)
def test_planted_in_the_changes_of_a_shard(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = altered_model()
    play(model, [("flush", 0), ("commit", 1, (), [4], 0)])
    model.check_changes()
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        model.check_changes()
