"""The core: one plain function from messages and time to effects. It owns all shared state.

    sessions ──requests──▶ step(message, now) ──effects──▶ driver ──completions──▶ step ..

INVARIANTS
  R1  state changes only inside `step`; a step never waits and never fails for a client's fault.
  R2  effects come in the order they must happen; what makes durable before what tells (STYLE §2).
  R3  a strict read is served at the oracle's read_ts of the moment it asks; everything acknowledged
      before is at or below it, and everything at or below it is in the shards' views.
  R4  every request is answered once, unless its transaction is aborted first.
  R5  a core is one timeline (DESIGN §2). DDL belongs to `system`, which publishes every new catalog
      to the others; they know tables, and commit rows.

The logic lives in the siblings that own the state: oracle, read_holds, timestamps, transactions,
validation, group_commit, leases, cutting, catalog. Here they are only put together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

import pyarrow as pa

from coordinator.core.buffers import change_buffers, leftovers
from coordinator.core.catalog import Stale, VersionedCatalog
from coordinator.core.cutting import Cutting, ceil_to, floor_to
from coordinator.core.effects import (
    CommitGroup,
    Effect,
    FlushCut,
    PersistCeiling,
    PublishCatalog,
    Reply,
    Tidy,
)
from coordinator.core.group_commit import Gathered, GroupCommit, Pending
from coordinator.core.leases import WriteLeases
from coordinator.core.maintenance import Maintenance
from coordinator.core.messages import (
    AbortTransaction,
    AdoptSnapshot,
    Advance,
    Begin,
    CatalogPublished,
    CeilingFailed,
    CeilingPersisted,
    ChangeCatalog,
    Committed,
    CommitTransaction,
    CutFlushed,
    Disconnected,
    FilesRewritten,
    Forgotten,
    GroupCommitted,
    GroupFailed,
    GroupPassed,
    Isolation,
    Leased,
    LookedUp,
    Message,
    NewTableId,
    Optimize,
    PutTable,
    Refused,
    RefusedReason,
    ReleaseSavepoint,
    RemoveTable,
    RequestId,
    RollbackTo,
    Savepoint,
    Scan,
    ShutDown,
    Spilled,
    Stopped,
    TableId,
    TakeInlineRows,
    TakeLease,
    TakeSnapshot,
    Tick,
    Tidied,
    TransactionId,
    Vacuum,
    Vacuumed,
    Views,
    WriteRows,
)
from coordinator.core.observation import (
    ObservedTimeline,
    TimestampExplained,
    observed_shard,
    observed_timeline,
)
from coordinator.core.oracle import Oracle
from coordinator.core.read_holds import ReadHolds
from coordinator.core.settings import CoreSettings
from coordinator.core.snapshots import Snapshots
from coordinator.core.timestamps import InputSince, determine
from coordinator.core.transactions import Transaction
from coordinator.core.validation import ValidationCounts, fenced
from sql.catalog import SYSTEM_TIMELINE, Catalog, Table, Timeline
from storage.batch import WriteBatch
from storage.shard import TICKS_PER_MS, ShardState
from storage.types import Epoch, ShardId, Timestamp, Token

FIRST_OID = 16_384
"""PostgreSQL's first oid for objects of users."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What start-up found: the catalog's history and every shard up to its last commit."""

    epoch: Epoch
    ceiling: Timestamp
    applied: Timestamp
    catalog: VersionedCatalog
    shards: Mapping[ShardId, ShardState]
    next_oid: int = FIRST_OID
    timeline: Timeline = SYSTEM_TIMELINE
    registered: frozenset[ShardId] | None = None
    """Shards that the txns shard knows; None: all of `shards`."""
    dropped: Mapping[ShardId, Timestamp] = field(default_factory=dict[ShardId, Timestamp])
    """Shards that have no table any more, since when, until they are forgotten."""


class Core:
    """See the module."""

    def __init__(
        self,
        recovered: Recovered,
        settings: CoreSettings,
        schema_of: Callable[[Table], pa.Schema],
        now: Timestamp,
    ) -> None:
        self._settings = settings
        self._schema_of = schema_of
        self._epoch = recovered.epoch
        self._timeline = recovered.timeline
        self._unit = 1 if recovered.timeline.manual else TICKS_PER_MS
        self._next_oid = recovered.next_oid
        self._commits = 0
        self._shards = dict(recovered.shards)
        self._catalog = recovered.catalog
        self._oracle = Oracle(
            ceiling=recovered.ceiling,
            step_us=settings.ceiling_step_us,
            clockless=recovered.timeline.manual,
        )
        self._holds = ReadHolds(
            self._catalog.current,
            frontier=self._oracle.read_ts(),
            history_us=settings.history_us,
            timeline=recovered.timeline.name,
        )
        known = recovered.registered
        self._registered = set(recovered.shards if known is None else known)
        self._groups = GroupCommit(group_max=settings.group_max, bytes_max=settings.group_bytes_max)
        self._snapshots = Snapshots(
            recovered.timeline,
            settings,
            self._oracle,
            self._holds,
            self._groups,
            self._catalog_at,
        )
        self._leases = WriteLeases()
        self._cutting = Cutting(settings, _last_cut(recovered, self._unit), self._unit)
        self._transactions: dict[TransactionId, Transaction] = {}
        self._maintenance = Maintenance(
            settings,
            self._shards,
            self._transactions,
            self._cutting,
            self._oracle.read_ts,
            self._advance_since,
            self._holds.since_of,
            lambda: self._next_oid,
            recovered.dropped,
        )
        # What these hold in the txns shard stays there: Delta will not have it.
        self._fenced: set[ShardId] = set()
        self._stopping: RequestId | None = None
        self._stopped = False
        self._recover_dirty(now)

    def _recover_dirty(self, now: Timestamp) -> None:
        for shard, state in self._shards.items():
            if state.versions and not state.versions[0].begins_table:
                self._holds.begin_at(shard, state.versions[0].cut)
            if state.fenced:
                self._fenced.add(shard)
            elif state.tail or not state.versions:
                self._cutting.wrote(shard, state, added=state.tail_bytes, now=now)

    @property
    def validation(self) -> ValidationCounts:
        """How conflicts were decided; for observation."""
        return self._groups.counts

    @property
    def shards(self) -> Mapping[ShardId, ShardState]:
        """The shards as they are; for observation and tests."""
        return self._shards

    @property
    def open_transactions(self) -> int:
        """How many there are, those that commit among them; for observation."""
        return len(self._transactions)

    @property
    def inline_bytes(self) -> int:
        """Rows that open transactions have in memory; for observation."""
        return sum(txn.inline_bytes() for txn in self._transactions.values())

    @property
    def since(self) -> Timestamp:
        """The least timestamp that AS OF may name."""
        return self._holds.since

    @property
    def catalog(self) -> Catalog:
        """The newest catalog."""
        return self._catalog.current

    @property
    def read_ts(self) -> Timestamp:
        """Where a strict read is served now."""
        return self._oracle.read_ts()

    def is_strict(self, txn: TransactionId) -> bool:
        """Whether its reads respect real time; a transaction that is over counts as strict."""
        known = self._transactions.get(txn)
        return known is None or known.isolation is Isolation.STRICT_SERIALIZABLE

    def observe(self) -> ObservedTimeline:
        """All of it at this moment, as a value."""
        return observed_timeline(
            self._timeline,
            self._catalog.current,
            self._oracle,
            self._holds,
            self._shards,
            self._transactions,
            self._groups.counts,
        )

    def explain(
        self,
        txn: TransactionId,
        tables: Sequence[Table],
        now: Timestamp,
        *,
        as_of: Timestamp | None,
        at_least: bool,
    ) -> TimestampExplained:
        """How the timestamp would be chosen for a query over these tables; changes nothing."""
        transaction = self._transactions[txn]
        states = [(table, self._shard(transaction, table)) for table in tables]
        inputs = tuple(observed_shard(table, state, self._holds) for table, state in states)
        question = self._snapshots.question(
            transaction,
            now,
            as_of=as_of,
            at_least=at_least,
            inputs=[InputSince(item.table.qualified, item.since) for item in inputs],
        )
        level = transaction.isolation.value
        found = determine(question)
        return TimestampExplained(self._timeline, level, question.read_ts, found, inputs)

    @property
    def timeline(self) -> Timeline:
        """Whose core this is (R5)."""
        return self._timeline

    def step(self, message: Message, now: Timestamp) -> list[Effect]:
        """Handle one message; the caller runs the returned effects in order (R1, R2)."""
        match message:
            case Begin():
                return self._begin(message)
            case TakeSnapshot():
                return self._take_snapshot(message, now)
            case AdoptSnapshot():
                return self._adopt_snapshot(message)
            case LookedUp(txn=txn, names=names):
                self._transactions[txn].looked_up(names)
                return []
            case Savepoint() | ReleaseSavepoint() | RollbackTo() | TakeInlineRows() | Spilled():
                return change_buffers(self._transactions[message.txn], message)
            case Scan():
                return self._scan(message)
            case WriteRows():
                self._transactions[message.txn].write(message.table, message.batch, message.old)
                return []
            case ChangeCatalog():
                return self._change_catalog(message)
            case Advance():
                self._transactions[message.txn].advance_to = message.ts
                return []
            case CatalogPublished():
                return self._catalog_published(message, now)
            case TakeLease():
                oids = [table.oid for table in message.tables]
                self._leases.ask(message.request, message.txn, oids)
                return self._grant_leases()
            case CommitTransaction():
                return self._commit(message, now)
            case AbortTransaction():
                return self._abort(message.txn, now)
            case NewTableId():
                return [self._new_table_id(message.request)]
            case Disconnected():
                return self._disconnected(message, now)
            case CeilingPersisted() | CeilingFailed():
                return self._ceiling_answered(message, now)
            case GroupCommitted():
                return self._group_committed(message.token, now)
            case GroupPassed():
                return self._group_passed(message, now)
            case GroupFailed():
                return self._group_failed(message, now)
            case CutFlushed():
                return self._cut_flushed(message, now)
            case Optimize() | Vacuum():
                return self._maintenance.asked(message) + self._advance(now)
            case FilesRewritten():
                return self._maintenance.rewritten(message, now) + self._advance(now)
            case Forgotten():
                return self._maintenance.forgotten(message) + self._advance(now)
            case Vacuumed():
                return self._maintenance.vacuumed(message, now) + self._advance(now)
            case Tidied():
                self._cutting.ended()
                return self._advance(now)
            case Tick():
                return self._advance(now)
            case ShutDown():
                self._stopping = message.request
                self._maintenance.stop()
                return self._advance(now)
            case _:
                assert_never(message)

    # --- transactions ------------------------------------------------------------------------

    def _begin(self, message: Begin) -> list[Effect]:
        assert message.txn not in self._transactions, "X3: a transaction begins once"
        self._transactions[message.txn] = Transaction(
            message.txn, message.owner, message.isolation, message.read_only, message.staleness_us
        )
        return []

    def _catalog_at(self, ts: Timestamp) -> Catalog:
        return self._catalog.at(ts)

    def _take_snapshot(self, message: TakeSnapshot, now: Timestamp) -> list[Effect]:
        replies = self._snapshots.take(message, self._transactions[message.txn], now)
        # Who has to wait may wait for the ceiling.
        return [*replies] or self._persist_ceiling(now)

    def _adopt_snapshot(self, message: AdoptSnapshot) -> list[Effect]:
        txn = self._transactions[message.txn]
        exporter = self._transactions.get(message.exporter)
        assert txn.snapshot is None, "X1: a snapshot is adopted before any is taken"
        if exporter is None or message.ts not in exporter.timestamps:
            return [_refuse(message.request, "22023", "the snapshot is not exported any more")]
        self._snapshots.hold(txn, message.ts)
        snapshot = txn.take_snapshot(message.ts, self._catalog.at(message.ts))
        return [Reply(message.request, snapshot)]

    def _scan(self, message: Scan) -> list[Effect]:
        txn = self._transactions[message.txn]
        assert message.ts in txn.timestamps, "H2: only a held timestamp is read"
        current = txn.snapshot is not None and message.ts == txn.snapshot.ts
        views = []
        predicates = message.predicates or (None,) * len(message.tables)
        for table, predicate in zip(message.tables, predicates, strict=True):
            shard = ShardId(table.shard)
            refused = fenced(shard, self._shards) or self._too_old(table, message.ts, txn)
            if refused is not None:
                return [Reply(message.request, refused)]
            if current:
                txn.read(table, predicate)
            views.append(
                self._shard(txn, table).view(message.ts, txn.own(shard) if current else None)
            )
        return [Reply(message.request, Views(tuple(views)))]

    def _too_old(self, table: Table, ts: Timestamp, txn: Transaction) -> Refused | None:
        """72000 for a table whose history is shorter than the timeline's."""
        since = self._holds.since_of(ShardId(table.shard))
        state = self._shards.get(ShardId(table.shard))
        if state is not None:
            # Its log may begin later, if history was shorter in a life before.
            since = max(since, state.since)
        # A table that was dropped long ago may be forgotten already (M9).
        known = state is not None or ShardId(table.shard) in txn.created()
        if ts >= since and known:
            return None
        detail = f'The oldest readable timestamp of table "{table.name}" is {since}.'
        return Refused(RefusedReason.OTHER, "72000", "timestamp is too old", detail)

    def _shard(self, txn: Transaction, table: Table) -> ShardState:
        """The shard of a table; one that only a transaction knows so far is empty."""
        shard = ShardId(table.shard)
        state = self._shards.get(shard)
        if state is None:
            assert shard in txn.created(), f"R3: {shard} is committed, so its rows are known"
            created = self._oracle.read_ts()
            state = ShardState(shard, self._schema_of(table), created, ticks_per_ms=self._unit)
        return state

    def _change_catalog(self, message: ChangeCatalog) -> list[Effect]:
        try:
            self._transactions[message.txn].change_catalog(message.changes)
        except Stale as error:
            raise AssertionError(f"K2: DDL does not fit its own snapshot: {error}") from error
        return []

    def _new_table_id(self, request: RequestId) -> Effect:
        oid = self._next_oid
        self._next_oid += 1
        # The epoch makes the shard's directory new even if an oid was lost with a crash.
        return Reply(request, TableId(oid, ShardId(f"t{self._epoch:08x}{oid:08x}")))

    def _abort(self, txn_id: TransactionId, now: Timestamp) -> list[Effect]:
        txn = self._transactions.get(txn_id)
        if txn is None or txn.committing:
            return []
        return self._end(txn, now)

    def _end(
        self,
        txn: Transaction,
        now: Timestamp,
        committed: Mapping[ShardId, WriteBatch] | None = None,
    ) -> list[Effect]:
        """Release what the transaction held (X3, X5), and let those go on who waited for it."""
        del self._transactions[txn.id]
        self._holds.release(txn.id)
        self._leases.release(txn.id)
        self._snapshots.forget(txn.id)
        effects = leftovers(txn, committed or {})
        return effects + self._grant_leases() + self._start_group(now)

    def _disconnected(self, message: Disconnected, now: Timestamp) -> list[Effect]:
        effects: list[Effect] = []
        for txn in list(self._transactions.values()):
            if txn.owner == message.owner:
                effects += self._abort(txn.id, now)
        return effects

    def _grant_leases(self) -> list[Effect]:
        granted = self._leases.grant(self._groups.writes_ahead)
        return [Reply(request, Leased()) for request in granted]

    # --- commit ------------------------------------------------------------------------------

    def _commit(self, message: CommitTransaction, now: Timestamp) -> list[Effect]:
        txn = self._transactions[message.txn]
        if not txn.is_write():
            ts = txn.snapshot.ts if txn.snapshot is not None else self._oracle.read_ts()
            return [Reply(message.request, Committed(ts)), *self._end(txn, now)]
        if len(self._groups) >= self._settings.queue_max:
            refusal = _refuse(message.request, "53000", "too many transactions wait to commit")
            return [refusal, *self._end(txn, now)]
        txn.committing = True
        self._groups.enqueue(Pending(message.request, txn, self._leases.ticket()))
        return self._start_group(now)

    def _start_group(self, now: Timestamp) -> list[Effect]:
        """Launch the next group if none is in flight and a timestamp is to be had (G1)."""
        if self._groups.in_flight is not None or not len(self._groups):
            return []
        gathered = self._groups.gather(self._catalog.current, self._shards, self._leases)
        effects: list[Effect] = []
        if gathered.members:
            ts = self._oracle.write_ts(self._write_clock(gathered.members, now))
            if ts is None:
                self._groups.put_back(gathered.members)
            else:
                self._commits += 1
                token = Token(f"{self._epoch}-{self._commits}")
                group = gathered.at(ts, token, self._to_register(gathered))
                self._groups.launch(group)
                effects.append(CommitGroup(group.commit))
        for pending, refused in gathered.refused:
            effects.append(Reply(pending.request, refused))
            effects += self._end(pending.txn, now)
        return effects + self._persist_ceiling(now)

    def _to_register(self, gathered: Gathered) -> tuple[ShardId, ...]:
        """Shards that the txns shard hears of for the first time (T6)."""
        created = {
            ShardId(change.table.shard)
            for change in gathered.changes
            if isinstance(change, PutTable) and change.table.timeline == self._timeline.name
        }
        # A table that the same transaction drops again never comes to be.
        created -= {ShardId(c.table.shard) for c in gathered.changes if isinstance(c, RemoveTable)}
        return tuple(sorted((created | gathered.batches.keys()) - self._registered))

    def _write_clock(self, members: Sequence[Pending], now: Timestamp) -> Timestamp:
        """What a write timestamp must reach: the clock, or the farthest ADVANCE of the group."""
        if not self._timeline.manual:
            return now
        return Timestamp(max(member.txn.advance_to or 0 for member in members))

    def _catalog_published(self, message: CatalogPublished, now: Timestamp) -> list[Effect]:
        """DDL of the system timeline: other timelines follow it (R5)."""
        self._catalog = VersionedCatalog.only(message.catalog)
        self._holds.defined(message.catalog)
        self._create_shards(message.changes, self._oracle.read_ts(), now)
        return self._advance(now)

    def _group_committed(self, token: Token, now: Timestamp) -> list[Effect]:
        group = self._groups.landed(token)
        ts = group.commit.ts
        self._oracle.apply_write(ts)
        self._registered.update(group.commit.registers)
        self._create_shards(group.changes, ts, now)
        effects: list[Effect] = []
        if group.changes:
            self._catalog.put(ts, group.catalog)
            self._maintenance.catalog_changed(len(group.changes))
            self._holds.defined(group.catalog)
            effects.append(PublishCatalog(group.changes, group.catalog))
        for shard, batch in group.commit.batches.items():
            before = self._shards[shard]
            after = before.committed(ts, batch)
            self._shards[shard] = after
            self._groups.writes.committed(before, ts, group.interim[shard])
            added = after.tail_bytes - before.tail_bytes
            self._cutting.wrote(shard, after, added=added, now=now)
        effects += [Reply(member.request, Committed(ts)) for member in group.members]
        for member in group.members:
            effects += self._end(member.txn, now, group.commit.batches)
        self._forget_writes()
        return effects + self._advance(now)

    def _forget_writes(self) -> None:
        """Drop what validation needs to know of commits that no open snapshot is before."""
        if self._groups.writes.wants_pruning:
            found = (txn.oldest_read for txn in self._transactions.values())
            open_at = [ts for ts in found if ts is not None]
            self._groups.writes.prune(min(open_at, default=self._oracle.read_ts()))

    def _create_shards(self, changes: tuple[object, ...], ts: Timestamp, now: Timestamp) -> None:
        removed = {ShardId(c.table.shard) for c in changes if isinstance(c, RemoveTable)}
        for shard in removed & self._shards.keys():
            # In another timeline a transaction of this very timestamp may still know the table.
            own = self._timeline == SYSTEM_TIMELINE
            self._maintenance.dropped(shard, ts if own else Timestamp(ts + 1))
        for change in changes:
            if isinstance(change, PutTable) and change.table.shard in removed:
                continue
            if isinstance(change, PutTable) and change.table.timeline == self._timeline.name:
                shard = ShardId(change.table.shard)
                if shard not in self._shards:
                    schema = self._schema_of(change.table)
                    history_us = change.table.history_us
                    state = ShardState(
                        shard,
                        schema,
                        ts,
                        ticks_per_ms=self._unit,
                        retention_us=history_us or self._settings.history_us,
                    )
                    self._shards[shard] = state
                    self._cutting.wrote(shard, state, added=0, now=now)

    def _group_passed(self, message: GroupPassed, now: Timestamp) -> list[Effect]:
        group = self._groups.landed(message.token)
        self._oracle.skip_to(message.upper)
        self._groups.put_back(group.members)
        return self._advance(now)

    def _group_failed(self, message: GroupFailed, now: Timestamp) -> list[Effect]:
        group = self._groups.landed(message.token)
        effects: list[Effect] = []
        for member in group.members:
            effects.append(_refuse(member.request, message.sqlstate, message.reason))
            effects += self._end(member.txn, now)
        return effects + self._advance(now)

    # --- time, cuts, the end -----------------------------------------------------------------

    def _ceiling_answered(
        self, message: CeilingPersisted | CeilingFailed, now: Timestamp
    ) -> list[Effect]:
        match message:
            case CeilingPersisted(ceiling=ceiling):
                self._oracle.ceiling_persisted(ceiling)
                return self._advance(now)
            case CeilingFailed():
                # Asked again at the next tick, not at once: the stash needs time to recover.
                self._oracle.ceiling_failed()
                return []

    def _persist_ceiling(self, now: Timestamp) -> list[Effect]:
        ceiling = self._oracle.wanted_ceiling(now)
        return [] if ceiling is None or self._stopped else [PersistCeiling(ceiling)]

    def _advance(self, now: Timestamp) -> list[Effect]:
        """Do what has become possible: a group, waiting snapshots, leases, a cut, the end."""
        effects = self._start_group(now)
        effects += self._grant_leases()
        effects += self._snapshots.wake(now)
        effects += self._persist_ceiling(now)
        effects += self._maintenance.advance(now)
        effects += self._cut(now)
        return effects + self._stop()

    def _cut(self, now: Timestamp) -> list[Effect]:
        stopping = self._stopping is not None and bool(self._cutting.dirty_since)
        if self._cutting.in_flight is not None or not (stopping or self._cutting.due(now)):
            return []
        cut = self._choose_cut()
        if cut is None:
            return []
        dirty = sorted(self._cutting.dirty_since)
        landing = {shard: self._maintenance.landing(shard, cut) for shard in dirty}
        shards = [s for s in dirty if landing[s] or self._shards[s].dirty_at(cut)]
        for shard in dirty:
            if not self._shards[shard].dirty and not self._maintenance.awaits_cut(shard):
                # Asked for while its flush was under way: that flush was all there was to do.
                self._cutting.clean(shard)
        if not shards:
            return []
        self._cutting.begin(cut, shards)
        self._catalog.prune(self._advance_since(now))
        for shard in shards:
            self._shards[shard] = self._shards[shard].pruned(self._holds.since_of(shard))
        states = tuple(self._shards[shard] for shard in shards)
        return [FlushCut(cut, states, {s: landing[s] for s in shards if landing[s]})]

    def _advance_since(self, now: Timestamp) -> Timestamp:
        # An idle timeline is readable up to now, and its history grows old all the same.
        present = self._oracle.read_ts()
        frontier = present if self._timeline.manual else max(present, now)
        return self._holds.advance(frontier, present=present)

    def _choose_cut(self) -> Timestamp | None:
        """The newest millisecond below which nothing is on its way (C4); None: try again later."""
        read_ts, last = self._oracle.read_ts(), self._cutting.last_cut
        if self._timeline.manual:
            # Time does not move for the sake of a cut: it may have to come again (C1).
            return read_ts if read_ts >= last else None
        # A shard that could not be flushed is tried again, also if nothing is written.
        cut = max(ceil_to(read_ts, self._unit), Timestamp(last + self._unit))
        if self._groups.in_flight is not None or not self._oracle.ensure_at_least(cut):
            cut = floor_to(read_ts, self._unit)
        return cut if cut > last else None

    def _cut_flushed(self, message: CutFlushed, now: Timestamp) -> list[Effect]:
        for shard, version in message.versions.items():
            state = self._shards[shard].flushed(version)
            self._shards[shard] = state
            if state.tail:
                # A cut may be ahead of the clock, and an age below zero would be due at once.
                since = min(message.cut, now)
                self._cutting.wrote(shard, state, added=state.tail_bytes, now=since)
        applied = message.cut
        for shard in message.foreign:
            self._shards[shard] = replace(self._shards[shard], fenced=True)
            self._fenced.add(shard)
        # An attempt before may have reached an earlier cut only.
        late = {s for s in message.versions if self._shards[s].dirty_at(message.cut)}
        for shard in {*message.failed, *late, *self._fenced} & self._shards.keys():
            state = self._shards[shard]
            if self._stopping is None and not state.fenced:
                self._cutting.failed(shard, now)
            if not state.dirty_at(message.cut):
                continue
            # Without a version, not even the log is there that its creation promises.
            behind = state.tail[0].ts if state.tail and state.versions else state.created
            applied = min(applied, Timestamp(behind - 1))
        flushed = {shard: version.cut for shard, version in message.versions.items()}
        return [Tidy(applied, flushed), *self._maintenance.flushed(message, now)]

    def _stop(self) -> list[Effect]:
        """Once nothing is in flight: hand unused timestamps back, then answer (R4)."""
        request = self._stopping
        if request is None or self._stopped:
            return []
        if self._groups.in_flight is not None or len(self._groups) or self._oracle.persisting:
            return []
        if self._cutting.in_flight is not None or self._cutting.dirty_since:
            return []
        self._stopped = True
        stopped = Reply(request, Stopped())
        if self._timeline.manual:
            return [stopped]
        return [PersistCeiling(self._oracle.final_ceiling()), stopped]


def _last_cut(recovered: Recovered, unit: int) -> Timestamp:
    """No cut before was later: a shard may have been flushed at one that was never tidied."""
    flushed = (state.cut for state in recovered.shards.values() if state.cut is not None)
    return max((floor_to(recovered.applied, unit), *flushed))


def _refuse(request: RequestId, sqlstate: str, message: str, detail: str | None = None) -> Reply:
    return Reply(request, Refused(RefusedReason.OTHER, sqlstate, message, detail))
