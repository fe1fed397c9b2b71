"""The judges are judged: bugs planted into the production code must be found within a few seeds."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.core import admission, commits, snapshots, validation
from coordinator.core import scans as reading
from coordinator.core.completions import CeilingPersisted, GroupPassed
from coordinator.core.core import Core
from coordinator.core.effects import CommitGroup, Effect, Reply
from coordinator.core.gathering import Gathering
from coordinator.core.group_commit import GroupCommit
from coordinator.core.leases import WriteLeases
from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.replies import Committed
from coordinator.core.messages.requests import Message
from coordinator.core.oracle import Oracle
from coordinator.core.read_holds import ReadHolds
from coordinator.core.snapshots import Snapshots
from coordinator.core.state import CoreState
from coordinator.core.transactions import Transaction
from coordinator.core.validation import WritesAhead
from coordinator.driver.commit_effects import CommitEffects
from coordinator.driver.leadership import Leadership
from coordinator.driver.timelines import Timelines
from coordinator.server import recovery as startup
from storage import cuts
from storage.clock import DoubtingClock
from storage.delta import flush_plan
from storage.errors import Determinate, Indeterminate
from storage.memory import MemoryStash
from storage.shard import ShardState
from storage.txns import TxnsShard
from storage.types import Timestamp
from tests.resilience.sim.faults import TwoStepStore
from tests.resilience.sim.notification_plants import (
    duplicates_not_folded,
    notifications_of_the_deposed,
    only_one_session_woken,
    sent_before_durable,
    sent_in_the_order_of_requests,
    undone_notifications_sent,
)
from tests.resilience.sim.planted import Planted, assert_found
from tests.resilience.sim.run import simulate


def read_set_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "conflict_refusal", lambda *_, **__: None)


def rows_not_validated(patch: pytest.MonkeyPatch) -> None:
    """Who comes second replaces a row that is gone."""
    patch.setattr(validation, "_row_conflict", lambda *_: None)


def references_not_validated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(validation, "_reference_conflict", lambda *_: None)


def undone_look_ups_without_their_table(patch: pytest.MonkeyPatch) -> None:
    """ROLLBACK TO forgets tables that only a foreign key has looked into."""
    known = Transaction._has_read
    patch.setattr(
        Transaction,
        "_has_read",
        lambda txn, shard: all(shard != at for at, _ in txn.required) and known(txn, shard),
    )


def tables_altered_beside_writers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(validation, "_alter_conflict", lambda *_: None)


def tables_of_other_definitions(patch: pytest.MonkeyPatch) -> None:
    """A2 is switched off."""
    patch.setattr(admission, "stale_tables_refusal", lambda *_: None)


def names_not_validated(patch: pytest.MonkeyPatch) -> None:
    """A view is replaced, and nobody who has used it hears of it."""
    patch.setattr(admission, "stale_name_refusal", lambda *_: None)


def names_of_inserts_not_validated(patch: pytest.MonkeyPatch) -> None:
    verdict = Gathering.definition_verdict
    patch.setattr(
        Gathering, "definition_verdict", lambda group, table, names: verdict(group, table, ())
    )


def keys_not_validated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(validation, "key_conflict_refusal", lambda *_: None)


def members_not_validated_against_each_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WritesAhead, "log", lambda *_: None)
    patch.setattr(WritesAhead, "deletes_any", lambda *_: False)


def acknowledged_before_durable(patch: pytest.MonkeyPatch) -> None:
    start_group = commits.start_group

    def early(state: CoreState, now: Timestamp) -> list[Effect]:
        effects = start_group(state, now)
        for effect in list(effects):
            group = state.groups.in_flight
            if isinstance(effect, CommitGroup) and group is not None:
                ts = effect.commit.ts
                effects += [Reply(member.request, Committed(ts)) for member in group.members]
        return effects

    patch.setattr(commits, "start_group", early)


async def look_up(committing: CommitEffects, commit: Any) -> None:
    """Until there is an answer, which nobody listens to."""
    while True:
        try:
            await committing.txns.find(commit.token)
        except (Determinate, Indeterminate):
            continue
        return


def unknown_outcome_taken_for_failure(patch: pytest.MonkeyPatch) -> None:
    async def give_up(self: CommitEffects, commit: Any, cause: Any) -> Message:
        await look_up(self, commit)
        return self._failed(commit.token, cause)

    patch.setattr(CommitEffects, "_resolve", give_up)


def unknown_outcome_retried_blindly(patch: pytest.MonkeyPatch) -> None:
    async def again(self: CommitEffects, commit: Any, cause: Any) -> Message:
        await look_up(self, commit)
        return GroupPassed(commit.token, Timestamp(commit.ts + 1))

    patch.setattr(CommitEffects, "_resolve", again)


def commits_lost_by_a_cut(patch: pytest.MonkeyPatch) -> None:
    flushed = ShardState.flushed

    def forgetful(self: ShardState, version: Any) -> ShardState:
        return replace(flushed(self, version), tail=(), tail_bytes=0)

    patch.setattr(ShardState, "flushed", forgetful)


def reads_before_the_write_is_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Oracle, "read_ts", lambda self: Timestamp(self._read - 1))


def ceiling_lost(patch: pytest.MonkeyPatch) -> None:
    async def forget(self: CommitEffects, ceiling: Timestamp) -> Message:
        return CeilingPersisted(ceiling)

    patch.setattr(CommitEffects, "persist_ceiling", forget)


def tidied_before_synced(patch: pytest.MonkeyPatch) -> None:
    async def unsynced(
        self: TwoStepStore, name: str, content: bytes, *, modified_ms: int | None = None
    ) -> None:
        """What the flush takes for durable is not."""
        del modified_ms
        self._inner.write_unsynced(name, content)

    patch.setattr(TwoStepStore, "create", unsynced)


def strict_read_of_the_deposed(patch: pytest.MonkeyPatch) -> None:
    async def certainly(self: Leadership) -> None:
        """Who never asks is always sure."""

    patch.setattr(Leadership, "confirm", certainly)


def read_committed_of_the_deposed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Core, "follows_real_time", Core.is_strict)


def epoch_not_checked(patch: pytest.MonkeyPatch) -> None:
    transact = MemoryStash.transact

    async def lenient(self: MemoryStash, epoch: Any, writes: Any, *, requires: Any = ()) -> None:
        await transact(self, self._epoch, writes, requires=requires)

    patch.setattr(MemoryStash, "transact", lenient)


def applied_out_of_order(patch: pytest.MonkeyPatch) -> None:
    plan = flush_plan.plan_flush

    def backwards(state: ShardState, *rest: Any) -> Any:
        """The newest commit's rows come first, under the timestamp of the oldest."""
        tail = list(state.tail)
        if len(tail) > 1 and not any(commit.batch.deletes for commit in tail):
            swapped = [
                replace(commit, batch=other.batch)
                for commit, other in zip(tail, reversed(tail), strict=True)
            ]
            state = replace(state, tail=tuple(swapped))
        return plan(state, *rest)

    patch.setattr(cuts, "plan_flush", backwards)


