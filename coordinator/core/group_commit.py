"""Group commit: transactions wait in one queue; a group takes one timestamp and one stash write.

    queue ─▶ [validate in order] ─▶ group in flight ──GroupCommitted──▶ apply, reply to each
                   │ refused: reply                 ──GroupPassed────▶ back to the queue, same order
                   └ must wait (lease): stays       ──GroupFailed────▶ reply to each

INVARIANTS
  G1  at most one group is in flight; while it is made durable the next one gathers.
  G2  members are validated in order, each against all commits before and the members ahead of it.
  G3  nobody is answered before the group is durable and its timestamp applied to the oracle.
  G4  a group that was not written may be written again at a later timestamp, after validation anew.
  G5  inserts that read nothing come after the other members: they conflict with nobody, and what
      they bring is validated as one commit. Short writes are evaluated in their places (E1 of
      `short_writes`).
  G6  a transaction that only listens or notifies takes its place in the queue, but conflicts with
      nobody. A group of nothing else takes no timestamp and no stash write: it has nothing that a
      later start could find, and its listeners end with the process. That this coordinator still
      leads is confirmed instead, so that whoever listens at a successor has missed nothing. The
      same goes for short writes that change no row.
  G7  nobody passes an earlier member of its own session: who comes after one that waits waits, and
      who comes after one that has left the queue leaves it, too, to go again in order.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from coordinator.core.catalog import (
    StaleCatalog,
    apply_changes,
    check_catalog_integrity,
    encode_changes,
)
from coordinator.core.gathering import (
    Gathering,
    add_changes,
    admit_batches,
    admit_change,
    admit_inserts,
)
from coordinator.core.group_members import (
    GroupMember,
    PendingChange,
    PendingCommit,
    PendingInsert,
    changed_tables,
)
from coordinator.core.leases import WriteLeases
from coordinator.core.locking.held_rows import as_deletes
from coordinator.core.locking.lock_table import LockTable
from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.catalog_changes import CatalogChange, RemoveObject
from coordinator.core.messages.identities import RequestId
from coordinator.core.messages.replies import Blocked, Refused
from coordinator.core.not_null_check import not_null_refusal
from coordinator.core.own_writes import deletes_of_others, merge_batches
from coordinator.core.recent_writes import CommittedWrites, RecentWrites, committed_writes
from coordinator.core.short_writes.by_key import NOTHING_CHANGED, WriteAnswer
from coordinator.core.short_writes.gathered import ShortWritesOfGroup
from coordinator.core.sources.batches import PendingBatch
from coordinator.core.sources.leftovers import left_writes, put_leftover
from coordinator.core.sources.records import delete_source_record, put_source_record
from coordinator.core.stale_definitions import (
    stale_name_refusal,
    stale_refusal,
    stale_tables_refusal,
)
from coordinator.core.transactions import Transaction
from coordinator.core.validation import (
    RecentHistory,
    ValidationCounts,
    WritesAhead,
    behind_refusal,
    concurrent_update_refusal,
    conflict_refusal,
    fenced_writes_refusal,
)
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import SourceDefinition
from storage.batch import RowIdentity, WriteBatch
from storage.commit import Commit
from storage.shard import ShardState
from storage.stash import Write
from storage.types import ShardId, Timestamp, Token

EARLIER_FIRST: Final = "an earlier statement of the session has to go first"


@dataclass(frozen=True, slots=True)
class Group:
    """The members of one commit, what they write together, and the catalog after it. `interim`:
    the members' writes one by one, for the validation of others.
    """

    members: tuple[GroupMember, ...]
    commit: Commit
    changes: tuple[CatalogChange, ...]
    catalog: Catalog
    interim: Mapping[ShardId, Sequence[CommittedWrites]]
    notifying: tuple[Transaction, ...]
    """Those of the members that listen or notify, in their order."""
    is_durable: bool
    """Whether it goes through the txns shard, at a timestamp of its own (G6)."""
    answers: Mapping[RequestId, WriteAnswer]
    """Of the short writes (E3 of `short_writes`)."""
    fed: tuple[PendingBatch, ...]
    """Those of the members that are batches of sources."""

    def tables(self) -> frozenset[int]:
        """The oids of the tables that the group writes rows to."""
        return frozenset(oid for member in self.members for oid in member.tables())

    def table_modes(self, oid: int) -> Sequence[LockMode]:
        """The modes in which the group holds a table while it is in flight."""
        altered = changed_tables(self.changes).get(oid)
        modes = [] if altered is None else [altered]
        if any(oid in member.truncated() for member in self.members):
            modes.append(LockMode.ACCESS_EXCLUSIVE)
        elif oid in self.tables():
            modes.append(LockMode.ROW_EXCLUSIVE)
        return modes


class GroupCommit:
    """The queue and the group in flight (G1)."""

    def __init__(self, *, group_max: int, bytes_max: int = 8 << 20) -> None:
        self._queue: deque[GroupMember] = deque()
        self._in_flight: Group | None = None
        self._group_max = group_max
        self._bytes_max = bytes_max
        self._passed: Group | None = None
        self._again: frozenset[RequestId] = frozenset()
        self.writes = RecentWrites()
        self.counts = ValidationCounts()

    @property
    def in_flight(self) -> Group | None:
        """The group that is being made durable."""
        return self._in_flight

    @property
    def pending_ts(self) -> Timestamp | None:
        """The timestamp that is being made durable (G6)."""
        group = self._in_flight
        return None if group is None or not group.is_durable else group.commit.ts

    @property
    def holding(self) -> Group | None:
        """The group that holds what its members change: in flight, or about to be again (G4)."""
        return self._in_flight or self._passed

    @property
    def waiting(self) -> int:
        """Commits that nobody has been told of yet: in the queue, and in flight."""
        return len(self._queue) + (0 if self._in_flight is None else len(self._in_flight.members))

    def __len__(self) -> int:
        return len(self._queue)

    def enqueue(self, pending: GroupMember) -> None:
        """Wait for a group."""
        self._queue.append(pending)

    def gather(
        self,
        catalog: Catalog,
        shards: Mapping[ShardId, ShardState],
        leases: WriteLeases,
        locks: LockTable,
        schema_of: Callable[[Table], pa.Schema],
    ) -> "GatheredMembers":
        """Take members off the queue (G2); who waits for a lease stays, in order. Who would change
        what another session has locked leaves it, to wait like any other.
        """
        assert self._in_flight is None, "G1: one group at a time"
        recent = RecentHistory(shards, self.writes, self.counts, WritesAhead())
        short = ShortWritesOfGroup(shards, schema_of, locks, recent.ahead)
        group = Gathering(catalog, [], [], [], [], {}, [], recent, short)
        while self._queue and group.has_room(self._group_max, self._bytes_max):
            pending = self._queue.popleft()
            if pending.owner in group.waiting_sessions or leases.blocks(
                pending.holder, pending.tables(), pending.ticket
            ):
                group.wait(pending)
            elif group.must_leave(pending):
                group.refuse(pending, stale_refusal(EARLIER_FIRST))
            elif (blocked := self._lock_in_the_way(pending, locks, shards)) is not None:
                group.block(pending, blocked)
            elif isinstance(pending, PendingInsert):
                group.inserts.append(pending)
                group.nbytes += pending.insertion.nbytes
            elif isinstance(pending, PendingBatch):
                group.fed.append(pending)
                group.nbytes += pending.nbytes
            elif isinstance(pending, PendingChange):
                admit_change(group, pending, goes_again=pending.request in self._again)
            elif pending.is_row_held(locks, shards) or self._has_lost_rows(pending, locks, shards):
                group.refuse(pending, concurrent_update_refusal())
            else:
                _admit(group, pending)
        add_changes(group)
        if group.inserts:
            admit_inserts(group)
        if group.fed:
            admit_batches(group)
        self._queue.extendleft(reversed(group.waiting))
        if group.left_sessions:
            self._leave_with(group)
        return GatheredMembers(
            tuple(group.members),
            tuple(group.refused),
            tuple(group.blocked),
            {
                shard: _named_now(_merge(batches), shards.get(shard))
                for shard, batches in group.batches.items()
            },
            tuple(group.changes),
            group.catalog,
            recent.ahead.entries,
            tuple(group.notifying),
            group.answers,
            tuple(group.fed),
        )

    def _leave_with(self, group: Gathering) -> None:
        """Whoever is behind a member of its own session that has left leaves, too (G7)."""
        behind = [pending for pending in self._queue if group.must_leave(pending)]
        if behind:
            gone = {pending.request for pending in behind}
            self._queue = deque(p for p in self._queue if p.request not in gone)
            for pending in behind:
                group.refuse(pending, stale_refusal(EARLIER_FIRST))

    def _lock_in_the_way(
        self, pending: GroupMember, locks: LockTable, shards: Mapping[ShardId, ShardState]
    ) -> Blocked | None:
        # What was in flight goes first: nobody has been granted anything against it (G4).
        return None if pending.request in self._again else pending.lock_in_the_way(locks, shards)

    def _has_lost_rows(
        self, pending: PendingCommit, locks: LockTable, shards: Mapping[ShardId, ShardState]
    ) -> bool:
        """A9: whether a row that it holds by FOR UPDATE or its kin is not there any more."""
        if not pending.txn.locks_rows:
            return False
        found: dict[ShardId, list[RowIdentity]] = {}
        for shard, row in locks.shown_rows(pending.txn.owner, pending.txn.id):
            found.setdefault(shard, []).append(row)
        return any(
            self.writes.any_gone(shards[shard], as_deletes(rows)) for shard, rows in found.items()
        )

    def writes_ahead(self, ticket: int) -> frozenset[int]:
        """Tables of the group in flight and of commits ahead of a ticket (L3 of `leases.py`)."""
        tables: set[int] = set(self._in_flight.tables()) if self._in_flight is not None else set()
        for pending in self._queue:
            if pending.ticket < ticket:
                tables.update(pending.tables())
        return frozenset(tables)

    def put_back(self, members: Sequence[GroupMember]) -> None:
        """To the front of the queue, in the same order."""
        self._queue.extendleft(reversed(members))

    def pass_over(self, group: Group) -> None:
        """A group was not written: it goes again, and holds what it changes meanwhile (G4)."""
        self.put_back(group.members)
        self._passed, self._again = group, frozenset(member.request for member in group.members)

    def launch(self, group: Group) -> None:
        """The group is on its way."""
        assert self._in_flight is None, "G1: one group at a time"
        self._in_flight = group
        self._passed, self._again = None, frozenset()

    def give_up_passed(self) -> bool:
        """Forget a group that was passed over if no member waits to go again; whether there was."""
        if self._passed is None or any(m.request in self._again for m in self._queue):
            return False
        self._passed, self._again = None, frozenset()
        return True

    def landed(self, token: Token) -> Group:
        """The group's fate is known; none is in flight now."""
        group = self._in_flight
        assert group is not None, "G1: a completion belongs to the group in flight"
        assert group.commit.token == token, "G1: a completion belongs to the group in flight"
        self._in_flight = None
        return group


