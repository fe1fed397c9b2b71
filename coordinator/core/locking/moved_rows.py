"""Follow a row that a commit replaces while others hold it FOR KEY SHARE: its key stays locked.

INVARIANT  a row that is held FOR KEY SHARE is known by its newest identity, if the commit that
replaced it says which row has its key; else it counts as gone (A9), which is safe.
"""

from coordinator.core.locking.lock_table import LockTable
from coordinator.core.locking.modes import LockMode
from sql.catalog.catalog import Catalog
from storage.batch import WriteBatch
from storage.known_rows import KnownRows
from storage.shard import ShardState
from storage.types import Timestamp, inline_source


def follow_replaced_rows(
    locks: LockTable, catalog: Catalog, before: ShardState, ts: Timestamp, batch: WriteBatch
) -> None:
    """A group has committed this batch at `ts`; `before`: the shard without it."""
    if before.shard not in locks.rows or not batch.deletes or batch.inserts is None:
        return
    rows = KnownRows.of(batch.inserts)
    for tag in list(locks.rows.among(before, batch.deletes)):
        if not locks.is_held_in(tag, LockMode.ROW_KEY_SHARE):
            continue
        table = catalog.by_oid(tag.table)
        key = None if table is None else next((k for k in table.keys if k.primary), None)
        if key is None:
            continue
        columns = [rows.values(ordinal) for ordinal in key.columns]
        for index, values in enumerate(zip(*columns, strict=True)):
            if values == tag.key:
                locks.rows.add(before.shard, (inline_source(ts), index), tag)
