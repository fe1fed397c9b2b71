"""The judges are judged: bugs planted into the production code must be found within a few seeds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coordinator.core import core, group_commit
from coordinator.core.core import Core
from coordinator.core.effects import CommitGroup, Effect, Reply
from coordinator.core.messages import Committed
from coordinator.driver import Driver
from storage.shard import ShardState
from storage.types import Timestamp
from tests.sim.run import simulate

SEEDS = range(40)

Plant = Callable[[pytest.MonkeyPatch], None]


def read_set_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_commit, "conflict", lambda *_: None)


def acknowledged_before_durable(patch: pytest.MonkeyPatch) -> None:
    start_group = Core._start_group

    def early(self: Core, now: Timestamp) -> list[Effect]:
        effects = start_group(self, now)
        for effect in list(effects):
            group = self._groups.in_flight
            if isinstance(effect, CommitGroup) and group is not None:
                ts = effect.commit.ts
                effects += [Reply(member.request, Committed(ts)) for member in group.members]
        return effects

    patch.setattr(Core, "_start_group", early)


def unknown_outcome_taken_for_failure(patch: pytest.MonkeyPatch) -> None:
    async def give_up(self: Driver, commit: Any, cause: Any) -> None:
        await self._txns.find(commit.token)
        self._failed(commit, cause)

    patch.setattr(Driver, "_resolve", give_up)


def commits_lost_by_a_cut(patch: pytest.MonkeyPatch) -> None:
    flushed = ShardState.flushed

    def forgetful(self: ShardState, version: Any) -> ShardState:
        return replace(flushed(self, version), tail=(), tail_bytes=0)

    patch.setattr(ShardState, "flushed", forgetful)


def reads_before_the_write_is_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(core.Oracle, "read_ts", lambda self: Timestamp(self._read - 1))


PLANTS: tuple[Plant, ...] = (
    read_set_not_checked,
    acknowledged_before_durable,
    unknown_outcome_taken_for_failure,
    commits_lost_by_a_cut,
    reads_before_the_write_is_applied,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(shows_a_bug(seed) for seed in SEEDS)


def shows_a_bug(seed: int) -> bool:
    """A finding of a judge, or an assertion of the production code or of a client."""
    try:
        return bool(simulate(seed).findings)
    except (AssertionError, BaseExceptionGroup):
        return True
