"""Cuts of a shard that has nothing to tell by now, but had at the cut."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa

from coordinator.core.completions import CutFlushed
from coordinator.core.cut_schedule import CutSchedule
from coordinator.core.cuts import begin_cut_if_due, cut_flushed
from coordinator.core.effects import FlushCut
from coordinator.core.settings import CoreSettings
from storage.live_files import FileMap
from storage.shard import ShardState, Version
from storage.types import ShardId, Timestamp
from storage.view_marks import BehindMark

SHARD = ShardId("t1")
SCHEMA = pa.schema([("a", pa.int64())])


def _core(state: ShardState, read_ts: int) -> Any:
    """A core with one shard, while a commit is on its way: the cut lies before it."""
    core = Mock()
    core.stopping, core.unit, core.fenced = None, 1_000, set[ShardId]()
    core.shards = {SHARD: state}
    core.timeline.manual = False
    core.cutting = CutSchedule(CoreSettings(cut_age_us=1), Timestamp(5_000))
    core.groups.pending_ts = Timestamp(read_ts + 1)
    core.oracle.read_ts.return_value = Timestamp(read_ts)
    core.maintenance.landing.return_value = ()
    core.maintenance.awaits_cut.return_value = False
    core.maintenance.flushed.return_value = []
    core.holds.since_of.return_value = Timestamp(0)
    return core


def test_a_view_that_was_left_before_a_cut_and_attached_behind_it() -> None:
    """Found by random views: the coordinator ended, and then the log told for ever that the view is
    behind.
    """
    first = Version(0, Timestamp(5_000), FileMap())
    marks = (
        BehindMark(Timestamp(4_000), None),
        BehindMark(Timestamp(5_900), Timestamp(5_900)),
        BehindMark(Timestamp(6_100), None),
    )
    state = ShardState(SHARD, SCHEMA, Timestamp(1_000), (first,), marks=marks)
    assert not state.dirty, "at its newest timestamp the log tells all"
    core = _core(state, 6_500)
    core.cutting.wrote(SHARD, state, added=0, now=Timestamp(6_100))
    (flush,) = begin_cut_if_due(core, Timestamp(7_000))
    assert isinstance(flush, FlushCut)
    assert flush.cut == 6_000
    assert flush.states[0].shard == SHARD
    told = replace(first, number=1, cut=flush.cut, behind_since=Timestamp(5_900))
    cut_flushed(core, CutFlushed(flush.cut, {SHARD: told}, {}), Timestamp(7_000))
    core.cutting.ended()
    core.oracle.read_ts.return_value = Timestamp(8_500)
    (flush,) = begin_cut_if_due(core, Timestamp(9_000))
    assert isinstance(flush, FlushCut)
    assert flush.states[0].dirty_at(flush.cut)