def cut_not_shared(patch: pytest.MonkeyPatch) -> None:
    flush = cuts.flush

    async def earlier(store: Any, state: ShardState, cut: Timestamp, **options: Any) -> Any:
        """Some tables are flushed a little before the others."""
        mine = Timestamp(cut - 4_000)
        if int(state.shard[-1], 16) % 2 and state.dirty_at(mine) and (state.cut or 0) < mine:
            cut = mine
        return await flush(store, state, cut, **options)

    patch.setattr("coordinator.driver.commit_effects.flush", earlier)


def hold_not_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReadHolds, "acquire", lambda *_: None)


def as_of_off_by_one(patch: pytest.MonkeyPatch) -> None:
    view = ShardState.view

    def before(self: ShardState, as_of: Timestamp, *rest: Any) -> Any:
        """Between cuts a commit shows one microsecond late."""
        between = self.cut is not None and as_of < self.cut
        return view(self, Timestamp(as_of - 1) if between else as_of, *rest)

    patch.setattr(ShardState, "view", before)


def upper_not_required(patch: pytest.MonkeyPatch) -> None:
    """A commit that arrives after it has been given up happens after all."""

    async def unsealed(self: TxnsShard, commit: Any) -> None:
        return None

    patch.setattr(TxnsShard, "_seal", unsealed)


