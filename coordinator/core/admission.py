"""Admit a transaction to a group: whether it may commit after all before it, and what it writes.

The invariants are those of `group_commit.py` and `validation.py`.
"""

from collections.abc import Iterable, Mapping

from coordinator.core.catalog import StaleCatalog, apply_changes, check_catalog_integrity
from coordinator.core.gathering import Gathering
from coordinator.core.group_members import PendingCommit
from coordinator.core.locking.held_rows import as_deletes
from coordinator.core.locking.lock_table import LockTable
from coordinator.core.messages.replies import Refused
from coordinator.core.not_null_check import not_null_refusal
from coordinator.core.recent_writes import RecentWrites, committed_writes
from coordinator.core.stale_definitions import (
    stale_name_refusal,
    stale_refusal,
    stale_tables_refusal,
)
from coordinator.core.transactions import Transaction
from coordinator.core.validation import behind_refusal, conflict_refusal, fenced_writes_refusal
from sql.catalog.catalog import Catalog, Table
from storage.batch import RowIdentity, WriteBatch
from storage.shard import ShardState
from storage.types import ShardId


def admit_commit(group: Gathering, pending: PendingCommit) -> None:
    """Validate a transaction at its place (G2), and take what it writes."""
    txn = pending.txn
    if not txn.is_write():
        # It has been serialized where it has read, as any transaction without writes (G6).
        group.members.append(pending)
        group.notifying.append(txn)
        return
    group.short.tell_ahead()
    shards = group.recent.shards
    catalog = group.catalog
    try:
        if txn.changes:
            catalog = apply_changes(group.catalog, txn.changes, version=catalog.version + 1)
            check_catalog_integrity(group.catalog, catalog, txn.changes)
            txn.check_rests(group.catalog)
    except StaleCatalog as error:
        group.refuse(pending, stale_refusal(str(error)))
        return
    writes = txn.final_writes()
    verdict = commit_refusal(group, txn, writes, catalog)
    if verdict is not None:
        group.refuse(pending, verdict)
        return
    group.catalog = catalog
    group.members.append(pending)
    group.changes.extend(txn.changes)
    if txn.notifying is not None:
        group.notifying.append(txn)
    for shard, batch in writes.items():
        group.batches.setdefault(shard, []).append(batch)
        group.nbytes += batch.nbytes
        entry = committed_writes(batch, txn.replaced.get(shard, ()))
        group.recent.ahead.add(shard, shards.get(shard), batch, entry)
    if catalog.exact_views:
        group.leave_views(pending.tables(), txn.changes)


def commit_refusal(
    group: Gathering, txn: Transaction, writes: Mapping[ShardId, WriteBatch], catalog: Catalog
) -> Refused | None:
    """The verdict on a transaction, after all that the group has so far. `catalog`: with its own
    DDL.
    """
    return (
        stale_tables_refusal(txn, catalog)
        or stale_name_refusal(txn.look_ups, group.catalog)
        or behind_refusal(txn, group.catalog)
        or conflict_refusal(txn, writes, group.recent)
        or fenced_writes_refusal(txn, group.recent.shards, writes)
        or not_null_refusal(_defined(txn, catalog), writes)
    )


def _defined(txn: Transaction, catalog: Catalog) -> Iterable[Table]:
    """The tables that the transaction may have written to, as the catalog has them."""
    # Without DDL of its own they are what it has bound (A2 of `validation.py`), and fewer.
    return catalog.tables.values() if txn.changes else txn.tables.values()


def has_lost_rows(
    pending: PendingCommit,
    locks: LockTable,
    shards: Mapping[ShardId, ShardState],
    writes: RecentWrites,
) -> bool:
    """A9: whether a row that it holds by FOR UPDATE or its kin is not there any more."""
    if not pending.txn.locks_rows:
        return False
    found: dict[ShardId, list[RowIdentity]] = {}
    for shard, row in locks.shown_rows(pending.txn.owner, pending.txn.id):
        found.setdefault(shard, []).append(row)
    return any(writes.any_gone(shards[shard], as_deletes(rows)) for shard, rows in found.items())
