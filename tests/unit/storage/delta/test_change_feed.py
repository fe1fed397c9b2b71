"""The change data feed, read by others, is the difference of the versions."""

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import chain, combinations_with_replacement
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from deltalake import DeltaTable
from hypothesis import event, given, settings
from hypothesis import strategies as st

from storage import cuts
from storage.check import Finding, ShardRecord, check_shard
from storage.clock import SystemClock
from storage.delta import flush_plan
from storage.delta.change_feed import change_file_version
from storage.delta.checkpoint import decode_checkpoint
from storage.delta.layout import checkpoint_path, data_path
from storage.delta.table import FEED_FEATURE, FEED_PROPERTY
from storage.delta.vacuum import remove_table
from storage.errors import Corrupt, NotFound
from storage.types import Timestamp
from tests.support.foreign_readers import delta_spark_reader
from tests.unit.storage.delta.changed_model import play
from tests.unit.storage.delta.fed_model import FedModel, Told, feed_by_delta_rs
from tests.unit.storage.delta.model import SHARD, STEP
from tests.unit.storage.delta.test_flush import STEPS

MORE = st.lists(
    st.sampled_from(
        [
            ("add_column",),
            ("rewrite_rows",),
            ("flush", 0, 0),
            ("flush", 1, 0),
            ("flush", 0),
            ("vacuum",),
            ("restart",),
            ("truncate",),
            ("born_and_gone",),
            ("commit", 0, (3, 2), [0, 1], 1),
            ("commit", 2, (), [0, 1, 2], 2),
        ]
    ),
    max_size=4,
)


class EventfulModel(FedModel):
    """With what a random commit does too seldom."""

    def truncate(self) -> None:
        """All rows go."""
        alive = self.live(self.now)
        if alive:
            self.commit(0, (), [*range(len(alive))], 0)

    def born_and_gone(self) -> None:
        """Rows that no version has had, beside one that stays."""
        self.commit(3, (2,), [], 0)
        count = len(self.live(self.now))
        self.commit(0, (), [count - 1, count - 2, count - 3, count - 5], 0)
        self.flush(0)


