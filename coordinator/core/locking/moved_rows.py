"""Follow a row that a commit replaces while it is held, or waited for: its key stays locked.

INVARIANT  a row with a primary key is known by its newest identity, if the commit that replaced it
says which row has its key; else it counts as gone, and whoever holds it looks for it again.

Who locks a key whose row has been replaced since he saw it holds the newest row, too, as long as it
is in the tail.

So a session that has waited for a row holds it as it is now, and single statements respect that.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import attrgetter

from coordinator.core.locking.lock_table import LockTable
from coordinator.core.locking.modes import RowTag
from sql.catalog.catalog import Catalog, Table
from storage.batch import RowIdentity, WriteBatch
from storage.known_rows import KnownRows, equal_key
from storage.row_schema import has_schema
from storage.shard import ShardState
from storage.types import Timestamp, inline_source


def follow_replaced_rows(
    locks: LockTable, catalog: Catalog, before: ShardState, ts: Timestamp, batch: WriteBatch
) -> None:
    """A group has committed this batch at `ts`; `before`: the shard without it."""
    if before.shard not in locks.rows or not batch.deletes or batch.rows is None:
        return
    tags = {tag.key: tag for tag in locks.rows.among(before, batch.deletes) if not tag.by_identity}
    table = catalog.by_oid(next(iter(tags.values())).table) if tags else None
    key = None if table is None else next((k for k in table.keys if k.primary), None)
    if key is None:
        return
    rows = KnownRows.of(batch.rows)
    columns = [rows.values(ordinal) for ordinal in key.columns]
    for index, values in enumerate(zip(*columns, strict=True)):
        tag = tags.get(equal_key(values))
        if tag is not None:
            locks.rows.add(before.shard, (inline_source(ts), index), tag)


def newest_names(
    state: ShardState, table: Table, tags: Iterable[RowTag], after: Timestamp
) -> Mapping[RowTag, RowIdentity]:
    """How the rows of these keys are called that were replaced after `after`; not those that are
    in a file by now, or gone.
    """
    key = next((key for key in table.keys if key.primary), None)
    by_key = {tag.key: tag for tag in tags if not tag.by_identity}
    names: dict[RowTag, RowIdentity] = {}
    if key is None or not by_key:
        return names
    for commit in state.tail[bisect_right(state.tail, after, key=attrgetter("ts")) :]:
        if commit.inline is None or not has_schema(commit.inline.stored.schema, state.schema):
            continue
        rows = KnownRows.of(commit.inline.stored)
        columns = [rows.values(ordinal) for ordinal in key.columns]
        for index, values in enumerate(zip(*columns, strict=True)):
            tag = by_key.get(equal_key(values))
            if tag is not None:
                names[tag] = commit.inline.source, index
    return names
