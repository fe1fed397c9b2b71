"""Bugs planted into views that follow their inputs: the simulation must find each of them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from coordinator.core import admission, group_commit
from coordinator.core.catalog import encode_changes
from coordinator.core.change_streams import requests, subscriptions
from coordinator.core.gathering import Gathering
from coordinator.core.group_commit import GroupCommit, UnwrittenHolder
from coordinator.core.group_members import GroupMember, PendingAttach, PendingInsert
from coordinator.core.leases import WriteLeases
from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    LeaveView,
    LeftBecause,
)
from coordinator.core.messages.replies import Refused
from coordinator.core.recent_writes import CommittedWrites
from coordinator.core.transactions import Transaction
from coordinator.core.validation import RecentHistory, conflict_refusal
from coordinator.core.views import exactness, lane_gathering, lane_steps
from coordinator.core.views.attaching import AttachableViews
from coordinator.core.views.deltas import MaintainedView, ViewDelta, ViewsMaintained
from coordinator.core.views.lane_gathering import LaneGathering
from coordinator.core.views.lanes import Lanes, LaneUnit
from sql.catalog.catalog import Catalog
from storage.batch import WriteBatch
from storage.shard import ShardState
from storage.stash import Put
from storage.types import ShardId, Timestamp
from tests.resilience.sim.planted import Plant, Planted, assert_found

NO_CAUSES: Mapping[int, LeftBecause] = {}


def behind_unnoticed(patch: pytest.MonkeyPatch) -> None:
    """Who has read stored rows commits on them, though the view has been left behind (V7)."""
    patch.setattr(admission, "behind_refusal", lambda *_: None)


def behind_unnoticed_in_the_group(patch: pytest.MonkeyPatch) -> None:
    """The same, if that was by a member ahead in the same group."""
    refusal = admission.behind_refusal
    leave = Gathering.leave_views
    before: dict[int, Catalog] = {}

    def late(txn: Transaction, now: Catalog) -> Refused | None:
        return refusal(txn, before.get(id(now), now))

    def leave_views(
        self: Gathering,
        written: Collection[int],
        changes: Iterable[CatalogChange] = (),
        *,
        maintained: Collection[int] = (),
        because: Mapping[int, LeftBecause] = NO_CAUSES,
    ) -> None:
        was = self.catalog
        leave(self, written, changes, maintained=maintained, because=because)
        if self.catalog is not was:
            before[id(self.catalog)] = before.get(id(was), was)

    patch.setattr(admission, "behind_refusal", late)
    patch.setattr(Gathering, "leave_views", leave_views)


def behind_unrecorded(patch: pytest.MonkeyPatch) -> None:
    """The end of an exact interval is known to the process only (V2)."""

    def encode(ts: Timestamp, changes: Iterable[CatalogChange]) -> tuple[Put, ...]:
        return encode_changes(ts, [one for one in changes if not isinstance(one, LeaveView)])

    patch.setattr(group_commit, "encode_changes", encode)


def _left_alone(kind: str) -> Plant:
    """The interval goes on over commits of one kind, which maintain nothing (V1)."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        leave = Gathering.leave_views

        def some(
            self: Gathering,
            written: Collection[int],
            changes: Iterable[CatalogChange] = (),
            *,
            maintained: Collection[int] = (),
            because: Mapping[int, LeftBecause] = NO_CAUSES,
        ) -> None:
            # Those of a transaction are a list, those of a unit a set.
            found = {tuple: "alone", list: "in a transaction"}.get(type(written), "in a unit")
            if found != kind:
                leave(self, written, changes, maintained=maintained, because=because)

        patch.setattr(Gathering, "leave_views", some)

    return plant


