"""Open transactions: what each has read, has written and holds.

INVARIANTS
  X1  a transaction reads at one timestamp, chosen at its first snapshot, and sees its own writes
      there.
  X2  own rows are named (`@own`, n), n counting from the transaction's first inline row of the
      table; when it commits, own rows deleted by itself are taken out, the rest keep their order.
  X3  a transaction ends exactly once; what it held is released then.
  X4  after RollbackTo its writes and DDL are those of the savepoint; its timestamp and what it has
      read stay, but for the tables that it has locked since: they may change again, as far as its
      level lets them. Savepoints have ascending numbers, none comes again; 0 is its beginning.
  X5  a staged file is named by its writes, or handed out once to be removed.
  X6  one whose DDL did not fit its own snapshot (K2 of `coordinator/core/catalog.py`) commits
      nothing, unless that is rolled back: the binder and the core disagree then, and nobody else
      pays for it.
  X7  a statement of a block that waits for a lock begins again, and what it had read is not part of
      the read set: its rows went to nobody.

What is kept for the commit's validation: A6 to A11 of `validation.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import pyarrow as pa

from coordinator.core.catalog import (
    StaleCatalog,
    apply_changes,
    check_catalog_integrity,
    is_look_up_current,
)
from coordinator.core.definition_conflicts import find_definition_conflict
from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    PutTable,
    RemoveTable,
)
from coordinator.core.messages.identities import ConnectionId, Isolation, TransactionId
from coordinator.core.messages.replies import Snapshot
from coordinator.core.messages.requests import WriteRows
from coordinator.core.notifications.changes import NotificationChanges
from coordinator.core.own_writes import OwnWrites, OwnWritesMark, final_batch, is_empty
from coordinator.core.predicates import KeyLookUps, ReadPredicate, ReadSet
from coordinator.core.recent_writes import RowTestBudget
from sql.catalog.catalog import Catalog, NameDependency, Table, is_whole_catalog, whole_catalog
from storage.batch import DataFile, WriteBatch
from storage.known_rows import OldRows
from storage.types import ShardId, Source, Timestamp
from storage.unencoded_rows import table_of

StagedFiles = tuple[tuple[ShardId, Source], ...]
"""Files of the warehouse that no commit names."""

VALIDATING = frozenset({Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE})
"""Levels at which what was read must still be true at the commit."""

OLD_BYTES_MAX: Final = 8 << 20
"""Values of deleted rows that a transaction keeps; beyond, what it deletes conflicts with all that
others read of its tables. Larger: more memory in each transaction."""

OLD_ROWS_OVERHEAD_BYTES: Final = 1 << 10
"""What the objects around a few values take."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A transaction at a savepoint: what ROLLBACK TO brings back (X4)."""

    writes: Mapping[ShardId, OwnWritesMark]
    changes: int
    tables: Mapping[int, Table]
    advance_to: Timestamp | None = None
    altered: frozenset[ShardId] = frozenset()
    misfit: str | None = None
    locked: frozenset[ShardId] = frozenset()


_START: Final = _Mark({}, 0, {})

_NO_CATALOG: Final = Catalog()


Since: TypeAlias = tuple[ShardId, Timestamp]
"""A shard, and the timestamp at which it was read: from then on it is validated."""


