"""Follow a row that a commit replaces while it is held, or waited for: its key stays locked.

INVARIANT  a row with a primary key is known by its newest identity, if the commit that replaced it
says which row has its key; else it counts as gone, and whoever holds it looks for it again.

So a session that has waited for a row holds it as it is now, and single statements respect that.
"""

from coordinator.core.locking.lock_table import LockTable
from sql.catalog.catalog import Catalog
from storage.batch import WriteBatch
from storage.known_rows import KnownRows, equal_key
from storage.shard import ShardState
from storage.types import Timestamp, inline_source


def follow_replaced_rows(
    locks: LockTable, catalog: Catalog, before: ShardState, ts: Timestamp, batch: WriteBatch
) -> None:
    """A group has committed this batch at `ts`; `before`: the shard without it."""
    if before.shard not in locks.rows or not batch.deletes or batch.inserts is None:
        return
    tags = {tag.key: tag for tag in locks.rows.among(before, batch.deletes) if not tag.by_identity}
    table = catalog.by_oid(next(iter(tags.values())).table) if tags else None
    key = None if table is None else next((k for k in table.keys if k.primary), None)
    if key is None:
        return
    rows = KnownRows.of(batch.inserts)
    columns = [rows.values(ordinal) for ordinal in key.columns]
    for index, values in enumerate(zip(*columns, strict=True)):
        tag = tags.get(equal_key(values))
        if tag is not None:
            locks.rows.add(before.shard, (inline_source(ts), index), tag)
