"""The judges are judged: bugs of short writes, planted into the production code."""

from collections.abc import Hashable
from typing import Any

import pytest

from compute.access import key_index
from coordinator.core import gathering, group_commit
from coordinator.core.gathering import Gathering
from coordinator.core.group_members import PendingChange
from coordinator.core.recent_writes import CommittedWrites
from coordinator.core.short_writes import gathered, in_block
from coordinator.core.short_writes.by_key import CurrentRow, WriteAnswer
from coordinator.core.short_writes.gathered import ShortWritesOfGroup
from sql.catalog.catalog import Key
from storage.shard import ShardState
from tests.resilience.sim.planted import Planted, assert_found

RowsOfShard = gathered._ShardRows


def members_ahead_missed(patch: pytest.MonkeyPatch) -> None:
    """Every member begins with what the shard has (E1)."""
    find = RowsOfShard.find

    def anew(rows: Any, key: Key, values: tuple[Hashable, ...]) -> CurrentRow | None:
        rows._by_key.clear()
        return find(rows, key, values)

    patch.setattr(RowsOfShard, "find", anew)


def results_kept_over_a_group_that_was_passed(patch: pytest.MonkeyPatch) -> None:
    """What was computed stays as long as nothing else is committed (E3)."""
    kept: list[tuple[ShardState, Any]] = []

    def known(state: ShardState, *others: Any) -> Any:
        for before, rows in kept:
            if before is state:
                return rows
        kept.append((state, RowsOfShard(state, *others)))
        return kept[-1][1]

    patch.setattr(gathered, "_ShardRows", known)


def answers_kept_over_a_group_that_was_passed(patch: pytest.MonkeyPatch) -> None:
    """A member is answered what it has come to at first, RETURNING included (E3)."""
    admit = gathering.admit_change
    kept: dict[int, tuple[PendingChange, WriteAnswer]] = {}

    def admitted(group: Gathering, pending: PendingChange, *, goes_again: bool) -> None:
        admit(group, pending, goes_again=goes_again)
        found = group.answers.get(pending.request)
        if found is not None:
            first = kept.setdefault(id(pending), (pending, found))
            group.answers[pending.request] = first[1]

    patch.setattr(group_commit, "admit_change", admitted)


def keys_of_an_old_tail(patch: pytest.MonkeyPatch) -> None:
    """Commits are not added to a dictionary that is there."""
    unknown = key_index._Tail.unknown
    patch.setattr(
        key_index._Tail,
        "unknown",
        lambda tail, view: [] if tail.known else unknown(tail, view),
    )


def readers_not_told(patch: pytest.MonkeyPatch) -> None:
    """Validation misses what short writes have changed (E2)."""
    patch.setattr(RowsOfShard, "written", lambda *_: CommittedWrites())


def sessions_pass_themselves(patch: pytest.MonkeyPatch) -> None:
    """Who comes after a member of its own session that waits for a lease does not wait (G7)."""
    patch.setattr(Gathering, "wait", lambda group, pending: group.waiting.append(pending))


def sessions_leave_themselves_behind(patch: pytest.MonkeyPatch) -> None:
    """Who comes after a member of its own session that has left the queue stays (G7)."""
    patch.setattr(Gathering, "must_leave", lambda *_: False)


def locks_passed(patch: pytest.MonkeyPatch) -> None:
    """Rows that others hold are changed (E6)."""
    patch.setattr(ShortWritesOfGroup, "_lock_in_the_way", lambda *_: None)


def locks_passed_in_a_block(patch: pytest.MonkeyPatch) -> None:
    """A statement of a block changes rows that others hold."""
    patch.setattr(in_block, "_take_locks", lambda *_: True)


def jobs_of_members_ahead_taken_again(patch: pytest.MonkeyPatch) -> None:
    """SKIP LOCKED takes a row that a member ahead has changed (E7)."""
    apply = RowsOfShard.apply

    def applied(rows: Any, *args: Any) -> None:
        apply(rows, *args)
        rows._gone.clear()

    patch.setattr(RowsOfShard, "apply", applied)


PLANTS = (
    Planted(jobs_of_members_ahead_taken_again, "queue", "calm", "twice"),
    Planted(locks_passed_in_a_block, "queue", "calm"),
    Planted(locks_passed_in_a_block, "short writes", "calm"),
    Planted(members_ahead_missed, "short writes", "calm"),
    Planted(results_kept_over_a_group_that_was_passed, "short writes", "lossy"),
    Planted(answers_kept_over_a_group_that_was_passed, "short writes", "lossy"),
    Planted(keys_of_an_old_tail, "short writes", "calm"),
    Planted(readers_not_told, "short writes", "calm"),
    Planted(sessions_pass_themselves, "short writes", "calm", "order"),
    Planted(sessions_leave_themselves_behind, "short writes", "calm", "order"),
    Planted(locks_passed, "short writes", "calm"),
)


@pytest.mark.parametrize("planted", PLANTS, ids=lambda p: p.plant.__name__)
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    assert_found(planted)