# --- leases ------------------------------------------------------------------------------------


def lease_not_respected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WriteLeases, "blocks", lambda *_: False)


def lease_given_while_others_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupCommit, "delays_lease", lambda *_: False)


# --- weaker levels -----------------------------------------------------------------------------


def read_committed_reads_at_its_first_timestamp(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshots, "_keeps", lambda txn: txn.snapshot is not None)


def read_committed_reads_on_after_it_has_lost(patch: pytest.MonkeyPatch) -> None:
    """Then it meets two versions of a row: its own, and that of who has won."""
    patch.setattr(reading, "lost_write_refusal", lambda *_: None)


def repeatable_read_takes_new_timestamps(patch: pytest.MonkeyPatch) -> None:
    kept = (Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE)
    patch.setattr(
        snapshots, "_keeps", lambda txn: txn.snapshot is not None and txn.isolation in kept
    )


def reads_at_what_is_not_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Oracle, "read_ts", lambda self: self._last)


def stale_read_waits(patch: pytest.MonkeyPatch) -> None:
    def patient(self: Snapshots, message: Any, txn: Any, ts: Timestamp) -> Any:
        pending = self._groups.pending_ts
        if pending is not None or not self._oracle.ensure_at_least(ts):
            return self._wait(message, txn)
        return [self._given(message, txn, ts)]

    patch.setattr(Snapshots, "_close", patient)


def staleness_without_bound(patch: pytest.MonkeyPatch) -> None:
    determine = snapshots.determine

    def lenient(question: Any) -> Any:
        hour = None if question.staleness_us is None else 3_600_000_000
        return determine(replace(question, staleness_us=hour))

    patch.setattr(snapshots, "determine", lenient)


# --- named read holds --------------------------------------------------------------------------


def named_hold_not_heard_of(patch: pytest.MonkeyPatch) -> None:
    defined = ReadHolds.defined

    def deaf(self: ReadHolds, catalog: Any) -> None:
        defined(self, replace(catalog, read_holds={}))

    patch.setattr(ReadHolds, "defined", deaf)


def pruned_past_a_hold(patch: pytest.MonkeyPatch) -> None:
    """What is before the newest cut cannot be read any more."""
    pruned = ShardState.pruned

    def greedy(self: ShardState, since: Timestamp) -> ShardState:
        return pruned(self, max(since, self.cut or since))

    patch.setattr(ShardState, "pruned", greedy)


# --- timelines ---------------------------------------------------------------------------------


def timelines_mixed(patch: pytest.MonkeyPatch) -> None:
    join, place = Timelines._join, Timelines._place

    def lenient_join(self: Timelines, txn: Any, timeline: str) -> Any:
        self._touched.discard(txn)
        self._parts.pop(txn, None)
        return join(self, txn, timeline)

    def lenient_place(self: Timelines, txn: Any, tables: Any) -> Any:
        if all(table.timeline == "system" for table in tables):
            return self._system, txn
        return place(self, txn, tables)

    patch.setattr(Timelines, "_join", lenient_join)
    patch.setattr(Timelines, "_place", lenient_place)


def advance_forgotten(patch: pytest.MonkeyPatch) -> None:
    def step_by_step(core: CoreState, _members: Any, now: Timestamp) -> Timestamp:
        return Timestamp(0) if core.timeline.manual else now

    patch.setattr(commits, "_write_clock", step_by_step)


def jumps_believed(patch: pytest.MonkeyPatch) -> None:
    """A clock that is days ahead for a moment takes `since` along."""
    patch.setattr(DoubtingClock, "now", lambda clock: clock._wall.now())


def counting_timeline_follows_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commits, "_write_clock", lambda core, members, now: now)


def counting_timeline_begins_anew(patch: pytest.MonkeyPatch) -> None:
    """After a restart its numbers are used again."""
    first = startup._first_timestamp

    async def one(ground: Any, timeline: Any, upper: Timestamp, now: Timestamp) -> Timestamp:
        return Timestamp(1) if timeline.manual else await first(ground, timeline, upper, now)

    patch.setattr(startup, "_first_timestamp", one)


