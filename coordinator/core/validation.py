"""May a transaction commit now? Optimistic validation by table (DESIGN §6, first step).

INVARIANTS
  A1  a transaction that writes commits only if no table it has read was written after its read
      timestamp, by earlier commits or by earlier members of the same group.
  A2  a transaction commits only if every table it touched is still defined as it was bound.
  A3  blind writes have an empty read set and never conflict.
  A4  a shard whose Delta table has a foreign writer's version takes no commit and answers no read:
      nobody knows what it holds.

Later: precision locking on predicates; the verdict's shape stays.
"""

from collections.abc import Mapping, Set

from coordinator.core.catalog import is_current
from coordinator.core.messages import Refused, RefusedReason
from coordinator.core.transactions import Transaction
from sql.catalog import Catalog
from storage.shard import ShardState
from storage.types import ShardId

RETRY_HINT = "The transaction might succeed if retried."


def conflict(
    txn: Transaction,
    shards: Mapping[ShardId, ShardState],
    written: Set[ShardId],
) -> Refused | None:
    """A1: the verdict on the read set; `written`: shards of earlier members of the group."""
    if not txn.reads:
        return None
    assert txn.snapshot is not None, "X1: who has read has a snapshot"
    for table in txn.tables.values():
        shard = ShardId(table.shard)
        if shard not in txn.reads:
            continue
        state = shards.get(shard)
        if shard in written or (state is not None and state.last_write > txn.snapshot.ts):
            return Refused(
                RefusedReason.CONFLICT,
                "40001",
                "could not serialize access due to concurrent update",
                f'Table "{table.name}" was changed after this transaction read it.',
                RETRY_HINT,
            )
    return None


def fenced(shard: ShardId, shards: Mapping[ShardId, ShardState]) -> Refused | None:
    """A4: the verdict on a shard that is to be read or written."""
    state = shards.get(shard)
    if state is None or not state.fenced:
        return None
    return Refused(
        RefusedReason.OTHER,
        "58030",
        "the table was changed by another writer",
        hint="Its Delta log was written by something other than this server.",
    )


def stale(txn: Transaction, catalog: Catalog) -> Refused | None:
    """A2: the verdict on definitions; `catalog` has the transaction's own DDL applied."""
    created = txn.created()
    for table in txn.tables.values():
        if is_current(catalog, table) or ShardId(table.shard) in created:
            continue
        if txn.changes and _dropped_by_itself(txn, table.oid):
            continue
        return stale_refusal(f'table "{table.name}" was changed by a concurrent transaction')
    return None


def _dropped_by_itself(txn: Transaction, oid: int) -> bool:
    assert txn.snapshot is not None, "X1: DDL is bound against a snapshot"
    return all(table.oid != oid for table in txn.snapshot.catalog.tables.values())


def stale_refusal(detail: str) -> Refused:
    """40001 for a definition that changed; a statement nobody has seen is bound again."""
    return Refused(
        RefusedReason.STALE,
        "40001",
        "could not serialize access due to concurrent definition change",
        detail[0].upper() + detail[1:] + ".",
        RETRY_HINT,
    )
