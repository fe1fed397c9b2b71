"""Ids and commits of rows: how they are noted, and logs of before there were any.

That they stay with their rows through flushes, compactions and restarts is part of the models'
`check` (`test_flush.py`, `test_vacuum.py`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from storage.delta import flush_plan
from storage.delta.history import ROW_IDS_TAG, decode_row_ids, encode_row_ids
from storage.errors import Corrupt
from storage.row_versions import FIRST_NEW_ID, IN_FILE, PAST_IDS, RowIds
from storage.types import Timestamp
from tests.unit.storage.delta.model import STEP
from tests.unit.storage.delta.test_flush import FlushedModel


class OldModel(FlushedModel):
    """A log that its first flushes wrote without ids; what is asked is that ids stay."""

    known: dict[int, tuple[int, int]]

    def check_versions(self, view: Any) -> None:
        """Ids that were seen once are those of the same rows, and of no others."""
        seen = self.seen_versions(view)
        assert len({id_ for id_, _ in seen.values()}) == len(seen)
        assert not {id_ for id_, _ in seen.values()} & {
            id_ for key, (id_, _) in self.known.items() if key not in seen
        }
        assert seen == {**seen, **{key: self.known[key] for key in seen.keys() & self.known.keys()}}
        self.known |= seen

    def check(self) -> None:
        """Of the present only: older versions are of rows that nobody can address."""
        self.check_versions(self.state.view(Timestamp(self.now + STEP)))


@pytest.fixture
def old_log(monkeypatch: pytest.MonkeyPatch) -> OldModel:
    """Two files, one with a deleted row, from before there were ids; then a commit in the tail."""
    add = flush_plan._add

    def add_without_ids(*args: Any, **options: Any) -> Any:
        made = add(*args, **options)
        return replace(made, tags={k: v for k, v in made.tags.items() if k != ROW_IDS_TAG})

    model = OldModel()
    model.known = {}
    with monkeypatch.context() as patch:
        patch.setattr(flush_plan, "_add", add_without_ids)
        patch.setattr(flush_plan, "_row_count", lambda *_: ())
        model.commit(3, (2,), [], 0)
        model.flush(0)
        model.commit(2, (), [1], 0)
        model.flush(0)
    model.commit(2, (), [2], 0)
    model.restart()
    return model


def test_rows_of_an_old_log_have_ids_before_and_after_the_first_flush(old_log: OldModel) -> None:
    old_log.check()
    first = dict(old_log.known)
    assert (
        sorted(id_ for id_, _ in first.values() if id_ < PAST_IDS)
        == sorted(id_ for id_, _ in first.values())[: len(first) - 2]
    )
    assert {id_ for id_, _ in first.values() if id_ >= FIRST_NEW_ID} == {
        FIRST_NEW_ID,
        FIRST_NEW_ID + 1,
    }
    old_log.restart()
    old_log.check()
    old_log.flush(0)
    old_log.check()
    old_log.restart()
    old_log.check()
    assert old_log.known == first
    assert old_log.state.versions[-1].next_id == FIRST_NEW_ID + 2


def test_the_first_flush_notes_the_ids_of_an_old_log(old_log: OldModel) -> None:
    old_log.check()
    old_log.flush(0)
    old_log.commit(1, (), [], 0)
    old_log.flush(0)
    old_log.checkpoint()
    old_log.now += STEP
    old_log.prune(0)
    old_log.restart()
    assert [version.number for version in old_log.state.versions] == [3], "from the checkpoint"
    old_log.check()
    old_log.compact([0, 1, 2])
    old_log.commit(1, (), [], 0)
    old_log.flush(0)
    old_log.restart()
    old_log.check()
    assert old_log.state.versions[-1].rewritten
    assert old_log.state.versions[-1].next_id == FIRST_NEW_ID + 4


def test_a_compaction_may_be_the_first_to_note_ids_of_an_old_log(old_log: OldModel) -> None:
    old_log.check()
    old_log.compact([0])
    old_log.flush(0)
    old_log.check()
    old_log.restart()
    old_log.check()


def test_ids_of_rows_that_are_gone_are_not_given_again() -> None:
    model = FlushedModel()
    model.commit(5, (), [], 0)
    model.flush(0)
    model.commit(1, (), [0, 1, 2, 3, 4], 0)
    model.flush(0)
    model.commit(1, (), [0], 0)
    model.flush(0)
    model.checkpoint()
    model.prune(0)
    model.restart()
    model.commit(1, (), [], 0)
    assert model.state.tail[-1].first_id == 7
    model.check()


@pytest.mark.parametrize(
    "ids", [IN_FILE, RowIds.from_first(7), RowIds((0, 3, 9), (100, 1 << 40, 5))]
)
def test_ids_are_noted_and_read(ids: RowIds) -> None:
    assert decode_row_ids(encode_row_ids(ids)) == ids


def test_torn_ids_are_corrupt() -> None:
    with pytest.raises(Corrupt):
        decode_row_ids(encode_row_ids(RowIds.from_first(7))[:-4])


def test_ranges_of_ids() -> None:
    assert RowIds.of_commits([(2, 0), (3, 2), (1, 9), (1, 10)]) == RowIds((0, 5), (0, 9))


def test_rows_of_several_commits_and_ranges() -> None:
    model = FlushedModel()
    model.commit(2, (), [], 0)
    model.commit(1, (4,), [], 0)
    model.commit(3, (), [], 0)
    model.flush(0)
    live = next(f for f in model.state.versions[-1].files.live_files() if not f.staged)
    origins = live.file.origins
    assert origins is not None
    rows = np.arange(6, dtype=np.int64)
    assert origins.row_ids(rows).tolist() == [0, 1, 2, 7, 8, 9]
    assert origins.commits(rows).tolist() == [STEP, STEP, 2 * STEP, *[3 * STEP] * 3]
    assert [part.tolist() for part in origins.pieces()] == [
        [0, 2, 3],
        [0, 2, 7],
        [STEP, 2 * STEP, 3 * STEP],
    ]