@dataclass(frozen=True, slots=True)
class GatheredMembers:
    """What `gather` found: members to commit together, and those to answer with a refusal."""

    members: tuple[GroupMember, ...]
    refused: tuple[tuple[GroupMember, Refused], ...]
    blocked: tuple[tuple[GroupMember, Blocked], ...]
    batches: Mapping[ShardId, WriteBatch]
    changes: tuple[CatalogChange, ...]
    catalog: Catalog
    interim: Mapping[ShardId, Sequence[CommittedWrites]]
    notifying: tuple[Transaction, ...]
    answers: Mapping[RequestId, WriteAnswer]
    fed: tuple[PendingBatch, ...]

    @property
    def is_durable(self) -> bool:
        """Whether the group must go through the txns shard (G6)."""
        # What an insert and a delete of one group come to is nothing, yet they have written.
        return bool(self.batches or self.fed or self.changes) or any(
            m.txn.is_write() if isinstance(m, PendingCommit) else self.has_changed(m.request)
            for m in self.members
        )

    def has_changed(self, request: RequestId) -> bool:
        """Whether a short write has changed rows."""
        return self.answers.get(request, NOTHING_CHANGED).affected > 0

    def at(
        self, ts: Timestamp, token: Token, registers: tuple[ShardId, ...], *, is_durable: bool
    ) -> Group:
        """The group, with its timestamp; `registers`: shards new to the txns shard."""
        commit = Commit(
            ts=ts,
            token=token,
            batches=self.batches,
            registers=registers,
            records=(*encode_changes(ts, self.changes), *self._source_records(ts)),
        )
        return Group(
            self.members,
            commit,
            self.changes,
            self.catalog,
            self.interim,
            self.notifying,
            is_durable,
            self.answers,
            self.fed,
        )

    def _source_records(self, ts: Timestamp) -> Iterator[Write]:
        """How far sources are read with this commit (F1 of `sources`)."""
        for batch in self.fed:
            yield put_source_record(batch.definition.oid, ts, batch.record)
            yield from map(put_leftover, batch.leaves)
        for change in self.changes:
            if isinstance(change, RemoveObject) and isinstance(change.object, SourceDefinition):
                yield delete_source_record(change.object.oid)
        yield from left_writes(self.catalog, self.changes)


