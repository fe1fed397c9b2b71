"""The judges of locks are judged: planted bugs must be found within a few seeds.

Gathering a group before the lines of one that has landed are served cannot be planted: a single
statement is compared with those who wait, too. In its place one is planted that looks at holders
only (K5).
"""

from typing import Any

import pytest

from coordinator.core import commits
from coordinator.core.effects import CommitGroup, Effect
from coordinator.core.group_commit import GroupCommit
from coordinator.core.group_members import PendingCommit, PendingInsert
from coordinator.core.leases import WriteLeases
from coordinator.core.locking import requests
from coordinator.core.locking.lock_table import LockQueue, LockRequest, LockTable
from coordinator.core.locking.modes import LockMode, LockTag
from coordinator.core.locking.wait_graph import WaitGraph
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.locks import LockRows
from coordinator.core.state import CoreState
from coordinator.core.transactions import Transaction as CoreTransaction
from coordinator.driver.driver import Driver
from storage.types import Timestamp
from tests.resilience.sim import transaction
from tests.resilience.sim.planted import Planted, assert_found
from tests.resilience.sim.run import simulate

# --- the group in flight -----------------------------------------------------------------------


def tables_granted_over_the_group_in_flight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requests, "hold_for_group", lambda *_: None)


def rows_granted_over_the_group_in_flight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requests, "is_among", lambda *_: False)


def released_at_the_launch(patch: pytest.MonkeyPatch) -> None:
    start_group = commits.start_group

    def eager(core: CoreState, now: Timestamp) -> list[Effect]:
        effects = start_group(core, now)
        group = core.groups.in_flight
        if group is not None and any(isinstance(effect, CommitGroup) for effect in effects):
            for member in group.members:
                if isinstance(member, PendingCommit):
                    served = core.locks.release_transaction(member.txn.owner, member.txn.id)
                    effects += requests.serve_waiters(core, served)
        return effects

    patch.setattr(commits, "start_group", eager)


# --- single statements -------------------------------------------------------------------------


def single_statements_ignore_locks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingCommit, "lock_in_the_way", lambda *_: None)
    patch.setattr(PendingCommit, "is_row_held", lambda *_: False)
    patch.setattr(PendingInsert, "lock_in_the_way", lambda *_: None)


def single_statements_overtake_waiters(patch: pytest.MonkeyPatch) -> None:
    def held(self: LockTable, session: ConnectionId, tag: LockTag, mode: LockMode) -> bool:
        wanted = LockRequest(RequestId(0), session, None, tag, mode, single=True)
        return self.is_held_against(wanted)

    patch.setattr(LockTable, "is_against", held)


def waiting_statements_count_as_ahead(patch: pytest.MonkeyPatch) -> None:
    """Then a lease waits for who waits for a lock."""
    blocked, ahead = commits._blocked, GroupCommit.delays_lease
    tables: dict[tuple[int, TransactionId], frozenset[int]] = {}
    waiting: dict[int, CoreState] = {}

    def remember(core: CoreState, member: Any, told: Any) -> list[Effect]:
        if isinstance(member, PendingCommit):
            tables[id(core.groups), member.txn.id] = frozenset(member.tables())
            waiting[id(core.groups)] = core
        return blocked(core, member, told)

    def with_waiters(
        self: GroupCommit, wanted: frozenset[int], ticket: int, leases: WriteLeases
    ) -> bool:
        core = waiting.get(id(self))
        lines = () if core is None else core.locks.queues()
        waiters = [waiter.txn for queue in lines for waiter in queue.waiting if waiter.single]
        more = [tables.get((id(self), txn), frozenset()) for txn in waiters if txn is not None]
        others = frozenset[int]().union(*more)
        return ahead(self, wanted, ticket, leases) or not wanted.isdisjoint(others)

    patch.setattr(commits, "_blocked", remember)
    patch.setattr(GroupCommit, "delays_lease", with_waiters)


def leases_wait_for_locks(patch: pytest.MonkeyPatch) -> None:
    blocked = commits._blocked

    def keeping(core: CoreState, member: Any, told: Any) -> list[Effect]:
        leased = dict(core.leases._holders)
        effects = blocked(core, member, told)
        core.leases._holders = leased
        return effects

    patch.setattr(commits, "_blocked", keeping)
    patch.setattr(requests, "_give_back_lease", lambda *_: None)


# --- lines -------------------------------------------------------------------------------------


def one_waiter_is_never_woken(patch: pytest.MonkeyPatch) -> None:
    """Of many: now and then one is passed over for ever."""
    fits = LockQueue.fits

    def unlucky(self: LockQueue, wanted: LockRequest, ahead: Any) -> bool:
        return wanted.session % 16 != 7 and fits(self, wanted, ahead)

    def serve(self: LockQueue) -> list[LockRequest]:
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(LockQueue, "fits", unlucky)
            return served(self)

    served = LockQueue.serve
    patch.setattr(LockQueue, "serve", serve)


def woken_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """Those who fit each other, too."""

    def serve(self: LockQueue) -> list[LockRequest]:
        for at, waiter in enumerate(self.waiting):
            if self.fits(waiter, self.waiting[:at]):
                self.hold(waiter)
                del self.waiting[at]
                return [waiter]
        return []

    patch.setattr(LockQueue, "serve", serve)