@given(st.lists(st.tuples(STEPS, MORE), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_delta_rs_is_told_the_difference_of_any_versions(
    steps: list[tuple[list[tuple], list[tuple]]],
) -> None:
    """D1, D2: with every schedule of cuts, compactions, vacuums, restarts and lost replies."""
    model = EventfulModel()
    for step, more in steps:
        play(model, step)
        play(model, more)
    model.faults([])
    model.commit(1, (), [3, 7], 2)
    model.now += STEP
    model.flush(0)
    with TemporaryDirectory() as directory:
        check_feed(model, Path(directory))
    assert feed_findings(model) == []
    event(f"compactions: {min(model.compactions, 3)}")


def check_feed(model: FedModel, directory: Path) -> None:
    """All ranges of versions that the log still has whole."""
    path = model.write_out(directory)
    # A log that was cleaned does not have what came before its first version.
    there = [number for number in model.cuts() if number - 1 in model.cuts() or number == 0]
    for first, last in combinations_with_replacement([*there[:2], *there[-2:]], 2):
        if first <= last:
            expected = model.difference(range(first, last + 1))
            assert feed_by_delta_rs(path, first, last) == expected, (first, last)


def feed_findings(model: FedModel) -> list[Finding]:
    present = Timestamp(model.now + STEP)
    record = ShardRecord(
        SHARD,
        model.schema,
        Timestamp(0),
        Timestamp(0),
        present=present,
        definitions=tuple(model.definitions) if len(model.definitions) > 1 else (),
    )
    findings = asyncio.run(check_shard(model.store, record))
    return [found for found in findings if found.severity == "error"]


def fed_model() -> FedModel:
    """Version 0 has three rows; the tail is empty."""
    model = FedModel()
    model.commit(3, (), [], 0)
    model.flush(0)
    return model


def is_told(model: FedModel, directory: Path) -> Told:
    """What delta-rs is told of the newest version, which is its difference."""
    number = model.state.versions[-1].number
    told = feed_by_delta_rs(model.write_out(directory), number, number)
    assert told == model.difference([number])
    return told


def kinds(told: Told) -> dict[object, int]:
    found: dict[object, int] = {}
    for (_, kind, *_), count in told.items():
        found[kind] = found.get(kind, 0) + count
    return found


def test_a_version_that_only_adds_has_no_file(tmp_path: Path) -> None:
    model = fed_model()
    assert kinds(is_told(model, tmp_path)) == {"insert": 3}
    assert model.feed_files() == {0: []}
    metadata = DeltaTable(tmp_path / SHARD).metadata()
    assert metadata.configuration[FEED_PROPERTY] == "true"
    assert FEED_FEATURE in (DeltaTable(tmp_path / SHARD).protocol().writer_features or [])


def test_deletes_and_updates_are_rows_that_went_and_came(tmp_path: Path) -> None:
    model = fed_model()
    model.commit(1, (2,), [0, 1], 0)
    model.flush(0)
    assert kinds(is_told(model, tmp_path)) == {"insert": 3, "delete": 2}
    (name,) = model.feed_files()[1]
    assert change_file_version(name) == 1


def born_and_gone() -> FedModel:
    """Version 1 brings a file with two rows of which one is dead, and takes nothing away."""
    model = fed_model()
    model.commit(2, (), [], 0)
    model.commit(0, (), [4], 0)
    model.flush(0)
    assert not [name for name, live in model.state.versions[0].files.items() if live.deleted]
    return model


def test_rows_born_and_gone_within_a_cut_are_not_told(tmp_path: Path) -> None:
    assert kinds(is_told(born_and_gone(), tmp_path)) == {"insert": 1}


def test_without_a_file_readers_would_be_told_dead_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2, planted: no `cdc` file, since nothing was taken from a file that was there before."""

    def only_of_files_before(state: object, cut: object, *rest: object) -> flush_plan.FlushPlan:
        plan = whole(state, cut, *rest)  # type: ignore[arg-type]
        if plan.feed is None or any(part.change_type == "delete" for part in plan.feed):
            return plan
        entry = flush_plan.encode_commit(plan.actions)
        return flush_plan.FlushPlan(
            plan.objects, plan.log_path, plan.actions, entry, plan.version, plan.schema
        )

    whole = flush_plan.plan_flush
    monkeypatch.setattr(cuts, "plan_flush", only_of_files_before)
    model = born_and_gone()
    assert model.feed_files()[1] == []
    with pytest.raises(AssertionError):
        is_told(model, tmp_path)


def test_a_version_whose_rows_are_all_dead_says_so(tmp_path: Path) -> None:
    """Its file has no rows, but it is there."""
    model = fed_model()
    model.commit(2, (), [], 0)
    model.commit(0, (), [3, 4], 0)
    model.flush(0)
    assert is_told(model, tmp_path) == {}
    assert len(model.feed_files()[1]) == 1
    model.commit(1, (), [], 0)
    # The dead file leaves, which takes no row away.
    model.flush(0)
    assert kinds(is_told(model, tmp_path)) == {"insert": 1}


def test_a_compaction_is_not_told_and_deletes_of_its_cut_are(tmp_path: Path) -> None:
    model = fed_model()
    model.commit(2, (), [0], 0)
    model.flush(0)
    model.compact([0, 1])
    model.flush(0)
    assert model.compactions == 0 or is_told(model, tmp_path) == {}
    model.commit(1, (), [], 0)
    model.flush(0)
    assert model.compactions == 1
    model.compact([0, 1, 2])
    model.commit(1, (), [0, 1], 0)
    model.flush(0)
    assert model.compactions == 2
    assert kinds(is_told(model, tmp_path)) == {"insert": 1, "delete": 2}


def test_large_changes_have_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "FEED_FILE_ROWS", 3)
    model = fed_model()
    model.commit(4, (5, 1), [0, 1, 2], 0)
    model.flush(0)
    assert kinds(is_told(model, tmp_path)) == {"insert": 10, "delete": 3}
    assert len(model.feed_files()[1]) == 4


def test_a_feed_begins_and_ends_with_a_version(tmp_path: Path) -> None:
    model = fed_model()
    model.switch(on=False)
    model.commit(1, (), [0], 0)
    model.flush(0)
    model.switch(on=True)
    model.flush(0)
    model.commit(0, (), [0], 0)
    model.flush(0)
    assert {number: len(names) for number, names in model.feed_files().items()} == {
        0: 0, 1: 0, 2: 0, 3: 1,
    }  # fmt: skip
    assert kinds(is_told(model, tmp_path)) == {"delete": 1}
    with pytest.raises(Exception, match=r"(?i)change data|cdf|feed"):
        feed_by_delta_rs(tmp_path / SHARD, 1, 1)
    model.restart()
    model.check_changes()
    assert feed_findings(model) == []


def test_checkpoints_know_nothing_of_it() -> None:
    """D3: also a start from one."""
    model = fed_model()
    model.commit(1, (), [0], 0)
    model.flush(0)
    model.checkpoint()
    content = model.store.inner.peek(checkpoint_path(SHARD, 1))
    assert not any("_change_data" in path for path in decode_checkpoint(content).adds)
    assert b"_change_data" not in content
    model.prune(0)
    model.restart()
    model.check_changes()


def change_files(model: FedModel) -> list[str]:
    names = asyncio.run(model.store.list(SHARD))
    return [name.removeprefix(f"{SHARD}/") for name in names if "_change_data" in name]


def test_files_live_as_long_as_their_log_entry() -> None:
    """Y6 of `vacuum.py`."""
    model = fed_model()
    for _ in range(4):
        model.commit(1, (), [0], 0)
        model.flush(0)
    assert len(change_files(model)) == 4
    model.vacuum()
    model.vacuum()
    assert len(change_files(model)) == 4
    model.since = model.state.versions[-2].cut
    model.vacuum()
    first = min(model.cuts())
    assert 0 < first < 4
    assert [change_file_version(name) for name in change_files(model)] == [*range(first, 5)]
    assert [*chain(*model.feed_files().values())] == change_files(model)
    assert feed_findings(model) == []
    asyncio.run(remove_table(model.store, SHARD))
    assert asyncio.run(model.store.list(SHARD)) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_before_the_log_entry_leaves_an_orphan_at_most(when: str, tmp_path: Path) -> None:
    model = fed_model()
    model.commit(1, (), [0], 0)
    # The data file, then the feed's file.
    model.faults([None, when])
    model.flush(0)
    assert [*model.cuts()] == [0]
    assert len(change_files(model)) == (when == "after")
    model.restart()
    model.commit(1, (), [0], 0)
    model.flush(0)
    assert kinds(is_told(model, tmp_path)) == {"insert": 2, "delete": 2}
    named = model.feed_files()[1]
    assert {*named} <= {*change_files(model)}
    assert len(change_files(model)) == len(named) + (when == "after")
    for _ in range(2):
        model.commit(1, (), [], 0)
        model.flush(0)
    model.checkpoint()
    model.prune(0)
    model.since = model.state.versions[-1].cut
    model.vacuum()
    assert min(model.cuts()) > 1
    assert change_files(model) == [*chain(*model.feed_files().values())]


def test_a_lost_reply_of_the_log_entry_leaves_one_feed(tmp_path: Path) -> None:
    model = fed_model()
    model.commit(1, (), [0], 0)
    model.faults([None, None, "after"])
    model.flush(0)
    assert [*model.cuts()] == [0, 1]
    model.commit(1, (), [0, 1], 0)
    model.flush(0)
    assert [*model.cuts()] == [0, 1, 2]
    assert is_told(model, tmp_path)
    assert feed_by_delta_rs(tmp_path / SHARD, 0, 2) == model.difference([0, 1, 2])


def test_a_data_file_that_is_gone_or_torn_makes_no_feed() -> None:
    for damage in (None, b"PAR1 torn"):
        model = fed_model()
        (live,) = model.state.versions[-1].files.live_files()
        path = data_path(SHARD, live.file.name)
        asyncio.run(model.store.delete(path))
        if damage is not None:
            asyncio.run(model.store.create(path, damage))
        model.commit(0, (), [0], 0)
        with pytest.raises(NotFound if damage is None else Corrupt):
            model.flush(0)
        assert [*model.cuts()] == [0]


def test_check_finds_a_file_that_is_gone() -> None:
    model = fed_model()
    model.commit(0, (), [0], 0)
    model.flush(0)
    assert feed_findings(model) == []
    (name,) = change_files(model)
    asyncio.run(model.store.delete(data_path(SHARD, name)))
    assert [found.place for found in feed_findings(model)] == [data_path(SHARD, name)]


def eventful() -> FedModel:
    """Readers refuse what is older than a table promises, so it happens now."""
    model = EventfulModel()
    model.now = SystemClock().now() // STEP * STEP
    model.state = replace(model.state, retention_us=3_600_000_000)
    actions: list[tuple] = [
        ("commit", 5, (3,), [], 0),
        ("flush", 0),
        ("commit", 1, (), [0, 2], 0),
        ("flush", 0),
        ("born_and_gone",),
        ("add_column",),
        ("commit", 2, (), [1, 2], 0),
        ("flush", 0),
        ("compact", [0, 1, 2]),
        ("commit", 1, (), [0, 1], 0),
        ("flush", 0),
        ("compact", [0, 1, 2, 3]),
        ("commit", 2, (), [], 0),
        ("flush", 0),
        ("truncate",),
        ("flush", 0),
    ]
    play(model, actions)
    assert model.compactions == 2
    return model


@pytest.mark.spark
def test_delta_spark_is_told_the_difference_of_the_versions(tmp_path: Path) -> None:
    model = eventful()
    path = model.write_out(tmp_path)
    last = model.state.versions[-1].number
    with delta_spark_reader() as spark:
        for first, upto in [(0, last), *[(number, number) for number in range(1, last + 1)]]:
            names = ", ".join(model.schema.names)
            query = (
                f"SELECT _commit_version, _change_type, {names}"
                f" FROM table_changes_by_path('{path}', {first}, {upto})"
            )
            told: Told = Counter(tuple(row) for row in spark.query(query, {}))
            expected = model.difference(range(first, upto + 1))
            assert told == expected, (first, upto)
            assert feed_by_delta_rs(path, first, upto) == expected, (first, upto)