def every_second_view_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Only the inputs that have the least oid count."""
    left = exactness.views_left_behind

    def some(
        catalog: Catalog, written: Collection[int], changes: Iterable[CatalogChange] = ()
    ) -> Sequence[int]:
        found = left(catalog, written, changes)
        return [o for o in found if min(catalog.exact_views[o].inputs) in written]

    patch.setattr("coordinator.core.gathering.views_left_behind", some)


def attached_unvalidated(patch: pytest.MonkeyPatch) -> None:
    """The inputs may have changed since they were read (V6)."""

    def refusal(
        txn: Transaction, writes: dict[ShardId, WriteBatch], recent: RecentHistory
    ) -> Refused | None:
        if any(isinstance(change, AttachView) for change in txn.changes):
            return None
        return conflict_refusal(txn, writes, recent)

    patch.setattr(admission, "conflict_refusal", refusal)


def attached_before_its_rows(patch: pytest.MonkeyPatch) -> None:
    """The attach is two steps: the interval begins, and old rows stay (V6)."""
    final = Transaction.final_writes

    def without_deletes(self: Transaction) -> dict[ShardId, WriteBatch]:
        found = dict(final(self))
        if any(isinstance(change, AttachView) for change in self.changes):
            found = {s: WriteBatch(b.inserts, b.staged) for s, b in found.items()}
        return found

    patch.setattr(Transaction, "final_writes", without_deletes)


def names_of_rows_as_read(patch: pytest.MonkeyPatch) -> None:
    """A flush or compaction between catch-up's read and its attach has given old rows other names,
    by which they are not deleted.
    """

    def as_read(batch: WriteBatch, state: ShardState | None) -> WriteBatch:
        if state is None:
            return batch
        now = state.surviving(batch.deletes)
        return replace(batch, deletes={s: rows for s, rows in now.items() if s in batch.deletes})

    patch.setattr(group_commit, "_named_now", as_read)


# --- lanes --------------------------------------------------------------------------------------


def validated_once(patch: pytest.MonkeyPatch) -> None:
    """Members that have lost meanwhile commit with their unit (N5)."""
    patch.setattr(LaneGathering, "_losers", lambda *_: {})


def deltas_without_their_members(patch: pytest.MonkeyPatch) -> None:
    """A unit that goes once more leaves its deltas in the group (N5)."""
    admit = LaneGathering._admit

    def parted(self: LaneGathering, unit: LaneUnit) -> None:
        if unit.tries:
            admit(self, unit)
            return
        for view in unit.lane.views:
            delta = (unit.deltas or {}).get(view.oid)
            if delta is not None and self._may_keep(unit, view):
                self._add_delta(view, delta)
        self._try_again(unit, {})

    patch.setattr(LaneGathering, "_admit", parted)


def late_deltas_count(patch: pytest.MonkeyPatch) -> None:
    """Deltas that nobody waits for are taken by who waits for others (N3)."""
    answered = Lanes.answered

    def any_answer(self: Lanes, message: ViewsMaintained) -> None:
        if message.attempt not in self.waiting and self.waiting:
            message = replace(message, attempt=next(iter(self.waiting)))
        answered(self, message)

    patch.setattr(Lanes, "answered", any_answer)


def deltas_are_no_entries(patch: pytest.MonkeyPatch) -> None:
    """Members behind a unit do not hear of its views' rows (V7)."""
    patch.setattr(lane_gathering, "committed_writes", lambda *_: CommittedWrites())


def names_of_stored_rows_as_maintained(patch: pytest.MonkeyPatch) -> None:
    """A flush or compaction while a view is maintained has given its rows other names, by which
    they are not deleted.
    """
    named, add = group_commit._named_now, LaneGathering._add_delta
    deltas: list[object] = []

    def noticed(self: LaneGathering, view: MaintainedView, delta: ViewDelta) -> None:
        deltas.append(delta.batch.deletes)
        add(self, view, delta)

    def as_maintained(batch: WriteBatch, state: ShardState | None) -> WriteBatch:
        now = named(batch, state)
        if not any(batch.deletes is known for known in deltas):
            return now
        same = {source: rows for source, rows in now.deletes.items() if source in batch.deletes}
        return replace(now, deletes=same)

    patch.setattr(LaneGathering, "_add_delta", noticed)
    patch.setattr(group_commit, "_named_now", as_maintained)


def leases_over_lanes(patch: pytest.MonkeyPatch) -> None:
    """A lease is granted over members whose views are being maintained (N2)."""
    ahead = GroupCommit.delays_lease

    def without_lanes(
        self: GroupCommit, tables: frozenset[int], ticket: int, leases: WriteLeases
    ) -> bool:
        waiting, ready = self.lanes.waiting, self.lanes.ready
        self.lanes.waiting, self.lanes.ready = {}, []
        found = ahead(self, tables, ticket, leases)
        self.lanes.waiting, self.lanes.ready = waiting, ready
        return found

    patch.setattr(GroupCommit, "delays_lease", without_lanes)


def locks_over_lanes(patch: pytest.MonkeyPatch) -> None:
    """A lock is granted over members whose views are being maintained (N2)."""
    holders = GroupCommit.holders

    def without_lanes(self: GroupCommit) -> Iterator[UnwrittenHolder]:
        units = {unit.txn for unit in self.lanes.units()}
        return (holder for holder in holders(self) if holder.txn not in units)

    patch.setattr(GroupCommit, "holders", without_lanes)


