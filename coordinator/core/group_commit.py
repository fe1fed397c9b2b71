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
  G8  members that write inputs of maintained views leave the queue as units of lanes, and come back
      with the deltas of the views, and join a group whole or not at all (`views/lanes.py`).
  G9  where several commit at a time, a group waits a moment for them (`commit_delay.py`).
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain

import pyarrow as pa

from coordinator.core.admission import admit_commit, has_lost_rows
from coordinator.core.catalog import encode_changes
from coordinator.core.commit_delay import CommitDelay
from coordinator.core.gathering import (
    Gathering,
    add_changes,
    admit_batches,
    admit_change,
    admit_inserts,
)
from coordinator.core.group_members import (
    GroupMember,
    PendingAttach,
    PendingChange,
    PendingCommit,
    PendingInsert,
    changed_by,
    changed_tables,
    changes_definitions,
)
from coordinator.core.leases import WriteLeases
from coordinator.core.locking.lock_table import GROUP_TXN, LockTable
from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.catalog_changes import CatalogChange, RemoveObject
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.replies import Blocked, Refused
from coordinator.core.own_writes import deletes_of_others, merge_batches
from coordinator.core.recent_writes import CommittedWrites, RecentWrites
from coordinator.core.short_writes.by_key import NOTHING_CHANGED, WriteAnswer
from coordinator.core.short_writes.gathered import ShortWritesOfGroup
from coordinator.core.sources.batches import PendingBatch
from coordinator.core.sources.leftovers import left_writes, put_leftover
from coordinator.core.sources.records import delete_source_record, put_source_record
from coordinator.core.stale_definitions import stale_refusal
from coordinator.core.transactions import Transaction
from coordinator.core.validation import (
    RecentHistory,
    ValidationCounts,
    WritesAhead,
    concurrent_update_refusal,
)
from coordinator.core.views.attaching import AttachableViews, ChangesAfter
from coordinator.core.views.lane_gathering import EARLIER_FIRST, AdmissionRules, LaneGathering
from coordinator.core.views.lanes import Lanes, LaneUnit
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import SourceDefinition
from storage.batch import Deletes, WriteBatch
from storage.commit import Commit
from storage.fast_dataclass import fast_dataclass
from storage.shard import ShardState
from storage.stash import Write
from storage.types import ShardId, Timestamp, Token
from storage.unencoded_rows import UnencodedRows


def _nothing_changed(_after: Timestamp) -> Sequence[CatalogChange]:
    return ()


@fast_dataclass(frozen=True, slots=True)
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
    units: tuple[LaneUnit, ...] = ()
    """Of lanes, whose members are among those of the group."""
    _modes: dict[int, Sequence[LockMode]] = field(
        default_factory=dict[int, Sequence[LockMode]], init=False, compare=False, repr=False
    )
    """What `table_modes` has answered: each block that begins to write asks for its table."""
    _deletes: dict[ShardId, tuple[ShardState, Deletes]] = field(
        default_factory=dict[ShardId, tuple[ShardState, Deletes]],
        init=False,
        compare=False,
        repr=False,
    )
    """What `deletes` has answered, and for which state."""

    def tables(self) -> frozenset[int]:
        """The oids of the tables that the group writes rows to."""
        return frozenset(oid for member in self.members for oid in member.tables())

    def table_modes(self, oid: int) -> Sequence[LockMode]:
        """The modes in which the group holds a table while it is in flight."""
        known = self._modes.get(oid)
        if known is None:
            known = self._modes[oid] = self._held_modes(oid)
        return known

    def _held_modes(self, oid: int) -> Sequence[LockMode]:
        altered = changed_tables(self.changes).get(oid)
        modes = [] if altered is None else [altered]
        if any(oid in member.truncated() for member in self.members):
            modes.append(LockMode.ACCESS_EXCLUSIVE)
        elif oid in self.tables():
            modes.append(LockMode.ROW_EXCLUSIVE)
        return modes

    def deletes(self, state: ShardState) -> Deletes:
        """What the group deletes of a shard, by the names that the rows have now."""
        known = self._deletes.get(state.shard)
        if known is None or known[0] is not state:
            batch = self.commit.batches.get(state.shard)
            found = {} if batch is None else state.surviving(batch.deletes)
            known = self._deletes[state.shard] = state, found
        return known[1]


