"""A deposed coordinator's flush that comes late: adopted or refused, never applied twice.

    old    ── flush at cut 1 ── paused ─────────────────────── log entry N ──▶ ?
    new            └── loads the log and the stash ── commits, flush at cut 2 ──▶ ?

Nothing that the old one committed is missing in what the new one has loaded, since it was fenced
first; and the new one's cuts are not before the old one's, since its timestamps begin at the old
ceiling. So the old version N, if it comes first, holds just the new one's tail up to cut 1, and is
adopted; if it comes second, its name is taken, and to the old one the new one's looks foreign.
"""

import asyncio
import contextlib
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.cuts import flush
from storage.errors import ForeignWriter
from storage.live_files import LiveFile
from storage.shard import ShardState
from storage.types import Timestamp
from tests.unit.storage.delta.model import STEP
from tests.unit.storage.delta.test_flush import COMPACT, STEPS, FlushedModel, at_once


@dataclass(frozen=True)
class Deposed:
    """What the old coordinator was about to flush when the new one took over."""

    state: ShardState
    cut: Timestamp
    rewritten: tuple[LiveFile, ...]

    @property
    def has_something(self) -> bool:
        later = self.state.cut is None or self.cut > self.state.cut
        return later and (bool(self.rewritten) or self.state.dirty_at(self.cut))

    def come_late(self, model: FlushedModel) -> None:
        """Write what it was about to, past all faults of the new one's store."""
        asyncio.run(
            flush(
                model.store.inner,
                self.state,
                self.cut,
                rewritten=self.rewritten,
                run_blocking=at_once,
            )
        )


def succeeded(model: FlushedModel, *, gap: int = STEP) -> Deposed:
    """The model goes on as the new coordinator: `gap` is between the old cut and its first one."""
    model.faults([])
    old = Deposed(model.state, Timestamp(model.now), model.rewritten)
    model.now += gap
    model.restart()
    return old


def play(model: FlushedModel, actions: list[tuple]) -> None:
    for name, *arguments in actions:
        getattr(model, name)(*arguments)


@given(
    st.lists(STEPS, max_size=4),
    st.lists(COMPACT, max_size=1),
    st.lists(STEPS, max_size=2),
    st.lists(STEPS, max_size=3),
)
@settings(max_examples=80, deadline=None)
def test_a_late_flush_changes_no_answer(
    before: list[list[tuple]],
    compacted: list[tuple],
    meanwhile: list[list[tuple]],
    after: list[list[tuple]],
) -> None:
    model = FlushedModel()
    play(model, [action for step in before for action in step])
    model.faults([])
    play(model, compacted)
    old = succeeded(model)
    play(model, [action for step in meanwhile for action in step])
    if old.has_something:
        with contextlib.suppress(ForeignWriter):
            old.come_late(model)
    play(model, [action for step in after for action in step])
    model.faults([])
    model.check()
    model.commit(1, (), [3, 7], 2)
    model.flush(0)
    model.flush(0)
    model.check()
    model.restart()
    model.check()


def test_a_late_flush_that_comes_first_is_adopted() -> None:
    model = FlushedModel()
    model.commit(3, (), [], 0)
    old = succeeded(model)
    model.commit(2, (), [0], 0)
    old.come_late(model)
    model.flush(0)
    assert [version.number for version in model.state.versions] == [1]
    # The new one's first attempt, of all rows at once, is left as an orphan.
    assert len(model.state.versions[-1].files) == 2
    model.check()
    model.restart()
    assert [version.number for version in model.state.versions] == [0, 1]
    model.check()


def test_a_late_flush_at_the_very_cut_of_the_new_one_is_adopted() -> None:
    model = FlushedModel()
    model.commit(3, (), [], 0)
    old = succeeded(model, gap=0)
    old.come_late(model)
    model.flush(0)
    assert [version.number for version in model.state.versions] == [0]
    model.check()
    model.restart()
    model.check()


def test_a_late_flush_that_comes_second_is_refused() -> None:
    model = FlushedModel()
    model.commit(3, (), [], 0)
    old = succeeded(model)
    model.commit(2, (), [0], 0)
    model.flush(0)
    before = asyncio.run(model.store.list(""))
    with pytest.raises(ForeignWriter):
        old.come_late(model)
    log = [name for name in asyncio.run(model.store.list("")) if "_delta_log" in name]
    assert log == [name for name in before if "_delta_log" in name]
    model.check()
    model.restart()
    model.check()


def test_a_late_compaction_is_adopted_by_one_that_has_deleted_rows_meanwhile() -> None:
    model = FlushedModel()
    for _ in range(3):
        model.commit(2, (), [], 0)
        model.flush(0)
    model.now += STEP
    model.compact([0, 1, 2])
    assert model.rewritten
    old = succeeded(model)
    model.commit(1, (), [0, 3], 0)
    old.come_late(model)
    model.flush(0)
    model.now += STEP
    model.flush(0)
    model.check()
    model.restart()
    assert model.state.versions[-1].number == 4
    model.check()
