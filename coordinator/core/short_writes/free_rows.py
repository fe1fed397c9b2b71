"""Choose the rows that SKIP LOCKED takes in a block: the first ones that would be granted at once.

    candidates in order ─▶ held by another, or about to be changed? ─ passed over ─┐
                             └ no ─▶ as the transaction has seen it ─▶ chosen      ▼
                                       └ changed since: the general way, if there are too few

Nothing is locked here: who chooses looks at the rows first (I2 of `in_block.py`), and locks them in
the same step.

The invariants are those of the package.
"""

from collections.abc import Hashable, Sequence

from coordinator.core.locking.held_rows import as_deletes, is_among
from coordinator.core.messages.locks import RowsToLock
from coordinator.core.own_writes import merge_deletes
from coordinator.core.short_writes.by_key import (
    CannotEvaluate,
    CurrentRow,
    FreeRows,
    RowValues,
)
from coordinator.core.state import CoreState
from coordinator.core.transactions import Transaction
from sql.catalog.catalog import Table
from storage.batch import Deletes, RowIdentity, ShardView
from storage.shard import ShardState


def choose_free_rows(
    core: CoreState,
    txn: Transaction,
    table: Table,
    view: ShardView,
    wanted: FreeRows,
    limit: int,
) -> Sequence[tuple[CurrentRow, RowValues]]:
    """See CurrentRows.first_free (E7)."""
    state = core.shards[view.shard]
    held = core.locks.rows
    about_to_go = _about_to_go(core, state)
    may_be_gone = txn.snapshot is None or state.last_write > txn.snapshot.ts
    chosen: list[tuple[CurrentRow, RowValues]] = []
    is_any_gone = False
    for identity, shown in wanted.candidates(view):
        if not state.is_current(identity[0]):
            raise CannotEvaluate
        tag = held.tag_at(state.shard, identity)
        if tag is not None and not core.locks.is_free(txn.owner, tag, wanted.mode):
            continue
        if is_among(identity, about_to_go):
            continue
        if may_be_gone and core.groups.writes.any_gone(state, as_deletes([identity])):
            is_any_gone = True
            continue
        row = CurrentRow(identity, wanted.row(view, identity))
        # Who waits alone for what was in its way is known by its tag only (H1 of `held_rows.py`).
        (tag,) = rows_to_lock(table, [row]).tags()
        if not core.locks.is_free(txn.owner, tag, wanted.mode):
            continue
        chosen.append((row, shown))
        if len(chosen) == limit:
            return chosen
    if is_any_gone:
        raise CannotEvaluate
    return chosen


def _about_to_go(core: CoreState, state: ShardState) -> Deletes:
    found: Deletes = {}
    for holder in core.groups.holders():
        found = merge_deletes(found, holder.changes.deletes(state))
    return found


def rows_to_lock(table: Table, rows: Sequence[CurrentRow]) -> RowsToLock:
    """Rows as a view has them, to be locked by their primary keys, or else by their identities."""
    primary = next((key for key in table.keys if key.primary), None)
    named: list[RowIdentity] = []
    keys: list[tuple[Hashable, ...]] = []
    for row in rows:
        assert row.base is not None, "only rows that are there are locked"
        assert row.values is not None, "only rows that are there are locked"
        named.append(row.base)
        if primary is not None:
            keys.append(tuple([_hashable(row.values[at]) for at in primary.columns]))
    sources, indexes = [source for source, _ in named], [index for _, index in named]
    return RowsToLock(table, sources, indexes, None if primary is None else keys)


def _hashable(value: object) -> Hashable:
    assert isinstance(value, Hashable), "keys are compared as Python values"
    return value
