"""Bugs planted into views that follow their inputs: the simulation must find each of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pytest

from coordinator.core import group_commit
from coordinator.core.catalog import encode_changes
from coordinator.core.gathering import Gathering
from coordinator.core.messages.catalog_changes import AttachView, CatalogChange, LeaveView
from coordinator.core.messages.replies import Refused
from coordinator.core.transactions import Transaction
from coordinator.core.validation import RecentHistory, conflict_refusal
from coordinator.core.views import exactness
from sql.catalog.catalog import Catalog
from storage.batch import WriteBatch
from storage.shard import ShardState
from storage.stash import Put
from storage.types import ShardId, Timestamp
from tests.resilience.sim.planted import Plant, Planted, assert_found


def behind_unnoticed(patch: pytest.MonkeyPatch) -> None:
    """Who has read stored rows commits on them, though the view has been left behind (V7)."""
    patch.setattr(group_commit, "behind_refusal", lambda *_: None)


def behind_unnoticed_in_the_group(patch: pytest.MonkeyPatch) -> None:
    """The same, if that was by a member ahead in the same group."""
    refusal = group_commit.behind_refusal
    leave = Gathering.leave_views
    before: dict[int, Catalog] = {}

    def late(txn: Transaction, now: Catalog) -> Refused | None:
        return refusal(txn, before.get(id(now), now))

    def leave_views(
        self: Gathering, written: Collection[int], changes: Iterable[CatalogChange] = ()
    ) -> None:
        was = self.catalog
        leave(self, written, changes)
        if self.catalog is not was:
            before[id(self.catalog)] = before.get(id(was), was)

    patch.setattr(group_commit, "behind_refusal", late)
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
            self: Gathering, written: Collection[int], changes: Iterable[CatalogChange] = ()
        ) -> None:
            # Those of a transaction are a list.
            alone = isinstance(written, tuple)
            if alone is (kind == "alone"):
                return
            leave(self, written, changes)

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

    patch.setattr(group_commit, "conflict_refusal", refusal)


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


@pytest.mark.parametrize(
    ("plant", "weather"),
    [
        (behind_unnoticed, "calm"),
        (behind_unnoticed_in_the_group, "calm"),
        (behind_unrecorded, "crashes"),
        (_left_alone("alone"), "calm"),
        (_left_alone("in a transaction"), "calm"),
        (every_second_view_forgotten, "calm"),
        (attached_unvalidated, "calm"),
        (attached_before_its_rows, "calm"),
        (names_of_rows_as_read, "calm"),
    ],
    ids=[
        "behind and a reader does not notice",
        "behind within the group and unnoticed",
        "behind and not recorded",
        "exact over inserts alone",
        "exact over transactions",
        "exact over commits of one input",
        "attached unvalidated",
        "attached before its rows",
        "compaction between catch-up and attach",
    ],
)
def test_planted_in_views(plant: Plant, weather: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert_found(Planted(plant, "views", weather))
