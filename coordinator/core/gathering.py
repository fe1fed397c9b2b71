"""A group in the making: which members it has so far, and what they write.

    queue ─▶ in order: transactions (`admission.py`), short writes
          ─▶ at the end: inserts, batches of sources

The invariants are those of `group_commit.py`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from coordinator.core.fences import fenced_table_refusal
from coordinator.core.group_members import GroupMember, PendingChange, PendingCommit, PendingInsert
from coordinator.core.messages.catalog_changes import CatalogChange, LeaveView, LeftBecause
from coordinator.core.messages.identities import ConnectionId, RequestId
from coordinator.core.messages.replies import Blocked, Refused, RefusedReason
from coordinator.core.not_null_check import table_not_null_refusal
from coordinator.core.recent_writes import committed_writes
from coordinator.core.short_writes.by_key import CannotEvaluate, WriteAnswer, returned_rows
from coordinator.core.short_writes.gathered import GATHER_WORK_MAX, ShortWritesOfGroup
from coordinator.core.sources.batches import PendingBatch
from coordinator.core.stale_definitions import (
    stale_name_refusal,
    stale_refusal,
    stale_table_refusal,
)
from coordinator.core.transactions import Transaction
from coordinator.core.validation import RecentHistory
from coordinator.core.views.exactness import views_left_behind, without_exactness
from sql.catalog.catalog import Catalog, NameDependency, Table
from storage.batch import WriteBatch
from storage.types import ShardId

_UNFOLLOWED: Final[Mapping[int, LeftBecause]] = {}


@dataclass(slots=True)
class Gathering:
    """A group in the making."""

    catalog: Catalog
    members: list[GroupMember]
    refused: list[tuple[GroupMember, Refused]]
    blocked: list[tuple[GroupMember, Blocked]]
    waiting: list[GroupMember]
    batches: dict[ShardId, list[WriteBatch]]
    changes: list[CatalogChange]
    recent: RecentHistory
    short: ShortWritesOfGroup
    notifying: list[Transaction] = field(default_factory=list[Transaction])
    nbytes: int = 0
    inserts: list[PendingInsert] = field(default_factory=list[PendingInsert])
    fed: list[PendingBatch] = field(default_factory=list[PendingBatch])
    answers: dict[RequestId, WriteAnswer] = field(default_factory=dict[RequestId, WriteAnswer])
    verdicts: dict[tuple[int, int], Refused | None] = field(
        default_factory=dict[tuple[int, int], Refused | None]
    )
    """On definitions that writes without a transaction are bound to, by their identities: many
    sessions send the same statement."""
    waiting_sessions: set[ConnectionId] = field(default_factory=set[ConnectionId])
    left_sessions: set[ConnectionId] = field(default_factory=set[ConnectionId])

    def has_room(self, members_max: int, bytes_max: int) -> bool:
        """False if the next member must wait for the next group."""
        count = len(self.members) + len(self.inserts) + len(self.fed)
        return count < members_max and self.nbytes < bytes_max and self.short.work < GATHER_WORK_MAX

    def wait(self, pending: GroupMember) -> None:
        """It stays in the queue (G7)."""
        self.waiting.append(pending)
        self.waiting_sessions.add(pending.owner)

    def refuse(self, pending: GroupMember, refused: Refused) -> None:
        """It leaves the queue (G7)."""
        self.refused.append((pending, refused))
        self.left_sessions.add(pending.owner)

    def block(self, pending: GroupMember, blocked: Blocked) -> None:
        """It leaves the queue, to wait for a lock (G7)."""
        self.blocked.append((pending, blocked))
        self.left_sessions.add(pending.owner)

    def must_leave(self, pending: GroupMember) -> bool:
        """Whether one of its own session has left before it (G7)."""
        return pending.owner in self.left_sessions and not isinstance(pending, PendingCommit)

    def leave_views(
        self,
        written: Collection[int],
        changes: Iterable[CatalogChange] = (),
        *,
        maintained: Collection[int] = (),
        because: Mapping[int, LeftBecause] = _UNFOLLOWED,
    ) -> None:
        """Members are admitted: the views over what they change are behind (V2 of `views`), but for
        those that are maintained. `because`: by view, why a unit leaves it behind.
        """
        if not self.catalog.exact_views:
            return
        changes = tuple(changes)
        left = views_left_behind(self.catalog, written, changes)
        left = [oid for oid in left if oid not in maintained]
        if left:
            usual = LeftBecause.DEFINITION if changes else LeftBecause.MANY_ROWS
            self.catalog = without_exactness(self.catalog, left)
            self.changes.extend(LeaveView(oid, because.get(oid, usual)) for oid in left)

    def definition_verdict(self, table: Table, names: Collection[NameDependency]) -> Refused | None:
        """The verdict on what a write without a transaction is bound to."""
        # They are of one catalog until somebody changes it.
        key = (id(table), id(names))
        if self.changes or key not in self.verdicts:
            self.verdicts[key] = (
                stale_table_refusal(table, self.catalog)
                or stale_name_refusal(names, self.catalog)
                or fenced_table_refusal(table, self.recent.shards)
            )
        return self.verdicts[key]


def admit_inserts(group: Gathering) -> None:
    """All inserts of the group (G5): the rows of a table become one batch."""
    accepted: dict[ShardId, list[PendingInsert]] = {}
    for pending in group.inserts:
        insertion = pending.insertion
        verdict = group.definition_verdict(insertion.table, insertion.names)
        if verdict is None:
            accepted.setdefault(ShardId(insertion.table.shard), []).append(pending)
        else:
            group.refused.append((pending, verdict))
    for shard, inserts in accepted.items():
        _add_inserts(group, shard, inserts)


def admit_batches(group: Gathering) -> None:
    """All batches of sources: they conflict with nobody, but may be of old definitions (F5)."""
    wanted, group.fed = group.fed, []
    for pending in wanted:
        refused = batch_refusal(group, pending)
        if refused is not None:
            group.refused.append((pending, refused))
            continue
        group.members.append(pending)
        group.fed.append(pending)
        group.leave_views(pending.tables())
        for shard, batch in pending.writes.items():
            group.batches.setdefault(shard, []).append(batch)
            state = group.recent.shards.get(shard)
            entry = committed_writes(batch, pending.replaced.get(shard, ()))
            group.recent.ahead.add(shard, state, batch, entry)


def batch_refusal(group: Gathering, pending: PendingBatch) -> Refused | None:
    """The verdict on a batch of a source (F5)."""
    if not pending.is_current(group.catalog):
        return stale_refusal("a source or what it feeds was changed")
    written = (table for table in pending.fed if table.shard in pending.writes)
    found = (fenced_table_refusal(table, group.recent.shards) for table in written)
    return next((refused for refused in found if refused is not None), None)


def admit_change(group: Gathering, pending: PendingChange, *, goes_again: bool) -> None:
    """Evaluate a short write at its place (E1 of `short_writes`)."""
    change = pending.change
    if ShardId(change.table.shard) in group.batches:
        group.wait(pending)
        return
    verdict = group.definition_verdict(change.table, change.names)
    if verdict is not None:
        group.refuse(pending, verdict)
        return
    try:
        done = group.short.admit(change, pending.owner, may_pass_locks=goes_again)
    except CannotEvaluate:
        group.refuse(pending, stale_refusal("the rows have to be looked at in another way"))
        return
    if isinstance(done, Blocked):
        group.block(pending, done)
        return
    group.members.append(pending)
    if done:
        group.leave_views(pending.tables())
    group.answers[pending.request] = WriteAnswer(len(done), returned_rows(done))
    group.nbytes += change.nbytes


def add_changes(group: Gathering) -> None:
    """What the short writes of the group come to."""
    for shard, batch in group.short.batches():
        if isinstance(batch, WriteBatch):
            group.batches.setdefault(shard, []).append(batch)
            continue
        # Evaluators exclude it; none of the table's is launched, so that none has had an effect.
        for member in list(group.members):
            if isinstance(member, PendingChange) and member.change.table.shard == shard:
                group.members.remove(member)
                del group.answers[member.request]
                group.refuse(member, stale_refusal(f"a value cannot be stored: {batch}"))


def _add_inserts(group: Gathering, shard: ShardId, inserts: Sequence[PendingInsert]) -> None:
    batch = _batch_of(inserts)
    if isinstance(batch, WriteBatch):
        group.members.extend(inserts)
        group.leave_views(inserts[0].tables())
        group.batches.setdefault(shard, []).append(batch)
        state = group.recent.shards.get(shard)
        group.recent.ahead.add(shard, state, batch, committed_writes(batch, ()))
    elif len(inserts) > 1:
        for pending in inserts:
            _add_inserts(group, shard, [pending])
    else:
        group.refused.append((inserts[0], batch))


def _batch_of(inserts: Sequence[PendingInsert]) -> WriteBatch | Refused:
    """The rows of inserts into one table, or why some of them cannot be stored."""
    rows = [row for pending in inserts for row in pending.insertion.rows]
    try:
        batch = WriteBatch(inserts[0].insertion.encoder.rows(rows))
    except (ValueError, OverflowError, pa.ArrowException) as error:
        return _unstorable(error)
    return table_not_null_refusal(inserts[0].insertion.table, batch) or batch


def _unstorable(error: Exception) -> Refused:
    return Refused(RefusedReason.OTHER, "22000", f"a value cannot be stored: {error}")