@fast_dataclass(frozen=True, slots=True)
class UnwrittenHolder:
    """Holds what members change that are on their way: a group, or a unit of a lane."""

    txn: TransactionId
    changes: Group | LaneUnit


class GroupCommit:
    """The queue and the group in flight (G1)."""

    def __init__(
        self,
        *,
        group_max: int,
        waits: bool = True,
        bytes_max: int = 8 << 20,
        view_rows_max: int = 10_000,
    ) -> None:
        self._queue: deque[GroupMember] = deque()
        self._in_flight: Group | None = None
        self._group_max, self._bytes_max = group_max, bytes_max
        self._passed: Group | None = None
        self.delay = CommitDelay(waits=waits)
        self._again: frozenset[RequestId] = frozenset()
        self.writes, self.counts = RecentWrites(), ValidationCounts()
        self.lanes = Lanes(view_rows_max)

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

    def holders(self) -> Iterator[UnwrittenHolder]:
        """Who holds what it changes though it is no open transaction (N2 of `views`)."""
        group = self.holding
        if group is None and self.lanes.is_idle:
            return  # asked for many times a statement
        if group is not None:
            yield UnwrittenHolder(GROUP_TXN, group)
            yield from (UnwrittenHolder(unit.txn, unit) for unit in group.units)
        yield from (UnwrittenHolder(unit.txn, unit) for unit in self.lanes.units())

    @property
    def waiting(self) -> int:
        """Commits that nobody has been told of yet: in the queue, in lanes, and in flight."""
        return len(self) + (0 if self._in_flight is None else len(self._in_flight.members))

    @property
    def sessions(self) -> int:
        """How many clients are about to hear of a commit."""
        return len({m.owner for m in self._unanswered() if m.owner >= 0})

    def __len__(self) -> int:
        return len(self._queue) + len(self.lanes)

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
        changes_after: ChangesAfter = _nothing_changed,
    ) -> "GatheredMembers":
        """Take members off the queue (G2); who waits for a lease stays, in order. Who would change
        what another session has locked leaves it, to wait like any other.
        """
        assert self._in_flight is None, "G1: one group at a time"
        recent = RecentHistory(shards, self.writes, self.counts, WritesAhead())
        short = ShortWritesOfGroup(shards, schema_of, locks, recent.ahead)
        group = Gathering(catalog, [], [], [], [], {}, [], recent, short)
        # Nobody pays for lanes where there are none.
        lanes_of = partial(self._lanes_of, group, catalog, locks, changes_after)
        lanes = None if self.lanes.is_idle else lanes_of()
        while self._queue and group.has_room(self._group_max, self._bytes_max):
            pending = self._queue.popleft()
            if pending.owner in group.waiting_sessions or leases.blocks(
                pending.holder, changed_by(pending), pending.ticket
            ):
                group.wait(pending)
                continue
            if group.must_leave(pending):
                group.refuse(pending, stale_refusal(EARLIER_FIRST))
                continue
            blocked = self._lock_in_the_way(pending, locks, shards)
            if blocked is not None:
                group.block(pending, blocked)
                continue
            if lanes is None and (group.catalog.exact_views or isinstance(pending, PendingAttach)):
                lanes = lanes_of()
            if lanes is None or not lanes.takes(pending):
                self._take(group, pending, locks, again=pending.request in self._again)
        if lanes is not None:
            lanes.finish()
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
            (*group.fed, *(() if lanes is None else lanes.fed())),
            () if lanes is None else tuple(lanes.units),
            () if lanes is None else tuple(lanes.formed),
        )

    def _lanes_of(
        self, group: Gathering, base: Catalog, locks: LockTable, changes_after: ChangesAfter
    ) -> LaneGathering:
        """What lanes do in a gather; units that are ready join the group first. `base`: the catalog
        of what is committed.
        """
        shards = group.recent.shards
        rules = AdmissionRules(
            lambda taking, pending, again: self._take(taking, pending, locks, again=again),
            lambda pending: self._lost_rows(pending, locks, shards),
            (self._group_max, self._bytes_max),
            AttachableViews(self.lanes.programs, shards, changes_after),
        )
        lanes = LaneGathering(self.lanes, group, base, rules)
        lanes.admit_ready()
        return lanes

    def _take(
        self, group: Gathering, pending: GroupMember, locks: LockTable, *, again: bool
    ) -> None:
        """Evaluate a member at its place. `again`: it was in flight, or in a lane."""
        if isinstance(pending, PendingInsert):
            group.inserts.append(pending)
            group.nbytes += pending.insertion.nbytes
        elif isinstance(pending, PendingBatch):
            group.fed.append(pending)
            group.nbytes += pending.nbytes
        elif isinstance(pending, PendingChange):
            admit_change(group, pending, goes_again=again)
        elif isinstance(pending, PendingAttach):
            group.members.append(pending)
        elif (lost := self._lost_rows(pending, locks, group.recent.shards)) is not None:
            group.refuse(pending, lost)
        else:
            admit_commit(group, pending)

    def _lost_rows(
        self, pending: PendingCommit, locks: LockTable, shards: Mapping[ShardId, ShardState]
    ) -> Refused | None:
        """K2, A9: the verdict on rows that it changes or relies on."""
        if pending.is_row_held(locks, shards) or has_lost_rows(pending, locks, shards, self.writes):
            return concurrent_update_refusal()
        return None

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

    def delays_lease(self, tables: frozenset[int], ticket: int, leases: WriteLeases) -> bool:
        """Whether a commit ahead of a ticket writes or alters one of these tables, or changes other
        definitions and waits for no lease (L3 and L4 of `leases.py`).
        """
        if any(not tables.isdisjoint(unit.tables()) for unit in self.lanes.units()):
            return True
        flight = () if self._in_flight is None else self._in_flight.members
        return any(
            not tables.isdisjoint(changed := changed_by(pending))
            or (
                changes_definitions(pending)
                and not leases.blocks(pending.holder, changed, pending.ticket)
            )
            for pending in chain(flight, self._queue)
            if pending.ticket < ticket
        )

    def is_committing(self, owner: ConnectionId) -> bool:
        """Whether nobody has been told yet of a commit of this session."""
        return any(member.owner == owner for member in self._unanswered())

    def _unanswered(self) -> Iterator[GroupMember]:
        flight = () if self._in_flight is None else self._in_flight.members
        return chain(flight, self._queue, *[unit.work.members for unit in self.lanes.units()])

    def put_back(self, group: "Group | GatheredMembers") -> None:
        """To the front of the queue, in the same order; units go back whole."""
        of_units = {m.request for unit in group.units for m in unit.work.members}
        back = [member for member in reversed(group.members) if member.request not in of_units]
        self._queue.extendleft(back)
        self.lanes.put_back(group.units)

    def pass_over(self, group: Group) -> None:
        """A group was not written: it goes again, and holds what it changes meanwhile (G4)."""
        self.put_back(group)
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


@fast_dataclass(frozen=True, slots=True)
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
    units: tuple[LaneUnit, ...] = ()
    """Whose members are among the members."""
    formed: tuple[LaneUnit, ...] = ()
    """Whose views are to be maintained."""

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
            self.units,
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
    rows = merged.rows
    if rows is None or isinstance(rows, UnencodedRows) or rows.column(0).num_chunks <= 1:
        return merged
    return WriteBatch(rows.combine_chunks(), merged.staged, merged.deletes)