@dataclass(slots=True)
class Transaction:
    """One open transaction. `tables`: what it read or wrote, as it was bound, by oid."""

    id: TransactionId
    owner: ConnectionId
    isolation: Isolation
    read_only: bool
    staleness_us: int | None = None
    snapshot: Snapshot | None = None
    timestamps: set[Timestamp] = field(default_factory=set[Timestamp])
    reads: dict[ShardId, ReadSet] = field(default_factory=dict[ShardId, ReadSet])
    tables: dict[int, Table] = field(default_factory=dict[int, Table])
    writes: dict[ShardId, OwnWrites] = field(default_factory=dict[ShardId, OwnWrites])
    changes: list[CatalogChange] = field(default_factory=list[CatalogChange])
    committing: bool = False
    advance_to: Timestamp | None = None
    """Where its commit brings a timeline without a clock."""
    key_look_ups: dict[Since, KeyLookUps] = field(default_factory=dict[Since, KeyLookUps])
    """Keys that it has looked for (A8)."""
    locked: dict[Since, ReadSet] = field(default_factory=dict[Since, ReadSet])
    """What it has read under FOR UPDATE and its kin (A9)."""
    replaced: dict[ShardId, list[OldRows]] = field(default_factory=dict[ShardId, list[OldRows]])
    """Values of rows that it has deleted, for the validation of others; also of undone ones."""
    base: Catalog = _NO_CATALOG
    """The catalog at its timestamp, without its own DDL."""
    required: dict[Since, ReadSet] = field(default_factory=dict[Since, ReadSet])
    """Rows that foreign keys rest on, or that must not come; validated at every level (A10)."""
    altered: dict[ShardId, Timestamp] = field(default_factory=dict[ShardId, Timestamp])
    """Tables that it gives other columns or rules, each since it has seen all their rows (A11)."""
    look_ups: set[NameDependency] = field(default_factory=set[NameDependency])
    """Names that it rests on (A6)."""
    unharmed: dict[ShardId, Timestamp] = field(default_factory=dict[ShardId, Timestamp])
    """Up to when nobody else has changed a row that it has written, or given its key (A7)."""
    misfit: str | None = None
    """Why DDL did not fit its own snapshot (X6)."""
    notifying: NotificationChanges | None = None
    """LISTEN, UNLISTEN and NOTIFY of a transaction that commits; room is reserved for it."""
    changed_keys: set[ShardId] = field(default_factory=set[ShardId])
    """Where it has deleted rows, or given them another primary key."""
    rows_locked: int = 0
    """Rows that it has locked because it changes them."""
    locks_rows: bool = False
    """Whether it has asked for rows with FOR UPDATE or its kin."""
    skips_locked: bool = False
    """Whether a query has skipped rows of others: only its locks tell which rows it was given."""
    doomed: bool = False
    """It has lost a lock that was promised to it, and commits nothing (K6 of `locking`)."""
    pinned: bool = False
    """Somebody else was promised its timestamp, or it has somebody else's."""
    refresh_budget: RowTestBudget = field(default_factory=RowTestBudget)
    """What all of its refreshes together may cost (F2 of `refresh.py`)."""
    _undoable: list[tuple[Since, ReadPredicate | None, bool]] | None = None
    """What the statement has read, as long as it may begin again (X7)."""
    _savepoints: dict[int, _Mark] = field(default_factory=dict[int, _Mark])
    _newest_savepoint: int = 0
    _overlays: int = 0
    _old_bytes: int = 0

    def take_snapshot(self, ts: Timestamp, catalog: Catalog) -> Snapshot:
        """Read at `ts` from now on, its own DDL on top of `catalog`. Raises Stale."""
        if self.snapshot is not None and catalog is not self.base:
            self._check_written(catalog)
        if self.changes:
            self.check_rests(catalog)
            shown = apply_changes(catalog, self.changes, version=self._overlay_version())
            check_catalog_integrity(catalog, shown, self.changes)
        else:
            shown = catalog
        self.base = catalog
        self.snapshot = Snapshot(ts, shown)
        return self.snapshot

    def _check_written(self, now: Catalog) -> None:
        """Raise Stale if a table that it has written is defined otherwise by now: its rows were
        made and checked by what it was before (A2 of `validation.py`).
        """
        for oid in self.written_tables():
            before, table = self.base.by_oid(oid), now.by_oid(oid)
            if (before and before.version) != (table and table.version):
                raise StaleCatalog(
                    f'table "{self.tables[oid].name}" was changed by a concurrent transaction'
                )

    def move_to(self, ts: Timestamp, catalog: Catalog) -> Snapshot:
        """Read at `ts` from now on: all that it has read is still true there. Raises Stale."""
        snapshot = self.take_snapshot(ts, catalog)
        for before in [*self.key_look_ups, *self.required]:
            self.count_from(before, ts)
        for shard, since in list(self.locked):
            reads = self.locked.pop((shard, since))
            self.locked.setdefault((shard, ts), ReadSet()).merge(reads)
        self.altered = dict.fromkeys(self.altered, ts)
        return snapshot

    def looked_up(self, names: Collection[NameDependency]) -> None:
        """Remember names that it rests on, but for those that its own DDL has decided."""
        if self.changes:
            # It has read its own DDL, too, and what that was put on.
            whole = whole_catalog(self.base)
            names = [whole if is_whole_catalog(name) else name for name in names]
            names = [name for name in names if is_look_up_current(self.base, name)]
        self.look_ups.update(names)

    def begin_statement(self) -> None:
        """Another statement of a block: those before it are done, and stay read (X7)."""
        self.settle_reads()
        self._undoable = []

    def settle_reads(self) -> None:
        """The statement is done: what it has read stays read (X7)."""
        undoable, self._undoable = self._undoable, None
        for read in undoable or ():
            self._keep(*read)

    def forget_reads(self) -> None:
        """The statement begins again, and reads anew (X7)."""
        assert self._undoable is not None, "X7: only statements of blocks begin again"
        self._undoable = []

    def read(self, table: Table, predicate: ReadPredicate | None, *, locked: bool = False) -> None:
        """Remember what a scan depends on; None: the whole table. `locked`: the rows must still be
        as they were read when it commits, at every level (A9).
        """
        assert self.snapshot is not None, "X1: who reads has a snapshot"
        self.tables[table.oid] = table
        since = ShardId(table.shard), self.snapshot.ts
        if self._undoable is None:
            self._keep(since, predicate, locked=locked)
        else:
            self._undoable.append((since, predicate, locked))

    def _keep(self, since: Since, predicate: ReadPredicate | None, locked: bool) -> None:
        shard = since[0]
        if locked:
            self.locked.setdefault(since, ReadSet()).add(predicate)
        if getattr(predicate, "at_every_level", False):
            self.required.setdefault(since, ReadSet()).add(predicate)
            return
        look_up = None if predicate is None else predicate.look_up
        if look_up is None:
            self.reads.setdefault(shard, ReadSet()).add(predicate)
        else:
            self.key_look_ups.setdefault(since, KeyLookUps()).add(look_up)

    def count_from(self, before: Since, ts: Timestamp) -> None:
        """Validate the look-ups of `before` from `ts` on."""
        after = before[0], ts
        if (keys := self.key_look_ups.pop(before, None)) is not None:
            keys.moved_back = keys.moved_back or ts < before[1]
            self.key_look_ups.setdefault(after, KeyLookUps()).merge(keys)
        if (reads := self.required.pop(before, None)) is not None:
            self.required.setdefault(after, ReadSet()).merge(reads)

    def sinces_of(self, shard: ShardId) -> list[Since]:
        """When keys and references were looked up in a shard, oldest first."""
        found = {*self.key_look_ups, *self.required}
        return sorted(since for since in found if since[0] == shard)

    def _has_read(self, shard: ShardId) -> bool:
        kept = (*self.key_look_ups, *self.required, *self.locked)
        return shard in self.reads or any(shard == at for at, _ in kept)

    def locks(self, shard: ShardId) -> bool:
        """Whether what it has read of a shard is validated at every level (A9)."""
        return any(shard == at for at, _ in self.locked)

    def relies_on(self, shard: ShardId) -> bool:
        """Whether it has written to a shard, or relies on rows there at every level."""
        kept = (*self.key_look_ups, *self.required, *self.locked)
        return shard in self.writes or any(shard == at for at, _ in kept)

    @property
    def oldest_read(self) -> Timestamp | None:
        """The least timestamp from which on it is validated."""
        if self.snapshot is None:
            return None
        kept = (*self.key_look_ups, *self.required, *self.locked)
        return min([self.snapshot.ts, *(ts for _, ts in kept)])

    def write(self, rows: WriteRows) -> None:
        """Buffer rows (X2)."""
        table = rows.table
        self.tables[table.oid] = table
        shard = ShardId(table.shard)
        if rows.old is not None:
            self._remember(shard, rows.old)
        self.writes.setdefault(shard, OwnWrites()).add(rows.batch)
        if not rows.keeps_keys and rows.batch.deletes:
            self.changed_keys.add(shard)
        if self.snapshot is not None:
            # What it deletes now was there at its timestamp; what has come since is not known.
            self.unharmed[shard] = min(self.unharmed.get(shard, self.snapshot.ts), self.snapshot.ts)

    def _remember(self, shard: ShardId, old: OldRows) -> None:
        self._old_bytes += old.rows.nbytes + OLD_ROWS_OVERHEAD_BYTES
        if self._old_bytes <= OLD_BYTES_MAX:
            self.replaced.setdefault(shard, []).append(old)
        else:
            # Unknown rows are a reason to be careful with, never a reason to be wrong.
            self.replaced.clear()

    def own(self, shard: ShardId) -> WriteBatch | None:
        """What it has written to a shard so far."""
        writes = self.writes.get(shard)
        return None if writes is None else writes.merged()

    def change_catalog(self, changes: tuple[CatalogChange, ...]) -> None:
        """Buffer DDL; the transaction's own snapshot shows it at once. Raises Stale."""
        assert self.snapshot is not None, "X1: DDL is bound against a snapshot"
        if self.isolation not in VALIDATING and any(isinstance(c, AttachView) for c in changes):
            raise StaleCatalog("V6: a view is attached by a transaction that is validated")
        catalog = apply_changes(self.snapshot.catalog, changes, version=self._overlay_version())
        self._alter(changes, self.snapshot)
        self.changes.extend(changes)
        self.snapshot = replace(self.snapshot, catalog=catalog)

    def _alter(self, changes: tuple[CatalogChange, ...], snapshot: Snapshot) -> None:
        """Remember which tables get other columns or rules, and since when they were seen (A11)."""
        for change in changes:
            if isinstance(change, PutTable) and change.table.version:
                before = snapshot.catalog.by_oid(change.table.oid)
                touched = before is not None and before.is_elsewhere(change.table)
                if before is None or not (touched and before.is_same_but_for_name(change.table)):
                    self.altered.setdefault(ShardId(change.table.shard), snapshot.ts)

    def check_rests(self, now: Catalog) -> None:
        """Raise Stale if others have changed what its DDL is made over, or the other way round
        (B1, B2 of `definition_conflicts.py`).
        """
        assert self.snapshot is not None, "X1: DDL is bound against a snapshot"
        changed = find_definition_conflict(self.base, self.snapshot.catalog, now)
        if changed is not None:
            raise StaleCatalog(changed)

    def _overlay_version(self) -> int:
        # Negative and never used twice: an uncommitted catalog must not be taken for a committed
        # one.
        self._overlays += 1
        return -((self.id << 20) + self._overlays)

    # --- savepoints ----------------------------------------------------------------------------

    def savepoint(self, number: int) -> None:
        """Remember where it stands."""
        assert number > self._newest_savepoint, "X4: savepoints are numbered upwards"
        self._newest_savepoint = number
        writes = {shard: own.mark() for shard, own in self.writes.items()}
        self._savepoints[number] = _Mark(
            writes,
            len(self.changes),
            dict(self.tables),
            self.advance_to,
            frozenset(self.altered),
            self.misfit,
            frozenset(shard for shard, _ in self.locked),
        )

    @property
    def innermost_savepoint(self) -> int:
        """The number of the newest savepoint that is open; 0: its beginning."""
        return max(self._savepoints, default=0)

    def release(self, number: int) -> None:
        """Forget a savepoint and those after it; what was done since stays."""
        self._savepoints = {n: mark for n, mark in self._savepoints.items() if n < number}

    def rollback_to(self, number: int) -> StagedFiles:
        """Undo what came after a savepoint, which stays (X4); the files to remove (X5)."""
        self.settle_reads()
        mark = self._savepoints[number] if number else _START
        before = self.staged_files()
        for shard, own in list(self.writes.items()):
            known = mark.writes.get(shard)
            if known is None:
                del self.writes[shard]
            else:
                own.rewind(known)
        self._undo_changes(mark)
        self.advance_to, self.misfit = mark.advance_to, mark.misfit
        self.altered = {shard: ts for shard, ts in self.altered.items() if shard in mark.altered}
        # Whole tables are given back with their locks (A9).
        self.locked = {at: reads for at, reads in self.locked.items() if at[0] in mark.locked}
        self._savepoints = {n: kept for n, kept in self._savepoints.items() if n <= number}
        after = set(self.staged_files())
        return tuple(file for file in before if file not in after)

    def _undo_changes(self, mark: _Mark) -> None:
        if len(self.changes) == mark.changes:
            self._rebind(mark, set())
            return
        undone = {
            change.table.oid
            for change in self.changes[mark.changes :]
            if isinstance(change, PutTable | RemoveTable)
        }
        del self.changes[mark.changes :]
        assert self.snapshot is not None, "X1: DDL is bound against a snapshot"
        self.take_snapshot(self.snapshot.ts, self.base)
        self._rebind(mark, undone)

    def _rebind(self, mark: _Mark, undone: set[int]) -> None:
        """The tables as they were bound before, for what it has read stays read."""
        catalog = self.snapshot.catalog if self.snapshot is not None else Catalog()
        by_oid = {table.oid: table for table in catalog.tables.values()} if undone else {}
        tables = dict(mark.tables)
        for oid, table in self.tables.items():
            if oid in tables or not self._has_read(ShardId(table.shard)):
                continue
            if oid not in undone:
                tables[oid] = table
            elif oid in by_oid:
                tables[oid] = by_oid[oid]
            else:
                self._forget(ShardId(table.shard))
        self.tables = tables

    def _forget(self, shard: ShardId) -> None:
        """What it has read of a table that was its own, and is none any more."""
        self.reads.pop(shard, None)
        self.key_look_ups = {at: keys for at, keys in self.key_look_ups.items() if at[0] != shard}
        self.required = {at: reads for at, reads in self.required.items() if at[0] != shard}
        self.locked = {at: reads for at, reads in self.locked.items() if at[0] != shard}

    # --- spilling, staged files ----------------------------------------------------------------

    def inline_rows(self) -> dict[ShardId, pa.Table]:
        """All rows that it keeps in memory, by shard, in order."""
        found = {shard: own.rows for shard, own in self.writes.items()}
        return {shard: table_of(rows) for shard, rows in found.items() if rows is not None}

    def inline_bytes(self) -> int:
        """What these rows take in memory."""
        return sum(own.inline_bytes for own in self.writes.values())

    def spilled(self, files: Mapping[ShardId, Sequence[DataFile]]) -> None:
        """The inline rows of these shards are in these files now, in order."""
        for shard, staged in files.items():
            own = self.writes[shard]
            rows = own.mark().rows
            for number, mark in self._savepoints.items():
                known = mark.writes.get(shard)
                if known is not None:
                    writes = {**mark.writes, shard: known.spilled(staged, rows)}
                    self._savepoints[number] = replace(mark, writes=writes)
            own.spilled(staged)

    def staged_in(self, shard: ShardId) -> Sequence[DataFile]:
        """The files of one shard that its writes name."""
        own = self.writes.get(shard)
        return () if own is None else own.staged

    def staged_files(self) -> StagedFiles:
        """The files that its writes name (X5)."""
        return tuple(
            (shard, file.name) for shard, own in self.writes.items() for file in own.staged
        )

    # --- what commits --------------------------------------------------------------------------

    def reset(self) -> StagedFiles:
        """A single statement begins again after a wait: nothing of it is left but its locks; the
        files to remove (X5).
        """
        files = self.staged_files()
        self.snapshot, self.base, self._undoable = None, _NO_CATALOG, None
        self.reads, self.key_look_ups, self.required, self.locked = {}, {}, {}, {}
        self.tables, self.writes, self.replaced, self.altered = {}, {}, {}, {}
        self.look_ups, self.unharmed, self.changes = set(), {}, []
        self.changed_keys, self.locks_rows, self.skips_locked = set(), False, False
        self.timestamps, self._old_bytes = set(), 0
        self.advance_to = self.misfit = None
        self.committing = False
        return files

    def created(self) -> dict[ShardId, Table]:
        """Tables that only this transaction knows."""
        return {
            ShardId(change.table.shard): change.table
            for change in self.changes
            if isinstance(change, PutTable)
        }

    def final_writes(self) -> dict[ShardId, WriteBatch]:
        """What commits: no empty batches, nothing for tables that the transaction dropped itself,
        or that ON COMMIT DELETE ROWS empties.
        """
        final = {shard: final_batch(own.merged()) for shard, own in self.writes.items()}
        passing = {ShardId(t.shard) for t in self.tables.values() if t.on_commit == "delete"}
        final = {
            shard: batch
            for shard, batch in final.items()
            if not is_empty(batch) and shard not in passing
        }
        if not self.changes or not final:
            return final
        catalog = self.snapshot.catalog if self.snapshot is not None else _NO_CATALOG
        shards = {ShardId(table.shard) for table in catalog.tables.values()}
        return {shard: batch for shard, batch in final.items() if shard in shards}

    def written_tables(self) -> list[int]:
        """The oids of the tables that the transaction writes rows to."""
        return [oid for oid, table in self.tables.items() if ShardId(table.shard) in self.writes]

    def written_tables_of_all(self) -> list[int]:
        """The same without those that it has created: nobody else writes to these."""
        return [oid for oid in self.written_tables() if self.base.by_oid(oid) is not None]

    def is_write(self) -> bool:
        """True if committing must go through the txns shard: it has something durable."""
        return bool(self.writes or self.changes) or self.advance_to is not None