def _admit(group: Gathering, pending: PendingCommit) -> None:
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
    verdict = (
        stale_tables_refusal(txn, catalog)
        or stale_name_refusal(txn.look_ups, group.catalog)
        or behind_refusal(txn, group.catalog)
        or conflict_refusal(txn, writes, group.recent)
        or fenced_writes_refusal(txn, shards, writes)
        or not_null_refusal(_defined(txn, catalog), writes)
    )
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


def _defined(txn: Transaction, catalog: Catalog) -> Iterable[Table]:
    """The tables that the transaction may have written to, as the catalog has them."""
    # Without DDL of its own they are what it has bound (A2 of `validation.py`), and fewer.
    return catalog.tables.values() if txn.changes else txn.tables.values()


def _named_now(batch: WriteBatch, state: ShardState | None) -> WriteBatch:
    """The batch with deletes that name rows as they are called now, not as the writer read them.

    What becomes durable must be understood after a restart, when compactions and flushes between
    the read and the commit may be further back than the log is read.
    """
    if state is None or not batch.deletes:
        return batch
    others = deletes_of_others(batch)
    if others is batch.deletes:
        return replace(batch, deletes=state.surviving(others))
    # Rows of files that the batch itself stages: the state has never heard of them.
    own = {source: rows for source, rows in batch.deletes.items() if source not in others}
    return replace(batch, deletes={**state.surviving(others), **own})


def _merge(batches: Sequence[WriteBatch]) -> WriteBatch:
    """All batches as one, with contiguous columns: the codec and every later scan touch them."""
    merged = merge_batches(batches)
    if merged.inserts is None or merged.inserts.column(0).num_chunks <= 1:
        return merged
    return WriteBatch(merged.inserts.combine_chunks(), merged.staged, merged.deletes)
