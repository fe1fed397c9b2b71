"""Bugs planted into change streams: subscribers of the simulation must find each of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from coordinator.core.change_streams.steps import ChangeStep, SubscriptionId, SubscriptionRequest
from coordinator.core.change_streams.subscriptions import Subscription, Subscriptions
from coordinator.core.change_streams.value_dispatch import ValueDispatch
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.read_holds import ReadHolds
from coordinator.core.recent_writes import CommittedWrites
from coordinator.core.state import CoreState
from coordinator.execution.change_streams import change_rows, telling
from coordinator.execution.change_streams.change_rows import TableChanges
from coordinator.execution.change_streams.compared_rows import views_at
from coordinator.execution.change_streams.row_forms import RelationViews
from coordinator.execution.change_streams.shared_steps import StepKey, StepSharing
from coordinator.transaction.following import ChangeReader
from sql.catalog.catalog import Catalog
from storage.types import ShardId, Timestamp
from tests.resilience.sim.planted import Plant, Planted, assert_found


def progress_before_rows(patch: pytest.MonkeyPatch) -> None:
    next_commits = change_rows._next_commits
    kept: list[TableChanges] = []

    def early(step: ChangeStep) -> tuple[list[TableChanges], Timestamp]:
        few, reached = next_commits(step)
        told = [change for change in kept if change.ts <= reached]
        kept[:] = few
        return told, reached

    patch.setattr(change_rows, "_next_commits", early)


def up_to_inclusive(patch: pytest.MonkeyPatch) -> None:
    def limit(self: Subscriptions, known: Subscription) -> Timestamp:
        last = self._frontier()
        return last if known.stop is None else Timestamp(min(last, known.stop))

    patch.setattr(Subscriptions, "_limit", limit)


def snapshot_at_another_timestamp(patch: pytest.MonkeyPatch) -> None:
    def newest(step: ChangeStep) -> RelationViews:
        return views_at(step, step.upto)

    patch.setattr(telling, "_snapshot", newest)


def hold_dropped_too_early(patch: pytest.MonkeyPatch) -> None:
    """The subscription holds nothing when its transaction has let go. Without history (which alone
    does no harm) that shows sooner.
    """
    begin = ReadHolds.__init__

    def init(self: ReadHolds, catalog: Catalog, **rest: Any) -> None:
        begin(self, catalog, **{**rest, "history_us": 0})

    patch.setattr(ReadHolds, "__init__", init)
    patch.setattr(ReadHolds, "follow", lambda *_: None)
    patch.setattr(ReadHolds, "unfollow", lambda *_: None)


def _accepted_at(moved: int) -> Plant:
    accept = Subscriptions.accept

    def other(
        self: Subscriptions, owner: ConnectionId, request: SubscriptionRequest, now: Timestamp
    ) -> Subscription:
        made = accept(self, owner, request, now)
        made.position = Timestamp(made.position + moved)
        return made

    return lambda patch: patch.setattr(Subscriptions, "accept", other)


def told_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    """Time is said to have come to a commit that is on its way."""
    begin = CoreState.__init__
    cores: WeakKeyDictionary[Subscriptions, CoreState] = WeakKeyDictionary()

    def init(self: CoreState, *rest: object) -> None:
        begin(self, *rest)  # type: ignore[arg-type]
        read_ts = self.oracle.read_ts
        groups = self.groups
        self.subscriptions._frontier = lambda: groups.pending_ts or read_ts()
        cores[self.subscriptions] = self

    patch.setattr(CoreState, "__init__", init)


def sleepers_not_woken(patch: pytest.MonkeyPatch) -> None:
    wake = Subscriptions.wake

    def some(self: Subscriptions, now: Timestamp) -> Iterable[SubscriptionId]:
        return [one for one in wake(self, now) if one % 2]

    patch.setattr(Subscriptions, "wake", some)


def commits_left_out_at_the_bound(patch: pytest.MonkeyPatch) -> None:
    """When more than a few commits are there, the next step begins behind the first that is not
    told.
    """
    patch.setattr(change_rows, "COMMITS_MAX", 2)
    next_commits: Callable[[ChangeStep], tuple[list[TableChanges], Timestamp]] = (
        change_rows._next_commits
    )

    def more(step: ChangeStep) -> tuple[list[TableChanges], Timestamp]:
        few, reached = next_commits(step)
        return few, reached if len(few) < 2 else step.upto

    patch.setattr(change_rows, "_next_commits", more)


def steps_of_other_timestamps(patch: pytest.MonkeyPatch) -> None:
    """A step that ends at the same timestamp is taken for the same."""

    def key(self: StepSharing, step: ChangeStep) -> StepKey:
        return StepKey(id(self._subscribe), self._parameters, Timestamp(0), step.upto)

    patch.setattr(StepSharing, "_key", key)


def values_of_deleted_rows_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Who asks for a value hears of rows that come, and not of rows that go."""
    concerned = ValueDispatch.concerned

    def came(
        self: ValueDispatch, shard: ShardId, writes: Iterable[CommittedWrites]
    ) -> set[SubscriptionId]:
        return concerned(self, shard, [CommittedWrites(entry.came) for entry in writes])

    patch.setattr(ValueDispatch, "concerned", came)