def deadlocks_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WaitGraph, "find_circle", lambda *_, **__: None)


def kept_after_rollback_to(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockTable, "rollback_to", lambda *_: [])


# --- rows that have changed --------------------------------------------------------------------


def _without_a_look(patch: pytest.MonkeyPatch, *, skips: bool) -> None:
    lock_rows = requests.lock_rows

    def careless(core: CoreState, message: LockRows) -> list[Effect]:
        if core.transactions[message.txn].skips_locked is not skips:
            return lock_rows(core, message)
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(type(core.groups.writes), "any_gone", lambda *_: False)
            return lock_rows(core, message)

    patch.setattr(requests, "lock_rows", careless)


def free_rows_that_have_changed(patch: pytest.MonkeyPatch) -> None:
    """Between the scan and the lock."""
    _without_a_look(patch, skips=False)


def skip_locked_by_an_old_snapshot(patch: pytest.MonkeyPatch) -> None:
    _without_a_look(patch, skips=True)


def rows_under_two_names(patch: pytest.MonkeyPatch) -> None:
    """After a cut."""
    patch.setattr(LockTable, "rename_rows", lambda *_: None)


# --- timestamps --------------------------------------------------------------------------------


def session_keeps_its_timestamp(patch: pytest.MonkeyPatch) -> None:
    """It does not take the snapshot that the server has moved its transaction to."""
    look = transaction.Transaction.look

    async def stay(self: transaction.Transaction, *, again: bool = False) -> None:
        before = self._snapshot
        await look(self, again=again)
        if again and before is not None:
            self._snapshot = before

    patch.setattr(transaction.Transaction, "look", stay)


def since_not_moved(patch: pytest.MonkeyPatch) -> None:
    move_to = CoreTransaction.move_to

    def most(self: CoreTransaction, ts: Timestamp, catalog: Any) -> Any:
        required = dict(self.required)
        snapshot = move_to(self, ts, catalog)
        self.required = required
        return snapshot

    patch.setattr(CoreTransaction, "move_to", most)


def last_reads_forgotten_at_a_refresh(patch: pytest.MonkeyPatch) -> None:
    """Those of the statement that has got an advisory lock."""
    refresh = requests.refresh

    def forgetful(core: CoreState, message: Any) -> Any:
        txn = core.transactions[message.txn]
        txn._undoable = [] if txn._undoable is not None else None
        refresh(core, txn)
        return [requests.Reply(message.request, txn.snapshot)]

    patch.setattr("coordinator.core.core.refresh_snapshot", forgetful)


# --- leadership, lost locks --------------------------------------------------------------------


def granted_by_the_deposed(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether the coordinator still leads before it says that a lock is held."""
    locked = Driver._locked
    patch.setattr(Driver, "_locked", lambda self, make, **_: locked(self, make, sure=True))


def lost_locks_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """K6 asks that below the serializable levels nobody commits who has lost a lock."""
    drop_locks = requests.drop_locks

    def lenient(core: CoreState, *, guards: bool) -> list[Effect]:
        effects = drop_locks(core, guards=guards)
        for txn in core.transactions.values():
            txn.doomed = False
        return effects

    patch.setattr(requests, "drop_locks", lenient)


PLANTS = (
    Planted(tables_granted_over_the_group_in_flight, "migrations", "calm", "K1"),
    Planted(rows_granted_over_the_group_in_flight, "hot", "calm", "K1"),
    Planted(released_at_the_launch, "guarded", "calm", "K1"),
    Planted(single_statements_ignore_locks, "hot", "calm", "K2"),
    Planted(single_statements_overtake_waiters, "hot", "calm", "K5"),
    Planted(waiting_statements_count_as_ahead, "hot", "calm", "L2"),
    Planted(leases_wait_for_locks, "hot", "calm", "L2"),
    Planted(one_waiter_is_never_woken, "guarded", "calm", "K3"),
    Planted(woken_one_by_one, "guarded", "calm", "K3"),
    Planted(deadlocks_not_looked_for, "bank", "calm", "K4"),
    Planted(kept_after_rollback_to, "queue", "calm", "T1"),
    Planted(free_rows_that_have_changed, "guarded", "calm", "R1"),
    Planted(skip_locked_by_an_old_snapshot, "queue", "calm", "R1"),
    Planted(rows_under_two_names, "queue", "calm", "H2"),
    Planted(session_keeps_its_timestamp, "guarded", "calm"),
    Planted(since_not_moved, "references", "calm", "F1"),
    Planted(last_reads_forgotten_at_a_refresh, "mixed", "calm"),
    Planted(granted_by_the_deposed, "guarded", "successions", "D4"),
    Planted(lost_locks_not_noticed, "guarded", "locks"),
)


@pytest.mark.parametrize("planted", PLANTS, ids=lambda p: p.plant.__name__)
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    assert_found(planted)


def test_without_a_plant_nothing_is_found() -> None:
    places = {(planted.workload, planted.weather) for planted in PLANTS}
    for workload, weather in sorted(places):
        for seed in range(2):
            outcome = simulate(seed, workload, weather)
            assert not outcome.findings, outcome.report()
