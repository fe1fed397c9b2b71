"""Make cuts: choose the shards and the timestamp, and take in the result of the flush.

Functions over the core's state; the invariants (C1 ..) are those of `cut_schedule.py`.
"""

from dataclasses import replace

from coordinator.core.completions import CutFlushed
from coordinator.core.cut_schedule import ceil_to, floor_to
from coordinator.core.effects import Effect, FlushCut, Tidy
from coordinator.core.state import CoreState
from storage.shard import Fence
from storage.types import ShardId, Timestamp


def _fence(core: CoreState, shard: ShardId, fence: Fence) -> None:
    """From now on the table is neither read nor written (A4 of `validation.py`); its batches stay
    in the stash.
    """
    core.shards[shard] = replace(core.shards[shard], fence=fence)
    core.fenced.add(shard)
    core.cutting.clean(shard)


def shard_damaged(core: CoreState, shard: ShardId) -> list[Effect]:
    """Somebody has found files of a table gone or broken."""
    state = core.shards.get(shard)
    if state is None or state.fenced:
        return []
    _fence(core, shard, Fence.DAMAGED)
    return core.maintenance.fenced(shard)


def begin_cut_if_due(core: CoreState, now: Timestamp) -> list[Effect]:
    """Begin a cut if one is due (C5)."""
    stopping = core.stopping is not None and bool(core.cutting.dirty_since)
    if core.cutting.in_flight is not None or not (stopping or core.cutting.due(now)):
        return []
    cut = _choose_cut(core)
    if cut is None:
        return []
    dirty = sorted(core.cutting.dirty_since)
    landing = {shard: core.maintenance.landing(shard, cut) for shard in dirty}
    shards = [s for s in dirty if landing[s] or core.shards[s].dirty_at(cut)]
    for shard in {*dirty}.difference(shards):
        if not core.shards[shard].dirty and not core.maintenance.awaits_cut(shard):
            # Asked for while its flush was under way: that flush was all there was to do.
            core.cutting.clean(shard)
    if not shards:
        return []
    core.cutting.begin(cut, shards)
    core.catalog.prune(core.advance_since(now))
    for shard in shards:
        core.shards[shard] = core.shards[shard].pruned(core.holds.since_of(shard))
    states = tuple(core.shards[shard] for shard in shards)
    return [FlushCut(cut, states, {s: landing[s] for s in shards if landing[s]})]


def _choose_cut(core: CoreState) -> Timestamp | None:
    """The newest millisecond below which nothing is on its way (C4); None: try again later."""
    read_ts, last = core.oracle.read_ts(), core.cutting.last_cut
    if core.timeline.manual:
        # Time does not move for the sake of a cut: it may have to come again (C1).
        return read_ts if read_ts >= last else None
    # A shard that could not be flushed is tried again, also if nothing is written.
    cut = max(ceil_to(read_ts, core.unit), Timestamp(last + core.unit))
    if core.groups.pending_ts is not None or not core.oracle.ensure_at_least(cut):
        cut = floor_to(read_ts, core.unit)
    return cut if cut > last else None


def cut_flushed(core: CoreState, message: CutFlushed, now: Timestamp) -> list[Effect]:
    """Take what was flushed, and have tidied what every shard has."""
    for shard, version in message.versions.items():
        state = core.shards[shard].flushed(version)
        core.shards[shard] = state
        core.locks.rename_rows(state)
        if state.tail or (state.dirty and not core.timeline.manual):
            # A cut may be ahead of the clock, and an age below zero would be due at once.
            since = min(message.cut, now)
            core.cutting.wrote(shard, state, added=state.tail_bytes, now=since)
    applied = message.cut
    for shard, fence in message.fences.items():
        _fence(core, shard, fence)
    # An attempt before may have reached an earlier cut only.
    late = {s for s in message.versions if core.shards[s].dirty_at(message.cut)}
    for shard in {*message.failed, *late, *core.fenced} & core.shards.keys():
        state = core.shards[shard]
        if core.stopping is None and not state.fenced:
            core.cutting.failed(shard, now)
        if not state.dirty_at(message.cut):
            continue
        behind = [commit.ts for commit in state.tail[:1]]
        if not behind or not state.versions:
            # The log does not tell of the table as it is defined, or is not there at all.
            behind.append(state.created)
        applied = min(applied, Timestamp(min(behind) - 1))
    flushed = {shard: version.cut for shard, version in message.versions.items()}
    return [Tidy(applied, flushed), *core.maintenance.flushed(message, now)]
