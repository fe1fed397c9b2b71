"""A short statement of a block: all that it does to its transaction, in one step.

    ReadInBlock ───▶ its view, what it reads
    ChangeInBlock ─▶ evaluated over the transaction's own view ─▶ locks of the table and of rows
                          └────────── anything in doubt ──────────┴─▶ None: the general way
                     ─▶ what it has read, what it writes ─▶ ChangedByKey

SELECT FOR UPDATE is a change that leaves its rows as they are (`WriteByKey.locks`).

The transaction reads at its timestamp and sees its own rows, as in the general way, and the same is
validated at its commit: what the evaluator looked at (`reads`), the names that it rests on.

INVARIANTS
  I1  in doubt nothing has happened but that the transaction may hold locks that its statement needs
      in any case: a lock is not free, a row has changed since, a file would have to be read. Of
      rows that are not free the session is told, so that it waits for them and comes again.
  I2  a step asks for no lock before it has found its rows, and takes them in their order.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

from pyroaring import BitMap64

from coordinator.core.effects import Effect, Reply
from coordinator.core.fences import fenced_table_refusal
from coordinator.core.locking.lock_table import LockRequest, LockVerdict
from coordinator.core.locking.modes import LockMode, LockWait, TableTag
from coordinator.core.locking.requests import hold_for_group, take_if_free
from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.locks import LockRows
from coordinator.core.messages.replies import ChangedByKey, Views
from coordinator.core.messages.requests import ChangeInBlock, ReadInBlock, WriteRows
from coordinator.core.short_writes.by_key import (
    CannotEvaluate,
    ChangedRow,
    CurrentRow,
    FreeRows,
    KeyPlace,
    RowValues,
    WriteByKey,
    keys_of_row,
    known_rows,
    returned_rows,
)
from coordinator.core.short_writes.free_rows import choose_free_rows, rows_to_lock
from coordinator.core.sources.loading import is_loaded
from coordinator.core.state import CoreState
from coordinator.core.transactions import Transaction
from sql.catalog.catalog import Key, Table
from sql.catalog.temporary import is_temporary_schema
from storage.batch import ShardView, WriteBatch
from storage.fast_dataclass import fast_dataclass
from storage.known_rows import OldRows
from storage.shard import ShardState
from storage.types import OWN, ShardId, Source, Timestamp
from storage.unencoded_rows import RowEncoder


def answer_in_block(core: CoreState, message: ChangeInBlock | ReadInBlock) -> list[Effect]:
    """Handle one statement of a block."""
    if isinstance(message, ReadInBlock):
        return _read(core, message)
    return _change(core, message)


def _change(core: CoreState, message: ChangeInBlock) -> list[Effect]:
    """Evaluate and buffer one statement, if nothing is in doubt (I1)."""
    txn, write = core.transactions[message.txn], message.change
    state = core.shards.get(ShardId(write.table.shard))
    if state is None or txn.read_only or not _is_plain(core, txn, write.table, state):
        return [_not_here(message)]
    txn.begin_statement()
    assert txn.snapshot is not None, "X1: who writes by key has a snapshot"
    ts = txn.snapshot.ts
    rows = _OwnView(core, txn, write, lambda: _view(core, txn, write.table, state, ts))
    try:
        found = write.evaluate(rows)
        changes = found if write.locks is None else ()
        batch = _batch(write.encoder, changes)
    except (CannotEvaluate, ValueError, OverflowError, ArithmeticError):
        return [_not_here(message)]
    try:
        if not _take_locks(core, txn, message, state, found, rows.chosen):
            return [_not_here(message)]
    except _NotFree as met:
        return [Reply(message.request, ChangedByKey(None, in_the_way=met.rows))]
    txn.looked_up(write.names)
    if rows.has_skipped:
        txn.tables[write.table.oid], txn.skips_locked = write.table, True
    for predicate in write.reads():
        txn.read(write.table, predicate)
    if changes:
        keeps_keys = all(change.values is not None for change in changes)
        old = _old_rows(write.table, write.encoder, changes)
        txn.write(WriteRows(txn.id, write.table, batch, old, keeps_keys))
    nbytes = sum(change.nbytes for change in changes)
    done = ChangedByKey(len(found), nbytes, returned_rows(found))
    return [Reply(message.request, done)]


def _read(core: CoreState, message: ReadInBlock) -> list[Effect]:
    """Pin a view of a table at the transaction's timestamp; what is read enters the read set."""
    txn, table = core.transactions[message.txn], message.table
    state = core.shards.get(ShardId(table.shard))
    if state is None or not _is_plain(core, txn, table, state):
        return [Reply(message.request, Views(()))]
    txn.begin_statement()
    txn.looked_up(message.names)
    txn.read(table, message.predicate)
    assert txn.snapshot is not None, "X1: who reads has a snapshot"
    view = _view(core, txn, table, state, txn.snapshot.ts)
    return [Reply(message.request, Views((view,)))]


