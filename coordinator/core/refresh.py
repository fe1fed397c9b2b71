"""Refresh: move what a transaction has read to a newer timestamp, if it is still true there.

    waited for a lock ─▶ all that was read, looked up, altered: unchanged since? ─▶ new timestamp
    read committed ────▶ keys and references looked up before: unchanged since? ─▶ count from now

INVARIANTS
  F1  a refreshed transaction has read nothing that was not also true at its new timestamp, and from
      there on everything is validated: no `since` stays behind.
  F2  a refresh costs a bounded number of row tests, over all refreshes of a transaction.
  F3  what was not decided to be unchanged counts as changed: the transaction stays where it is, and
      its commit decides.

Above read committed the rules are A1, A2, A5 to A8, A10 and A11 of `validation.py`, at every level:
repeatable read does not validate its reads at the commit, but they must agree with each other.
"""

from typing import Final

from coordinator.core.catalog import StaleCatalog
from coordinator.core.effects import Effect, Reply
from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.locks import RefreshSnapshot
from coordinator.core.own_writes import final_batch
from coordinator.core.recent_writes import Verdict
from coordinator.core.stale_definitions import stale_name_refusal, stale_tables_refusal
from coordinator.core.state import CoreState
from coordinator.core.transactions import VALIDATING, Since, Transaction
from coordinator.core.validation import (
    RecentHistory,
    ValidationCounts,
    WritesAhead,
    behind_refusal,
    changed_reads_refusal,
    conflict_refusal,
)
from storage.types import ShardId, Timestamp

SINCES_MAX: Final = 16
"""Timestamps of one transaction and shard that keep their look-ups apart. Larger: more work for
transactions at read committed. Smaller: more of them are refused without need."""


def refresh_snapshot(core: CoreState, message: RefreshSnapshot) -> list[Effect]:
    """Move a transaction to the newest timestamp, if that may be."""
    txn = core.transactions[message.txn]
    assert txn.snapshot is not None, "X1: who refreshes has a snapshot"
    # The statement that has got the lock is done: what it read was shown.
    txn.settle_reads()
    refresh(core, txn)
    return [Reply(message.request, txn.snapshot)]


def refresh(core: CoreState, txn: Transaction) -> bool:
    """Whether the transaction reads at the newest timestamp now (F1)."""
    assert txn.snapshot is not None, "X1: who refreshes has a snapshot"
    before, ts = txn.snapshot.ts, core.oracle.read_ts()
    if ts == before:
        return True
    if not may_refresh(txn) or not _all_unchanged(core, txn, ts):
        return False
    try:
        txn.move_to(ts, core.catalog_at(ts))
    except StaleCatalog:
        return False
    core.snapshots.hold(txn, ts)
    return True


def may_refresh(txn: Transaction) -> bool:
    """Whether nobody was promised the transaction's timestamp.

    At read committed every statement has a timestamp of its own anyway.
    """
    return (
        txn.isolation is not Isolation.READ_COMMITTED
        and txn.staleness_us is None
        and not txn.read_only
        and not txn.pinned
        and txn.advance_to is None
    )


def _all_unchanged(core: CoreState, txn: Transaction, ts: Timestamp) -> bool:
    """Whether all that it has read and relies on is the same at `ts` (F2, F3)."""
    counts = ValidationCounts()
    recent = RecentHistory(
        core.shards, core.groups.writes, counts, WritesAhead(), txn.refresh_budget
    )
    catalog = core.catalog_at(ts)
    writes = {shard: final_batch(own.merged()) for shard, own in txn.writes.items()}
    verdict = (
        stale_tables_refusal(txn, catalog, every=True)
        or stale_name_refusal(txn.look_ups, catalog)
        or behind_refusal(txn, catalog, every=True)
        # Levels that validate their reads have them looked at among their conflicts.
        or (None if txn.isolation in VALIDATING else changed_reads_refusal(txn, recent))
        or conflict_refusal(txn, writes, recent)
    )
    return verdict is None


def advance_look_ups(core: CoreState, txn: Transaction, shard: ShardId) -> None:
    """Read committed, before a transaction looks up more in a shard at a later timestamp: let its
    earlier look-ups count from there, as far as they are still true.

    Kept from its own timestamp on, an early look-up would take for news what a later one has seen.
    """
    assert txn.snapshot is not None, "X1: who reads has a snapshot"
    ts = txn.snapshot.ts
    for since in txn.sinces_of(shard):
        if since[1] < ts and _is_still_true(core, txn, since):
            txn.count_from(since, ts)
    left = txn.sinces_of(shard)
    if len(left) > SINCES_MAX:
        # From an earlier timestamp on is more than need be, never less.
        for since in left[1:-1]:
            txn.count_from(since, left[0][1])


def _is_still_true(core: CoreState, txn: Transaction, since: Since) -> bool:
    """Whether nothing that was looked up then has changed."""
    shard, ts = since
    state = core.shards.get(shard)
    if state is None or state.last_write <= ts:
        return True
    recent = RecentHistory(core.shards, core.groups.writes, ValidationCounts(), WritesAhead())
    budget = recent.new_budget()
    keys, reads = txn.key_look_ups.get(since), txn.required.get(since)
    looked_up = (
        () if keys is None else keys.predicates,
        () if reads is None else reads.predicates,
    )
    return all(recent.look(shard, part, ts, budget) is Verdict.CLEAR for part in looked_up)