# --- views that units attach --------------------------------------------------------------------


def attached_without_the_rest(patch: pytest.MonkeyPatch) -> None:
    """What has changed since the rows were computed is not added (N9)."""
    patch.setattr(lane_steps, "_earlier", lambda *_: {})


def attached_by_rows_of_another_time(patch: pytest.MonkeyPatch) -> None:
    """Somebody else has written rows of the view since (N9)."""
    find = AttachableViews.find

    def whoever_wrote(
        self: AttachableViews, pending: PendingAttach, catalog: Catalog
    ) -> MaintainedView | Refused:
        rows = replace(pending.rows, written_at=Timestamp(1 << 62))
        return find(self, replace(pending, rows=rows), catalog)

    patch.setattr(AttachableViews, "find", whoever_wrote)


def attached_over_writes_meanwhile(patch: pytest.MonkeyPatch) -> None:
    """An input was written to while the rest was computed, by nobody of the unit (N5, N6)."""
    changed, take = LaneGathering._has_changed, LaneGathering.takes

    def unchanged(self: LaneGathering, unit: LaneUnit, shard: ShardId) -> bool:
        return unit.attach is None and changed(self, unit, shard)

    def passing(self: LaneGathering, pending: GroupMember) -> bool:
        if any(unit.attach for unit in self._lanes.units()) and isinstance(pending, PendingInsert):
            return False
        return take(self, pending)

    patch.setattr(LaneGathering, "_has_changed", unchanged)
    patch.setattr(LaneGathering, "takes", passing)
    # Whoever writes to an input of a busy lane is not gathered for.
    patch.setattr(Lanes, "is_maintaining", lambda *_: False)


# --- subscriptions ------------------------------------------------------------------------------


def followed_while_behind(patch: pytest.MonkeyPatch) -> None:
    """A subscriber hears of progress behind the end of the exact interval (S10)."""

    def everywhere(_: object, __: Collection[int], ___: Timestamp, upto: Timestamp) -> Timestamp:
        return upto

    patch.setattr(subscriptions, "last_exact", everywhere)


def followed_from_behind(patch: pytest.MonkeyPatch) -> None:
    """A subscriber may begin where the view is behind (S10)."""
    patch.setattr(requests, "behind_at", lambda *_: None)


@pytest.mark.parametrize(
    ("plant", "weather"),
    [
        (behind_unnoticed, "calm"),
        (behind_unnoticed_in_the_group, "calm"),
        (behind_unrecorded, "crashes"),
        (_left_alone("alone"), "crashes"),
        (_left_alone("in a transaction"), "calm"),
        (_left_alone("in a unit"), "calm"),
        (every_second_view_forgotten, "calm"),
        (attached_unvalidated, "calm"),
        (attached_before_its_rows, "calm"),
        (names_of_rows_as_read, "calm"),
        (validated_once, "calm"),
        (deltas_without_their_members, "calm"),
        (late_deltas_count, "calm"),
        (deltas_are_no_entries, "calm"),
        (names_of_stored_rows_as_maintained, "calm"),
        (leases_over_lanes, "calm"),
        (locks_over_lanes, "locks"),
        (attached_without_the_rest, "calm"),
        (attached_by_rows_of_another_time, "calm"),
        (attached_over_writes_meanwhile, "calm"),
        (followed_while_behind, "calm"),
        (followed_from_behind, "calm"),
    ],
    ids=[
        "behind and a reader does not notice",
        "behind within the group and unnoticed",
        "behind and not recorded",
        "exact over inserts alone",
        "exact over transactions",
        "exact over units that were given up",
        "exact over commits of one input",
        "attached unvalidated",
        "attached before its rows",
        "compaction between catch-up and attach",
        "lanes validated once",
        "deltas without their members",
        "late deltas count",
        "members behind do not hear of deltas",
        "compaction between maintenance and commit",
        "leases over lanes",
        "locks over lanes",
        "attached without what came since",
        "attached by rows of another time",
        "attached over writes meanwhile",
        "progress while behind",
        "followed from where it is behind",
    ],
)
def test_planted_in_views(plant: Plant, weather: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    # Few runs show that one.
    first = 490 if plant is attached_by_rows_of_another_time else 0
    assert_found(Planted(plant, "views", weather), first)
