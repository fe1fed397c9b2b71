"""The rows that the short writes of one gather have looked at, and what they have made of them.

The invariants are those of the package.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

from coordinator.core.locking.lock_table import LockTable
from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.messages.replies import Blocked
from coordinator.core.recent_writes import CommittedWrites
from coordinator.core.short_writes.by_key import (
    CannotEvaluate,
    ChangedRow,
    CurrentRow,
    CurrentRows,
    FreeRows,
    KeyPlace,
    RowValues,
    WriteByKey,
    keys_of_row,
    known_rows,
)
from coordinator.core.validation import WritesAhead
from sql.catalog.catalog import Key, Table
from storage.batch import RowIdentity, WriteBatch
from storage.known_rows import KnownRows
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp
from storage.unencoded_rows import RowEncoder

GATHER_WORK_MAX: Final = 250
"""What one gather evaluates, in rows that are looked up and computed: about 20 µs each, so 5 ms.
Larger: longer stalls of the loop. Smaller: smaller groups."""

WORK_BYTES: Final = 4_096
"""Bytes of a row that count as one more."""

NEWEST: Final = Timestamp((1 << 63) - 1)


class _ShardRows:
    """The rows of one shard that members have looked at (CurrentRows)."""

    def __init__(self, state: ShardState, schema: pa.Schema | None, locks: LockTable) -> None:
        self.state = state
        self._locks = locks
        self._view = state.view(NEWEST, schema=schema)
        self._by_key: dict[KeyPlace, CurrentRow] = {}
        self._changed: dict[int, CurrentRow] = {}
        """In the order in which they were changed first, by their identity as objects."""
        self._untold: dict[int, CurrentRow] = {}
        self._gone: set[RowIdentity] = set()
        """Rows of the shard that members have changed."""
        self._sessions: set[ConnectionId] = set()
        """Whose these members are."""
        self._member: WriteByKey | None = None
        self._session = ConnectionId(0)
        self.encoder: RowEncoder | None = None
        self._is_told = False
        """Whether others were told of a part (E2)."""
        self.looked_at = 0
        """How many rows members have looked for, or passed over (E4)."""

    def for_member(self, write: WriteByKey, session: ConnectionId) -> CurrentRows:
        """The rows, found as this member finds them."""
        self._member, self._session = write, session
        self.encoder = write.encoder
        return self

    def find(self, key: Key, values: tuple[Hashable, ...]) -> CurrentRow | None:
        """See CurrentRows."""
        known = self._by_key.get((key.columns, values))
        if known is not None:
            return None if known.values is None else known
        assert self._member is not None, "E1: a member looks"
        self.looked_at += 1
        found = self._member.finder.find(self._view, key, values)
        if found is None:
            return None
        row = CurrentRow(found[0], found[1], found[1])
        for place in keys_of_row(self._member.table, found[1]):
            self._by_key[place] = row
        return row

    def first_free(self, wanted: FreeRows, limit: int) -> Sequence[tuple[CurrentRow, RowValues]]:
        """See CurrentRows."""
        if self._session in self._sessions:
            raise CannotEvaluate  # its own changes are in nobody's way
        chosen: list[tuple[CurrentRow, RowValues]] = []
        held = self._locks.rows
        for identity, shown in wanted.candidates(self._view):
            self.looked_at += 1
            if identity in self._gone:
                continue
            tag = held.tag_at(self.state.shard, identity)
            if tag is not None and self._locks.is_against(self._session, tag, wanted.mode):
                continue
            chosen.append((self._row(identity, wanted.row(self._view, identity)), shown))
            if len(chosen) == limit:
                break
        return chosen

    def _row(self, identity: RowIdentity, values: RowValues) -> CurrentRow:
        """A row of the shard, which members may have looked at, and none has changed."""
        assert self._member is not None, "E1: a member looks"
        places = list(keys_of_row(self._member.table, values))
        known = next((self._by_key[place] for place in places if place in self._by_key), None)
        if known is None:
            known = CurrentRow(identity, values, values)
            for place in places:
                self._by_key[place] = known
        if known.base != identity:
            raise CannotEvaluate  # a member ahead has made a row with one of its keys
        return known

    def apply(self, table: Table, changes: Sequence[ChangedRow]) -> None:
        """A member is admitted. A row that comes back with the key of a deleted one is another."""
        if changes:
            self._sessions.add(self._session)
        for change in changes:
            row = change.row
            if row is None:
                row = CurrentRow(None, None)
            elif row.base is not None:
                self._gone.add(row.base)
            row.values = change.values
            if change.row is None and change.values is not None:
                for place in keys_of_row(table, change.values):
                    self._by_key[place] = row
            self._changed[id(row)] = row
            self._untold[id(row)] = row

    def written(self, batch: WriteBatch | None = None) -> CommittedWrites | None:
        """What has changed since others were told last, by value (E2). `batch`: of all rows."""
        rows = list(self._untold.values())
        came = [row.values for row in rows if row.values is not None]
        went = [row.before for row in rows if row.before is not None]
        for row in rows:
            row.before = row.values
        self._untold.clear()
        if not came and not went:
            return None
        if batch is not None and not self._is_told and batch.rows is not None:
            # They are the very rows of the batch, in its order.
            return CommittedWrites((KnownRows.of(batch.rows),), self._known(went))
        self._is_told = True
        return CommittedWrites(self._known(came), self._known(went))

    def _known(self, rows: Sequence[RowValues]) -> tuple[KnownRows, ...]:
        assert self.encoder is not None, "E1: a member has looked"
        assert self._member is not None, "E1: a member has looked"
        return (known_rows(self._member.table, self.encoder, rows),) if rows else ()

    def batch(self) -> WriteBatch | None:
        """What all members come to; None if it is nothing. Raises what RowEncoder does."""
        came = [row.values for row in self._changed.values() if row.values is not None]
        deletes = self.deletes(self._changed.values())
        if not came and not deletes:
            return None
        assert self.encoder is not None, "E1: a member has looked"
        return WriteBatch(self.encoder.rows(came) if came else None, deletes=deletes)

    def changed_deletes(self) -> Mapping[Source, BitMap64]:
        """The rows of the shard that are gone, by identity."""
        return self.deletes(self._changed.values())

    def deletes(self, rows: Iterable[CurrentRow]) -> dict[Source, BitMap64]:
        """Those of the rows that the shard has, by identity."""
        found: dict[Source, BitMap64] = {}
        for row in rows:
            if row.base is not None:
                source, index = row.base
                known = found.get(source)
                if known is None:
                    known = found[source] = BitMap64()
                known.add(index)
        return found


@dataclass(slots=True)
class ShortWritesOfGroup:
    """The short writes of one gather (E3)."""

    shards: Mapping[ShardId, ShardState]
    schema_of: Callable[[Table], pa.Schema]
    locks: LockTable
    ahead: WritesAhead
    work: int = 0
    """How much was evaluated (E4)."""
    _rows: dict[ShardId, _ShardRows] = field(default_factory=dict[ShardId, _ShardRows])

    def admit(
        self, write: WriteByKey, session: ConnectionId, *, may_pass_locks: bool
    ) -> Sequence[ChangedRow] | Blocked:
        """Evaluate a member: the rows that it changes, or the lock that is in its way (E6). Raises
        CannotEvaluate. `may_pass_locks`: it was in flight (G4).
        """
        shard = ShardId(write.table.shard)
        self.work += 1
        known = self._rows.get(shard)
        if known is None:
            state = self.shards.get(shard)
            if state is None:
                raise CannotEvaluate
            schema = self.schema_of(write.table) if state.definitions else None
            known = self._rows[shard] = _ShardRows(state, schema, self.locks)
        looked_at = known.looked_at
        try:
            changes = write.evaluate(known.for_member(write, session))
        finally:
            self.work += max(0, known.looked_at - looked_at - 1)
        if not may_pass_locks:
            blocked = self._lock_in_the_way(known, session, changes)
            if blocked is not None:
                return blocked
        for change in changes:
            self.work += 1 + change.nbytes // WORK_BYTES
        known.apply(write.table, changes)
        return changes

    def _lock_in_the_way(
        self, rows: _ShardRows, session: ConnectionId, changes: Sequence[ChangedRow]
    ) -> Blocked | None:
        """A lock of another session on a row that goes or changes."""
        held = self.locks.rows
        if rows.state.shard not in held:
            return None
        for change in changes:
            if change.row is None or change.row.base is None:
                continue
            goes = change.values is None
            mode = LockMode.ROW_UPDATE if goes else LockMode.ROW_NO_KEY_UPDATE
            for tag in held.among(rows.state, rows.deletes([change.row])):
                if self.locks.is_against(session, tag, mode):
                    return Blocked(tag, mode)
        return None

    def tell_ahead(self) -> None:
        """A transaction comes next: it is validated against what there is by now (E2)."""
        for shard, rows in self._rows.items():
            entry = rows.written()
            if entry is not None:
                # Of this batch only the deletes are looked at.
                batch = WriteBatch(deletes=rows.changed_deletes())
                self.ahead.add(shard, rows.state, batch, entry)

    def batches(self) -> Iterable[tuple[ShardId, WriteBatch | Exception]]:
        """What the short writes of each shard come to, at the end; the exception if a value cannot
        be stored, which evaluators exclude.
        """
        for shard, rows in self._rows.items():
            try:
                batch = rows.batch()
            except (ValueError, OverflowError, pa.ArrowException) as error:
                yield shard, error
                continue
            if batch is None:
                continue
            entry = rows.written(batch)
            if entry is not None:
                self.ahead.add(shard, rows.state, batch, entry)
            yield shard, batch