def _not_here(message: ChangeInBlock) -> Effect:
    return Reply(message.request, ChangedByKey(None))


def _is_plain(core: CoreState, txn: Transaction, table: Table, state: ShardState) -> bool:
    """Whether the transaction reads and writes as most do: at one timestamp, which it may still
    read at, and definitions that are not its own.
    """
    if txn.snapshot is None or txn.changes:
        return False
    if txn.isolation in (Isolation.READ_COMMITTED, Isolation.BOUNDED_STALENESS):
        return False
    if is_temporary_schema(table.schema) or fenced_table_refusal(table, core.shards) is not None:
        return False
    if not is_loaded(core, table, txn.snapshot.ts):
        return False
    return txn.snapshot.ts >= max(core.holds.since_of(state.shard), state.since)


def _view(
    core: CoreState, txn: Transaction, table: Table, state: ShardState, ts: Timestamp
) -> ShardView:
    schema = core.schema_of(table) if state.definitions else None
    return state.view(ts, txn.own(state.shard), schema)


class _OwnView:
    """The rows of a transaction's view (CurrentRows), which is made for who looks for one.
    `chosen`: rows that SKIP LOCKED has chosen, by mode.
    """

    def __init__(
        self, core: CoreState, txn: Transaction, write: WriteByKey, make: Callable[[], ShardView]
    ) -> None:
        self._core = core
        self._txn = txn
        self._write = write
        self._make = make
        self._view: ShardView | None = None
        self._by_key: dict[KeyPlace, CurrentRow] = {}
        self.has_skipped = False
        self.chosen: dict[LockMode, list[CurrentRow]] = {}

    def find(self, key: Key, values: tuple[Hashable, ...]) -> CurrentRow | None:
        """See CurrentRows."""
        known = self._by_key.get((key.columns, values))
        if known is not None:
            return known
        found = self._write.finder.find(self._shown(), key, values)
        return None if found is None else CurrentRow(found[0], found[1])

    def first_free(self, wanted: FreeRows, limit: int) -> Sequence[tuple[CurrentRow, RowValues]]:
        """See CurrentRows."""
        self.has_skipped = True
        table = self._write.table
        found = choose_free_rows(self._core, self._txn, table, self._shown(), wanted, limit)
        for row, _ in found:
            assert row.values is not None, "a row of a view has values"
            for place in keys_of_row(table, row.values):
                self._by_key[place] = row
            self.chosen.setdefault(wanted.mode, []).append(row)
        return found

    def _shown(self) -> ShardView:
        if self._view is None:
            self._view = self._make()
        return self._view


def _batch(encoder: RowEncoder, changes: Sequence[ChangedRow]) -> WriteBatch:
    """What the changes come to. Raises what the encoder does."""
    came = [change.values for change in changes if change.values is not None]
    deletes: dict[Source, BitMap64] = {}
    for change in changes:
        if change.row is not None:
            assert change.row.base is not None, "a row of a view has an identity"
            source, index = change.row.base
            deletes.setdefault(source, BitMap64()).add(index)
    return WriteBatch(encoder.rows(came) if came else None, deletes=deletes)


