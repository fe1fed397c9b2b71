"""One gather, as far as lanes go: which members become units, and which units join the group.

    ready units ──validated again──▶ group            lost ─▶ the rest once more, then without views
    members that write inputs ─▶ a unit of their lane, if that is idle; otherwise they wait
    units without a change of an input, or with too many ─▶ group, at once

INVARIANTS
  N5  a unit joins a group whole or not at all, its deltas with it. A delta counts only if the view
      is as exact as it was, and no input and no stored row has changed since it was computed.
      Otherwise the view is left behind in the same record (V2).
  N6  who waits for lanes waits for all of them at once, and is passed by nobody who wants one of
      them (V8). So nobody starves, and no two wait for each other.
  N7  who has read a view of its lane is the first of a unit: its own delta is no conflict (V9).
      Behind others, whose deltas are not known yet, it would be refused as by V7.
  N8  a unit that has lost a validation is maintained once more without the losers. The second time
      its views are left behind (V11).
  N9  a view that is behind is attached by a unit: to its rows, which catch-up has computed and
      written, the unit adds what has changed since, and what its own members change. So inputs
      that never rest keep no view from being attached. If its deltas do not come in time, it stays
      behind, and the other members commit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from coordinator.core.admission import commit_refusal
from coordinator.core.catalog import apply_changes
from coordinator.core.gathering import (
    Gathering,
    add_changes,
    admit_batches,
    admit_inserts,
    batch_refusal,
)
from coordinator.core.group_members import (
    GroupMember,
    PendingAttach,
    PendingChange,
    PendingCommit,
    PendingInsert,
)
from coordinator.core.messages.catalog_changes import AttachView, LeftBecause
from coordinator.core.messages.identities import ConnectionId, RequestId
from coordinator.core.messages.replies import Refused
from coordinator.core.own_writes import merge_batches
from coordinator.core.recent_writes import committed_writes
from coordinator.core.short_writes.gathered import ShortWritesOfGroup
from coordinator.core.sources.batches import PendingBatch
from coordinator.core.stale_definitions import stale_refusal
from coordinator.core.validation import RecentHistory, WritesAhead
from coordinator.core.views.attaching import AttachableViews, attach_refusal
from coordinator.core.views.deltas import SAME_ROWS, MaintainedView, ViewDelta
from coordinator.core.views.exactness import changed_definitions
from coordinator.core.views.lane_map import Lane, joined_lane, touched_tables
from coordinator.core.views.lanes import EvaluatedUnit, Lanes, LaneUnit
from sql.catalog.catalog import Catalog
from storage.batch import WriteBatch
from storage.types import ShardId

EARLIER_FIRST: Final = "an earlier statement of the session has to go first"

_NOTHING: Final = WriteBatch()


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """How a gather takes members. `take`: evaluate one at its place; True: it was in flight or in a
    lane. `keeps_rows`: K2 and A9 of one that was in a lane. `room`: members and bytes.
    `attachable`: N9.
    """

    take: Callable[[Gathering, GroupMember, bool], None]
    keeps_rows: Callable[[PendingCommit], Refused | None]
    room: tuple[int, int]
    attachable: AttachableViews


@dataclass(slots=True)
class _Forming:
    """A unit in the making. `again`: what it was before it lost a validation."""

    lane: Lane
    group: Gathering
    again: LaneUnit | None = None
    attached: int | None = None
    """The view that it attaches (N9)."""

    def has_room(self, room: tuple[int, int]) -> bool:
        return self.again is None and self.group.has_room(*room)


class LaneGathering:
    """See the module. `base`: the catalog of what is committed."""

    def __init__(
        self, lanes: Lanes, group: Gathering, base: Catalog, rules: AdmissionRules
    ) -> None:
        self._lanes = lanes
        self._group = group
        self._base = base
        self._rules = rules
        self._busy: set[int] = set()
        self._forming: list[_Forming] = []
        self._sessions: dict[ConnectionId, _Forming] = {}
        self.units: list[LaneUnit] = []
        """Those that are a part of the group."""
        self.formed: list[LaneUnit] = []
        """Those whose views are to be maintained."""

    def admit_ready(self) -> None:
        """Units whose deltas are known go first."""
        for unit in self._lanes.waiting.values():
            self._busy |= unit.lane.tables
            self._group.waiting_sessions.update(unit.sessions)
        ready, self._lanes.ready = self._lanes.ready, []
        for unit in ready:
            self._busy |= unit.lane.tables
            lost = self._losers(unit)
            if lost or self._is_outdated(unit):
                self._try_again(unit, lost)
            else:
                self._admit(unit)

    def fed(self) -> Iterable[PendingBatch]:
        """The batches of sources in its units."""
        return (batch for unit in self.units for batch in unit.work.fed)

    # --- members -----------------------------------------------------------------------------

    def takes(self, pending: GroupMember) -> bool:
        """Whether a member is in a lane now, or waits for one (N6)."""
        if isinstance(pending, PendingAttach):
            self._take_attach(pending)
            return True
        known = self._sessions.get(pending.owner)
        touched = touched_tables(pending)
        lanes = self._lanes.map_of(self._group.catalog).touching(touched)
        if not touched.isdisjoint(self._busy):
            return self._wait(pending, lanes)
        written = pending.tables()
        writing = [lane for lane in lanes if not lane.inputs.isdisjoint(written)]
        if not all(self._is_committed(view) for lane in writing for view in lane.views):
            return self._wait(pending, lanes)  # attached by a member ahead
        near = [f for f in self._forming if not f.lane.tables.isdisjoint(touched)]
        # The inputs of a view that is about to be attached are those of no lane yet.
        writing += [f.lane for f in near if f.attached and not f.lane.inputs.isdisjoint(written)]
        if not writing or not self._may_be_maintained(pending, writing):
            return self._wait(pending, lanes) if near or known is not None else False
        wanted = joined_lane(writing)
        forming = self._forming_for(pending, wanted)
        if forming is None or (known is not None and known is not forming):
            return self._wait(pending, lanes)
        self._sessions[pending.owner] = forming
        self._rules.take(forming.group, pending, False)
        self._drain(forming.group)
        return True

    def _take_attach(self, pending: PendingAttach) -> None:
        """N9: it begins a unit, if nobody ahead in this gather has touched what it rests on."""
        group, exact = self._group, pending.rows.exact
        known = self._lanes.map_of(group.catalog).touching({*exact.inputs, pending.oid})
        touched = exact.inputs.union({pending.oid}, *(lane.tables for lane in known))
        ahead = (*group.members, *group.inserts, *group.fed)
        is_touched = any(not touched.isdisjoint(touched_tables(one)) for one in ahead)
        changed, any_type = changed_definitions(group.changes)
        is_touched = is_touched or any_type or not exact.definitions.isdisjoint(changed)
        near = any(not f.lane.tables.isdisjoint(touched) for f in self._forming)
        if is_touched or near or not touched.isdisjoint(self._busy):
            self._busy |= touched
            group.wait(pending)
            return
        view = self._rules.attachable.find(pending, group.catalog)
        if isinstance(view, Refused):
            group.refuse(pending, view)
            return
        lane = Lane.of([*(view for lane in known for view in lane.views), view])
        forming = _Forming(lane, self._beside(), attached=pending.oid)
        self._rules.take(forming.group, pending, False)
        self._forming.append(forming)
        self._sessions[pending.owner] = forming

    def _wait(self, pending: GroupMember, lanes: Iterable[Lane]) -> bool:
        for lane in lanes:
            self._busy |= lane.tables
        self._group.wait(pending)
        return True

    def _is_committed(self, view: MaintainedView) -> bool:
        return self._base.exact_views.get(view.oid) == view.exact

    def _forming_for(self, pending: GroupMember, wanted: Lane) -> _Forming | None:
        """The unit that takes a member; None: it waits."""
        near = [f for f in self._forming if not f.lane.tables.isdisjoint(wanted.tables)]
        if not near:
            forming = _Forming(wanted, self._beside())
            self._forming.append(forming)
            return forming
        forming = near[0]
        if len(near) > 1 or not wanted.tables <= forming.lane.tables:
            return None
        reads = _has_read(pending, forming.lane.views)
        has_members = bool(forming.group.members or forming.group.inserts or forming.group.fed)
        if (reads and has_members) or not forming.has_room(self._rules.room):
            return None
        return forming

    def _beside(self) -> Gathering:
        """A group in the making that is validated by itself."""
        group, ahead = self._group, WritesAhead()
        recent = RecentHistory(group.recent.shards, group.recent.writes, group.recent.counts, ahead)
        short = ShortWritesOfGroup(
            group.short.shards, group.short.schema_of, group.short.locks, ahead
        )
        return Gathering(group.catalog, [], [], [], [], {}, [], recent, short)

    def _may_be_maintained(self, pending: GroupMember, lanes: Sequence[Lane]) -> bool:
        """Whether its changes of inputs are few, known row by row, and no definitions."""
        rows_max = self._lanes.rows_max
        if isinstance(pending, PendingInsert):
            return len(pending.insertion.rows) <= rows_max
        if isinstance(pending, PendingChange | PendingAttach):
            return True
        if isinstance(pending, PendingCommit):
            if pending.txn.changes:
                return False
            shards = {
                ShardId(table.shard)
                for oid, table in pending.txn.tables.items()
                if any(oid in lane.inputs for lane in lanes)
            }
            writes = pending.txn.writes
            return _is_small((writes[s].merged() for s in shards & writes.keys()), rows_max)
        return _is_small(pending.writes.values(), rows_max)

    def _drain(self, taken: Gathering) -> None:
        """Who is in no lane after all has left the queue, or stays there."""
        for pending, refused in taken.refused:
            self._group.refuse(pending, refused)
        for pending, blocked in taken.blocked:
            self._group.block(pending, blocked)
        for pending in taken.waiting:
            self._group.wait(pending)
        taken.refused, taken.blocked, taken.waiting = [], [], []

    # --- units -------------------------------------------------------------------------------

    def finish(self) -> None:
        """All members were looked at: units are evaluated whole."""
        for forming in self._forming:
            taken = forming.group
            add_changes(taken)
            admit_inserts(taken)
            admit_batches(taken)
            self._drain(taken)
            if taken.members:
                self._formed(forming)
            elif forming.again is not None:
                self._lanes.over.add(forming.again.txn)
        if self._forming:
            self._group.waiting.sort(key=_ticket)

    def _formed(self, forming: _Forming) -> None:
        work = self._evaluated(forming)
        unit = forming.again
        if unit is None:
            unit = self._lanes.new_unit(forming.lane, work)
        else:
            unit.work, unit.tries = work, unit.tries + 1
        shards = self._input_shards(unit)
        changed = [batch for shard, batch in work.batches.items() if shard in shards]
        if not changed and unit.attach is None:
            unit.deltas = dict.fromkeys((view.oid for view in unit.lane.views), SAME_ROWS)
        elif not self._lanes.has_workers:
            unit.deltas, unit.given_up = {}, LeftBecause.BUSY
        elif not _is_small(changed, self._lanes.rows_max):
            unit.deltas, unit.given_up = {}, LeftBecause.MANY_ROWS
        else:
            self.formed.append(unit)
            return
        lost = self._losers(unit)
        if not lost and not self._is_outdated(unit):
            self._admit(unit)
            return
        self._lanes.over.add(unit.txn)
        for member in unit.work.members:
            if member.request in lost:
                self._group.refuse(member, lost[member.request])
            else:
                self._group.wait(member)

    def _evaluated(self, forming: _Forming) -> EvaluatedUnit:
        taken = forming.group
        shards = taken.recent.shards
        tables = taken.catalog.named_tables.by_oid
        of_lane = [ShardId(tables[oid].shard) for oid in forming.lane.tables if oid in tables]
        return EvaluatedUnit(
            tuple(taken.members),
            {shard: merge_batches(batches) for shard, batches in taken.batches.items()},
            taken.recent.ahead.entries,
            tuple(taken.notifying),
            taken.answers,
            tuple(taken.fed),
            {shard: shards[shard].last_write for shard in of_lane if shard in shards},
        )

    def _input_shards(self, unit: LaneUnit) -> set[ShardId]:
        tables = self._group.catalog.named_tables.by_oid
        return {ShardId(tables[oid].shard) for oid in unit.lane.inputs if oid in tables}

    def _losers(self, unit: LaneUnit) -> dict[RequestId, Refused]:
        """Its members that may not commit any more, after all that the group has so far."""
        self._group.short.tell_ahead()
        found: dict[RequestId, Refused] = {}
        for member in unit.work.members:
            refused = self._verdict(member)
            if refused is not None:
                found[member.request] = refused
        return found

    def _verdict(self, member: GroupMember) -> Refused | None:
        group = self._group
        match member:
            case PendingCommit(txn=txn):
                lost = self._rules.keeps_rows(member)
                return lost or commit_refusal(group, txn, txn.final_writes(), group.catalog)
            case PendingInsert(insertion=insertion):
                return group.definition_verdict(insertion.table, insertion.names)
            case PendingChange(change=change):
                return group.definition_verdict(change.table, change.names)
            case PendingAttach():
                found = self._rules.attachable.find(member, group.catalog)
                return found if isinstance(found, Refused) else None
            case _:
                return batch_refusal(group, member)

    def _is_outdated(self, unit: LaneUnit) -> bool:
        """Whether short writes would find other rows now than when they were evaluated."""
        changes = (m.change for m in unit.work.members if isinstance(m, PendingChange))
        return any(self._has_changed(unit, ShardId(change.table.shard)) for change in changes)

    def _has_changed(self, unit: LaneUnit, shard: ShardId) -> bool:
        """Whether a shard of the lane was written to since the unit was evaluated."""
        state = self._group.recent.shards.get(shard)
        seen = unit.work.seen.get(shard)
        ahead = self._group.recent.ahead.entries
        is_ahead = shard in self._group.batches or shard in ahead
        return state is None or state.last_write != seen or is_ahead

    def _try_again(self, unit: LaneUnit, lost: dict[RequestId, Refused]) -> None:
        """N8."""
        group = self._group
        attached = None if unit.attach is None else unit.attach.oid
        forming = _Forming(unit.lane, self._beside(), unit, attached)
        if unit.tries:
            self._lanes.over.add(unit.txn)
        else:
            self._forming.append(forming)
        for member in unit.work.members:
            if member.request in lost:
                group.refuse(member, lost[member.request])
            elif group.must_leave(member):
                group.refuse(member, stale_refusal(EARLIER_FIRST))
            elif unit.tries and isinstance(member, PendingAttach):
                group.refuse(member, attach_refusal("its unit has lost twice"))
            elif unit.tries:
                self._rules.take(group, member, True)
            else:
                self._sessions[member.owner] = forming
                self._rules.take(forming.group, member, True)
        self._drain(forming.group)

    def _admit(self, unit: LaneUnit) -> None:
        """N5."""
        group, work = self._group, unit.work
        kept: list[tuple[MaintainedView, ViewDelta]] = []
        because: dict[int, LeftBecause] = {}
        for view in unit.lane.views:
            delta = (unit.deltas or {}).get(view.oid)
            if delta is not None and self._may_keep(unit, view):
                kept.append((view, delta))
            else:
                because[view.oid] = unit.given_up if delta is None else LeftBecause.CONFLICT
        unit.followed = {view.oid: _changed_rows(delta.batch) for view, delta in kept}
        attach = unit.attach
        is_attached = attach is not None and any(view.oid == attach.oid for view, _ in kept)
        if attach is not None and not is_attached:
            group.refuse(attach, attach_refusal("what has changed since was not added in time"))
            # It was answered: without a timestamp for the group, the others come back (V10).
            others = tuple([member for member in work.members if member is not attach])
            unit.work = work = replace(work, members=others)
        group.members.extend(work.members)
        group.notifying.extend(work.notifying)
        group.answers.update(work.answers)
        for shard, written in work.batches.items():
            group.batches.setdefault(shard, []).append(written)
            group.nbytes += written.nbytes
            batch = written
            for entry in work.entries.get(shard, ()):
                group.recent.ahead.add(shard, group.recent.shards.get(shard), batch, entry)
                batch = _NOTHING  # its deletes are known by now
        for view, delta in kept:
            self._add_delta(view, delta)
        group.leave_views(unit.tables(), maintained=unit.followed, because=because)
        if attach is not None and is_attached:
            change = AttachView(attach.oid, attach.rows.exact)
            version = group.catalog.version + 1
            group.catalog = apply_changes(group.catalog, [change], version=version)
            group.changes.append(change)
        if work.members:
            self.units.append(unit)
        else:
            self._lanes.over.add(unit.txn)

    def _may_keep(self, unit: LaneUnit, view: MaintainedView) -> bool:
        tables = self._group.catalog.named_tables.by_oid
        attach = unit.attach
        if attach is not None and view.oid == attach.oid:
            if self._is_redefined(view):
                return False
        elif self._group.catalog.exact_views.get(view.oid) != view.exact:
            return False
        needed = [tables.get(oid) for oid in (view.oid, *view.exact.inputs)]
        for table in needed:
            if table is None or self._has_changed(unit, ShardId(table.shard)):
                return False
        return not self._group.recent.shards[ShardId(view.table.shard)].fenced

    def _is_redefined(self, view: MaintainedView) -> bool:
        """Whether a member ahead changes what the query of a view means."""
        changed, any_type = changed_definitions(self._group.changes)
        return any_type or view.oid in changed or not view.exact.definitions.isdisjoint(changed)

    def _add_delta(self, view: MaintainedView, delta: ViewDelta) -> None:
        """The rows of a view are an entry for members behind it (V7)."""
        group, batch = self._group, delta.batch
        shard = ShardId(view.table.shard)
        if not batch.deletes and not batch.new_rows:
            return
        group.batches.setdefault(shard, []).append(batch)
        group.nbytes += batch.nbytes
        entry = committed_writes(batch, delta.old)
        group.recent.ahead.add(shard, group.recent.shards[shard], batch, entry)


def _has_read(pending: GroupMember, views: Iterable[MaintainedView]) -> bool:
    """N7: whether it has read stored rows of one of these."""
    if not isinstance(pending, PendingCommit):
        return False
    return any(ShardId(view.table.shard) in pending.txn.reads for view in views)


def _is_small(batches: Iterable[WriteBatch], rows_max: int) -> bool:
    count = 0
    for batch in batches:
        if batch.staged:
            return False
        count += _changed_rows(batch)
    return count <= rows_max


def _changed_rows(batch: WriteBatch) -> int:
    return batch.new_rows + sum(map(len, batch.deletes.values()))


def _ticket(member: GroupMember) -> int:
    return member.ticket