PLANTS = (
    Planted(read_set_not_checked, "registers", "calm"),
    Planted(read_set_not_checked, "skew", "calm"),
    Planted(read_set_not_checked, "phantom", "calm"),
    Planted(rows_not_validated, "counter", "calm"),
    Planted(members_not_validated_against_each_other, "phantom", "calm"),
    Planted(acknowledged_before_durable, None, "crashes"),
    Planted(unknown_outcome_taken_for_failure, None, "lossy"),
    Planted(unknown_outcome_retried_blindly, "mixed", "lossy"),
    Planted(upper_not_required, None, "lossy"),
    Planted(commits_lost_by_a_cut, "mixed", "calm"),
    Planted(reads_before_the_write_is_applied, "mixed", "calm"),
    Planted(ceiling_lost, None, "successions"),
    Planted(tidied_before_synced, None, "crashes"),
    Planted(strict_read_of_the_deposed, "phantom", "successions"),
    Planted(read_committed_of_the_deposed, "levels", "successions", "stale"),
    Planted(epoch_not_checked, None, "successions"),
    Planted(applied_out_of_order, "sets", "calm"),
    Planted(cut_not_shared, "bank", "calm"),
    Planted(hold_not_taken, None, "calm"),
    Planted(as_of_off_by_one, None, "calm"),
    Planted(lease_not_respected, "hot", "calm"),
    Planted(lease_given_while_others_commit, "hot", "calm"),
    Planted(rows_not_validated, "levels", "calm"),
    Planted(read_committed_reads_at_its_first_timestamp, "levels", "calm"),
    Planted(read_committed_reads_on_after_it_has_lost, "levels", "calm"),
    Planted(repeatable_read_takes_new_timestamps, "levels", "calm"),
    Planted(reads_at_what_is_not_durable, "levels", "calm"),
    Planted(references_not_validated, "references", "calm"),
    Planted(undone_look_ups_without_their_table, "references", "calm"),
    Planted(tables_of_other_definitions, "definitions", "calm"),
    Planted(names_not_validated, "uses", "calm"),
    Planted(names_of_inserts_not_validated, "uses", "calm"),
    Planted(keys_not_validated, "keys", "calm"),
    Planted(tables_altered_beside_writers, "alterations", "calm"),
    Planted(tables_altered_beside_writers, "user types", "calm"),
    Planted(stale_read_waits, "mixed", "calm"),
    Planted(staleness_without_bound, None, "calm"),
    Planted(named_hold_not_heard_of, "holds", "calm"),
    Planted(pruned_past_a_hold, "holds", "calm"),
    Planted(timelines_mixed, "lines", "calm"),
    Planted(advance_forgotten, "lines", "calm"),
    Planted(jumps_believed, "holds", "wrong days", "ahead of time"),
    Planted(jumps_believed, "sets", "wrong days", "ahead of time"),
    Planted(counting_timeline_follows_the_clock, "lines", "calm"),
    Planted(counting_timeline_begins_anew, "lines", "crashes"),
    Planted(epoch_not_checked, "lines", "successions"),
    Planted(sent_before_durable, "notifications", "calm"),
    Planted(sent_before_durable, "notifications", "crashes"),
    Planted(sent_in_the_order_of_requests, "notifications", "calm"),
    Planted(duplicates_not_folded, "notifications", "calm"),
    Planted(undone_notifications_sent, "notifications", "calm"),
    Planted(only_one_session_woken, "notifications", "calm"),
    Planted(notifications_of_the_deposed, "notifications", "successions"),
)


@pytest.mark.parametrize("planted", PLANTS, ids=lambda p: f"{p.plant.__name__}-{p.workload}")
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    assert_found(planted)


def test_without_a_plant_nothing_is_found() -> None:
    places = {(planted.workload, planted.weather) for planted in PLANTS}
    for workload, weather in sorted(places, key=str):
        for seed in range(2):
            outcome = simulate(seed, workload, weather)
            assert not outcome.findings, outcome.report()
