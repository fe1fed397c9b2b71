"""The change data feed, read by others, is the difference of the versions."""

import asyncio
from collections.abc import Mapping
from itertools import combinations_with_replacement
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from deltalake import DeltaTable
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage import cuts
from storage.batch import WriteBatch
from storage.check import Finding, ShardRecord, check_shard
from storage.delta import flush_plan
from storage.delta.change_feed import FeedRows, change_file_version
from storage.delta.checkpoint import decode_checkpoint
from storage.delta.layout import checkpoint_path, commit_path, data_path
from storage.delta.log import decode_commit
from storage.delta.table import FEED_FEATURE, FEED_PROPERTY
from storage.delta.vacuum import remove_table
from storage.errors import Corrupt, NotFound
from storage.types import Source, Timestamp
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
