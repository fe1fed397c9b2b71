"""The core: one plain function from messages and time to effects. It owns all shared state.

    sessions ──requests──▶ step(message, now) ──effects──▶ driver ──completions──▶ step ..

INVARIANTS
  R1  state changes only inside `step`; a step never waits and never fails for a client's fault.
  R2  effects come in the order they must happen; what makes durable before what tells (STYLE §2).
  R3  a strict read is served at the oracle's read_ts of the moment it asks; everything acknowledged
      before is at or below it, and everything at or below it is in the shards' views.
  R4  every request is answered once, unless its transaction is aborted first.

The logic lives in the siblings that own the state: oracle, read_holds, timestamps, transactions,
validation, group_commit, leases, cutting, catalog. Here they are only put together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

import pyarrow as pa

from coordinator.core.catalog import Stale, VersionedCatalog
from coordinator.core.cutting import MILLISECOND, Cutting, ceil_ms, floor_ms
from coordinator.core.effects import CommitGroup, Effect, FlushCut, PersistCeiling, Reply, Tidy
from coordinator.core.group_commit import GroupCommit, Pending
from coordinator.core.leases import WriteLeases
from coordinator.core.messages import (
    AbortTransaction,
    Begin,
    CeilingFailed,
    CeilingPersisted,
    ChangeCatalog,
    Committed,
    CommitTransaction,
    CutFlushed,
    Disconnected,
    GroupCommitted,
    GroupFailed,
    GroupPassed,
    Leased,
    Message,
    NewTableId,
    PutTable,
    Refused,
    RefusedReason,
    RequestId,
    Scan,
    ShutDown,
    Snapshot,
    Stopped,
    TableId,
    TakeLease,
    TakeSnapshot,
    Tick,
    Tidied,
    TransactionId,
    Views,
    WriteRows,
)
from coordinator.core.oracle import Oracle
from coordinator.core.read_holds import ReadHolds
from coordinator.core.settings import CoreSettings
from coordinator.core.timestamps import (
    Close,
    Ready,
    TooFar,
    TooOld,
    WaitForClock,
    determine_as_of,
)
from coordinator.core.transactions import Transaction
from coordinator.core.validation import fenced
from sql.catalog import Table
from storage.shard import ShardState
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
        self._next_oid = recovered.next_oid
        self._commits = 0
        self._shards = dict(recovered.shards)
        self._catalog = recovered.catalog
        self._oracle = Oracle(
            ceiling=recovered.ceiling,
            step_us=settings.ceiling_step_us,
        )
        since = max(Timestamp(0), Timestamp(self._oracle.read_ts() - settings.history_us))
        self._holds = ReadHolds(since=since, history_us=settings.history_us)
        self._groups = GroupCommit(group_max=settings.group_max)
        self._leases = WriteLeases()
        self._cutting = Cutting(settings, last_cut=_last_cut(recovered))
        self._transactions: dict[TransactionId, Transaction] = {}
        self._waiting: list[TakeSnapshot] = []
        # What these hold in the txns shard stays there: Delta will not have it.
        self._fenced: set[ShardId] = set()
        self._stopping: RequestId | None = None
        self._stopped = False
        self._recover_dirty(now)

    def _recover_dirty(self, now: Timestamp) -> None:
        for shard, state in self._shards.items():
            if state.fenced:
                self._fenced.add(shard)
            elif state.tail or not state.versions:
                self._cutting.wrote(shard, state, added=state.tail_bytes, now=now)

    @property
    def shards(self) -> Mapping[ShardId, ShardState]:
        """The shards as they are; for observation and tests."""
        return self._shards

    @property
    def since(self) -> Timestamp:
        """The least timestamp that AS OF may name."""
        return self._holds.since

    def step(self, message: Message, now: Timestamp) -> list[Effect]:
        """Handle one message; the caller runs the returned effects in order (R1, R2)."""
        match message:
            case Begin():
                return self._begin(message)
            case TakeSnapshot():
                return self._take_snapshot(message, now)
            case Scan():
                return self._scan(message)
            case WriteRows():
                self._transactions[message.txn].write(message.table, message.batch)
                return []
            case ChangeCatalog():
                return self._change_catalog(message)
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
            case Tidied():
                self._cutting.ended()
                return self._advance(now)
            case Tick():
                return self._advance(now)
            case ShutDown():
                self._stopping = message.request
                return self._advance(now)
            case _:
                assert_never(message)

    # --- transactions ------------------------------------------------------------------------

    def _begin(self, message: Begin) -> list[Effect]:
        assert message.txn not in self._transactions, "X3: a transaction begins once"
        self._transactions[message.txn] = Transaction(
            message.txn, message.owner, message.isolation, message.read_only
        )
        return []

    def _take_snapshot(self, message: TakeSnapshot, now: Timestamp) -> list[Effect]:
        txn = self._transactions[message.txn]
        if message.as_of is not None:
            return self._snapshot_as_of(message, message.as_of, now)
        if txn.snapshot is None:
            ts = self._oracle.read_ts()
            self._hold(txn, ts)
            txn.snapshot = Snapshot(ts, self._catalog.at(ts))
        return [Reply(message.request, txn.snapshot)]

    def _hold(self, txn: Transaction, ts: Timestamp) -> None:
        if ts not in txn.timestamps:
            self._holds.acquire(txn.id, ts)
            txn.timestamps.add(ts)

    def _snapshot_as_of(
        self, message: TakeSnapshot, as_of: Timestamp, now: Timestamp
    ) -> list[Effect]:
        choice = determine_as_of(
            as_of,
            at_least=message.at_least,
            since=self._holds.since,
            read_ts=self._oracle.read_ts(),
            now=now,
            bound_us=self._settings.future_bound_us,
        )
        match choice:
            case Ready(ts=ts):
                return self._ready(message, ts)
            case Close(ts=ts):
                if self._write_pending(ts) or not self._oracle.ensure_at_least(ts):
                    self._waiting.append(message)
                    return self._persist_ceiling(now)
                return self._ready(message, ts)
            case WaitForClock():
                self._waiting.append(message)
                return []
            case TooOld(since=since):
                detail = f"The oldest readable timestamp is {since}."
                return [_refuse(message.request, "72000", "timestamp is too old", detail)]
            case TooFar():
                detail = f"Now is {now}."
                text = "timestamp is too far in the future"
                return [_refuse(message.request, "22023", text, detail)]
            case _:
                assert_never(choice)

    def _ready(self, message: TakeSnapshot, ts: Timestamp) -> list[Effect]:
        self._hold(self._transactions[message.txn], ts)
        return [Reply(message.request, Snapshot(ts, self._catalog.at(ts)))]

    def _write_pending(self, ts: Timestamp) -> bool:
        """True if a group in flight may still become durable at or below `ts`."""
        group = self._groups.in_flight
        return group is not None and group.commit.ts <= ts

    def _scan(self, message: Scan) -> list[Effect]:
        txn = self._transactions[message.txn]
        assert message.ts in txn.timestamps, "H2: only a held timestamp is read"
        current = txn.snapshot is not None and message.ts == txn.snapshot.ts
        views = []
        for table in message.tables:
            shard = ShardId(table.shard)
            refused = fenced(shard, self._shards)
            if refused is not None:
                return [Reply(message.request, refused)]
            if current:
                txn.reads.add(shard)
                txn.tables[table.oid] = table
            views.append(
                self._shard(txn, table).view(message.ts, txn.writes.get(shard) if current else None)
            )
        return [Reply(message.request, Views(tuple(views)))]

    def _shard(self, txn: Transaction, table: Table) -> ShardState:
        """The shard of a table; one that only a transaction knows so far is empty."""
        shard = ShardId(table.shard)
        state = self._shards.get(shard)
        if state is None:
            assert shard in txn.created(), f"R3: {shard} is committed, so its rows are known"
            state = ShardState(shard, self._schema_of(table), self._oracle.read_ts())
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

    def _end(self, txn: Transaction, now: Timestamp) -> list[Effect]:
        """Release what the transaction held (X3), and let those go on who waited for it."""
        del self._transactions[txn.id]
        self._holds.release(txn.id)
        self._leases.release(txn.id)
        self._waiting = [waiting for waiting in self._waiting if waiting.txn != txn.id]
        return self._grant_leases() + self._start_group(now)

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
            ts = self._oracle.write_ts(now)
            if ts is None:
                self._groups.put_back(gathered.members)
            else:
                self._commits += 1
                group = gathered.at(ts, Token(f"{self._epoch}-{self._commits}"))
                self._groups.launch(group)
                effects.append(CommitGroup(group.commit))
        for pending, refused in gathered.refused:
            effects.append(Reply(pending.request, refused))
            effects += self._end(pending.txn, now)
        return effects + self._persist_ceiling(now)

    def _group_committed(self, token: Token, now: Timestamp) -> list[Effect]:
        group = self._groups.landed(token)
        ts = group.commit.ts
        self._oracle.apply_write(ts)
        self._create_shards(group.changes, ts, now)
        if group.changes:
            self._catalog.put(ts, group.catalog)
        for shard, batch in group.commit.batches.items():
            before = self._shards[shard]
            after = before.committed(ts, batch)
            self._shards[shard] = after
            added = after.tail_bytes - before.tail_bytes
            self._cutting.wrote(shard, after, added=added, now=now)
        effects: list[Effect] = [Reply(member.request, Committed(ts)) for member in group.members]
        for member in group.members:
            effects += self._end(member.txn, now)
        return effects + self._advance(now)

    def _create_shards(self, changes: tuple[object, ...], ts: Timestamp, now: Timestamp) -> None:
        for change in changes:
            if isinstance(change, PutTable):
                shard = ShardId(change.table.shard)
                if shard not in self._shards:
                    state = ShardState(shard, self._schema_of(change.table), ts)
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
        effects += self._wake(now)
        effects += self._persist_ceiling(now)
        effects += self._cut(now)
        return effects + self._stop()

    def _wake(self, now: Timestamp) -> list[Effect]:
        waiting, self._waiting = self._waiting, []
        return [effect for message in waiting for effect in self._take_snapshot(message, now)]

    def _cut(self, now: Timestamp) -> list[Effect]:
        stopping = self._stopping is not None and bool(self._cutting.dirty_since)
        if self._cutting.in_flight is not None or not (stopping or self._cutting.due(now)):
            return []
        cut = self._choose_cut()
        if cut is None:
            return []
        dirty = sorted(self._cutting.dirty_since)
        shards = [shard for shard in dirty if self._shards[shard].dirty_at(cut)]
        if not shards:
            return []
        self._cutting.begin(cut, shards)
        since = self._holds.advance(self._oracle.read_ts())
        self._catalog.prune(since)
        for shard in shards:
            self._shards[shard] = self._shards[shard].pruned(since)
        return [FlushCut(cut, tuple(self._shards[shard] for shard in shards))]

    def _choose_cut(self) -> Timestamp | None:
        """The newest millisecond below which nothing is on its way (C4); None: try again later."""
        # A shard that could not be flushed is tried again, also if nothing is written.
        cut = max(ceil_ms(self._oracle.read_ts()), Timestamp(self._cutting.last_cut + MILLISECOND))
        if self._groups.in_flight is not None or not self._oracle.ensure_at_least(cut):
            cut = floor_ms(self._oracle.read_ts())
        return cut if cut > self._cutting.last_cut else None

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
        for shard in {*message.failed, *self._fenced}:
            state = self._shards[shard]
            if self._stopping is None and not state.fenced:
                self._cutting.failed(shard, now)
            if not state.dirty_at(message.cut):
                continue
            first = state.tail[0].ts if state.tail else state.created
            applied = min(applied, Timestamp(first - 1))
        flushed = {shard: version.cut for shard, version in message.versions.items()}
        return [Tidy(applied, flushed)]

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
        return [PersistCeiling(self._oracle.final_ceiling()), Reply(request, Stopped())]


def _last_cut(recovered: Recovered) -> Timestamp:
    """No cut before was later: a shard may have been flushed at one that was never tidied."""
    flushed = (state.cut for state in recovered.shards.values() if state.cut is not None)
    return max((floor_ms(recovered.applied), *flushed))


def _refuse(request: RequestId, sqlstate: str, message: str, detail: str | None = None) -> Reply:
    return Reply(request, Refused(RefusedReason.OTHER, sqlstate, message, detail))