def _old_rows(table: Table, encoder: RowEncoder, changes: Sequence[ChangedRow]) -> OldRows | None:
    """The rows that go, with their values."""
    deletes: dict[Source, BitMap64] = {}
    rows: list[RowValues] = []
    for change in changes:
        if change.row is not None and change.row.base is not None:
            assert change.row.values is not None, "a row of a view has values"
            rows.append(change.row.values)
            deletes.setdefault(change.row.base[0], BitMap64()).add(change.row.base[1])
    if not rows:
        return None
    return OldRows(deletes, known_rows(table, encoder, rows))


# --- locks --------------------------------------------------------------------------------------


@fast_dataclass(frozen=True, slots=True)
class _Wanted:
    """`implicit`: the statement changes them."""

    rows: Sequence[CurrentRow]
    mode: LockMode
    implicit: bool


class _NotFree(Exception):
    """Rows are held by others, or have changed since."""

    def __init__(self, rows: LockRows) -> None:
        super().__init__()
        self.rows = rows


def _take_locks(
    core: CoreState,
    txn: Transaction,
    message: ChangeInBlock,
    state: ShardState,
    changes: Sequence[ChangedRow],
    chosen: Mapping[LockMode, Sequence[CurrentRow]],
) -> bool:
    """Take the locks of the table, of the rows that SKIP LOCKED has chosen, and of those that go or
    change. False: the table's or that of a chosen row is not free, or a row is the transaction's
    own. Raises _NotFree.
    """
    locks = message.change.locks
    if not core.settings.locks:
        return True
    modes = LockMode.ROW_EXCLUSIVE if locks is None else LockMode.ROW_SHARE
    if not _take_table(core, txn, message, modes | LockMode.ROW_SHARE if chosen else modes):
        return False
    for mode, rows in chosen.items():
        asked = rows_to_lock(message.change.table, rows)
        if not take_if_free(core, LockRows(message.request, txn.id, asked, mode)):
            return False
    made = {OWN, *(file.name for file in txn.staged_in(state.shard))}
    there = [change for change in changes if change.row is not None]
    others = [(c.row, c) for c in there if c.row and c.row.base and c.row.base[0] not in made]
    if len(others) < len(there):
        return False  # rows of its own may have keys that others hold
    if locks is not None:
        if not chosen:
            _take_rows(core, message, _Wanted([row for row, _ in others], locks, implicit=False))
        return True
    updated = [row for row, change in others if change.values is not None]
    deleted = [row for row, change in others if change.values is None]
    _take_rows(core, message, _Wanted(updated, LockMode.ROW_NO_KEY_UPDATE, implicit=True))
    _take_rows(core, message, _Wanted(deleted, LockMode.ROW_UPDATE, implicit=True))
    return True


def _take_table(core: CoreState, txn: Transaction, message: ChangeInBlock, modes: LockMode) -> bool:
    tag = TableTag(message.change.table.oid)
    missing = modes & ~core.locks.holds(txn.owner, tag)
    if not missing:
        return True
    if core.catalog.current is not txn.base:
        return False  # the general way looks whether the table is another one
    for mode in missing:
        hold_for_group(core, tag, mode)
        ticket = core.locks.graph.ticket()
        savepoint = txn.innermost_savepoint
        asked = LockRequest(message.request, txn.owner, txn.id, tag, mode, savepoint, ticket)
        if core.locks.acquire(asked, LockWait.NO).verdict is not LockVerdict.GRANTED:
            return False
    return True


def _take_rows(core: CoreState, message: ChangeInBlock, wanted: _Wanted) -> None:
    """Raises _NotFree."""
    if not wanted.rows:
        return
    rows = rows_to_lock(message.change.table, wanted.rows)
    asked = LockRows(message.request, message.txn, rows, wanted.mode, implicit=wanted.implicit)
    if not take_if_free(core, asked):
        raise _NotFree(asked)