def steps_that_begin_with_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Who asks for a value moves past the commit that has it."""
    wrote = Subscriptions.wrote

    def late(
        self: Subscriptions, shard: ShardId, ts: Timestamp, writes: Sequence[CommittedWrites]
    ) -> None:
        wrote(self, shard, ts, writes)
        for known in self:
            if known.next_concern == ts:
                known.next_concern = Timestamp(ts + 1)

    patch.setattr(Subscriptions, "wrote", late)


def commits_forgotten_that_come_while_rows_are_told(patch: pytest.MonkeyPatch) -> None:
    """Only sleepers hear of commits with their values."""
    wrote = Subscriptions.wrote

    def to_sleepers(
        self: Subscriptions, shard: ShardId, ts: Timestamp, writes: Sequence[CommittedWrites]
    ) -> None:
        busy = {known.id: known.concerned_at for known in self if not known.asleep}
        wrote(self, shard, ts, writes)
        for known in self:
            known.concerned_at = busy.get(known.id, known.concerned_at)

    patch.setattr(Subscriptions, "wrote", to_sleepers)


def fetches_that_wait_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChangeReader, "patience", lambda self: 0 if self._fetches else None)


@pytest.mark.parametrize(
    ("plant", "weather"),
    [
        (progress_before_rows, "calm"),
        (up_to_inclusive, "calm"),
        (snapshot_at_another_timestamp, "calm"),
        (hold_dropped_too_early, "calm"),
        (_accepted_at(-1), "calm"),
        (_accepted_at(1), "calm"),
        (told_before_it_is_durable, "calm"),
        (sleepers_not_woken, "calm"),
        (commits_left_out_at_the_bound, "calm"),
        (steps_of_other_timestamps, "calm"),
        (fetches_that_wait_for_nothing, "calm"),
        (values_of_deleted_rows_forgotten, "calm"),
        (steps_that_begin_with_the_commit, "calm"),
        (commits_forgotten_that_come_while_rows_are_told, "calm"),
    ],
    ids=[
        "progress before rows",
        "UP TO inclusive",
        "snapshot at another timestamp",
        "hold dropped too early",
        "resume one too early",
        "resume one too late",
        "told before it is durable",
        "sleepers not woken",
        "commits left out at the bound",
        "steps of other timestamps",
        "fetches that wait for nothing",
        "values of deleted rows forgotten",
        "steps that begin with the commit",
        "commits forgotten that come while rows are told",
    ],
)
def test_planted_in_change_streams(
    plant: Plant, weather: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert_found(Planted(plant, "followers", weather))
