"""Handle the messages about locks: acquire, cancel, release; serve those whose turn it is.

Functions over the core's state; the invariants are those of the package (K1 to K5).
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, assert_never

from pyroaring import BitMap64

from coordinator.core.effects import Effect, Reply
from coordinator.core.locking.held_rows import as_deletes, is_row_among, meet
from coordinator.core.locking.lock_table import Answer, LockRequest, LockVerdict
from coordinator.core.locking.modes import (
    MODE_CONFLICTS,
    AdvisoryTag,
    LockMode,
    LockTag,
    LockWait,
    RowTag,
    TableTag,
)
from coordinator.core.messages import (
    AcquireLock,
    CancelLock,
    ConnectionId,
    Isolation,
    LockAnswered,
    LockRows,
    Refused,
    RefusedReason,
    Released,
    ReleaseLock,
    ReleaseSessionLocks,
    RequestId,
    RowsToLock,
)
from coordinator.core.own_writes import merge_deletes
from coordinator.core.refresh import refresh
from coordinator.core.state import CoreState
from coordinator.core.transactions import Transaction
from coordinator.core.validation import concurrent_update_refusal
from storage.batch import Deletes, RowIdentity
from storage.shard import ShardState
from storage.types import OWN, ShardId, Source

EXPLICIT_FACTOR: Final = 10
"""Rows that FOR UPDATE and its kin may lock, for each that a statement locks by changing it."""

LockMessage: TypeAlias = AcquireLock | LockRows | CancelLock | ReleaseLock | ReleaseSessionLocks


def change_locks(core: CoreState, message: LockMessage) -> list[Effect]:
    """Handle one message about locks."""
    match message:
        case AcquireLock():
            return acquire_lock(core, message)
        case LockRows():
            return lock_rows(core, message)
        case CancelLock():
            return cancel_lock(core, message)
        case ReleaseLock():
            return release_lock(core, message)
        case ReleaseSessionLocks(owner=owner):
            return release_session_locks(core, owner)
        case _:
            assert_never(message)


def acquire_lock(core: CoreState, message: AcquireLock) -> list[Effect]:
    """Take a lock, or stand in line for it."""
    txn = core.transactions[message.txn]
    ticket = message.ticket or core.locks.graph.ticket()
    wanted = LockRequest(
        message.request,
        txn.owner,
        None if message.by_session else txn.id,
        message.tag,
        message.mode,
        txn.innermost_savepoint,
        ticket,
        message.single,
    )
    if not core.settings.locks and not isinstance(message.tag, AdvisoryTag):
        return [Reply(message.request, LockAnswered(True, ticket))]
    hold_for_group(core, message.tag, message.mode)
    return _answered(core, wanted, message.wait)


def _answered(core: CoreState, wanted: LockRequest, wait: LockWait) -> list[Effect]:
    """Ask the lock table; nothing is answered to who waits."""
    answer = core.locks.acquire(wanted, wait)
    effects = serve_waiters(core, answer.served)
    match answer.verdict:
        case LockVerdict.GRANTED:
            effects.append(Reply(wanted.request, _granted(core, wanted, waited=False)))
        case LockVerdict.NOT_AVAILABLE:
            effects.append(Reply(wanted.request, LockAnswered(False, wanted.ticket)))
        case LockVerdict.DEADLOCK:
            effects.append(Reply(wanted.request, _deadlock(answer.circle or "")))
        case LockVerdict.WAITS:
            _give_back_lease(core, wanted)
    return effects


def _give_back_lease(core: CoreState, wanted: LockRequest) -> None:
    """Who holds a lease waits for nobody (L2 of `leases.py`)."""
    if wanted.txn is not None:
        core.leases.release(wanted.txn)


def _deadlock(circle: str) -> Refused:
    hint = "See server log for query details."
    return Refused(RefusedReason.OTHER, "40P01", "deadlock detected", circle, hint)


def serve_waiters(core: CoreState, granted: Iterable[LockRequest]) -> list[Effect]:
    """Tell those who have waited that they hold their locks (K3)."""
    return [Reply(request.request, _granted(core, request, waited=True)) for request in granted]


def hold_for_group(core: CoreState, tag: LockTag, mode: LockMode) -> None:
    """What the group in flight changes is held by it, once somebody asks for it (K1)."""
    group = core.groups.in_flight
    if group is None or not isinstance(tag, TableTag):
        return
    held = group.table_mode(tag.table)
    if held is not None and held & MODE_CONFLICTS[mode]:
        core.locks.hold_for_group(tag, held)


def lock_rows(core: CoreState, message: LockRows) -> list[Effect]:
    """Take rows in their order, up to the first that is not free."""
    txn = core.transactions[message.txn]
    ticket = message.ticket or core.locks.graph.ticket()
    if message.limit is not None:
        return [Reply(message.request, _take_free_rows(core, txn, message, ticket, message.limit))]
    wanted = _rows_to_take(core, txn, message)
    if not wanted:
        return [Reply(message.request, LockAnswered(True, ticket))]
    if not message.implicit and len(wanted) > core.settings.row_locks_max * EXPLICIT_FACTOR:
        return [Reply(message.request, _too_many_rows())]
    shard = ShardId(message.rows.table.shard)
    state = core.shards[shard]
    own = _own_sources(txn, shard)
    deletes = as_deletes(identity for identity, _ in wanted if identity[0] not in own)
    in_flight = _deletes_in_flight(core, state, deletes)
    for identity, tag in wanted:
        if in_flight and is_row_among(state, identity, in_flight):
            core.locks.hold_for_group(tag, LockMode.ROW_UPDATE)
        savepoint = txn.innermost_savepoint
        asked = LockRequest(
            message.request,
            txn.owner,
            txn.id,
            tag,
            message.mode,
            savepoint,
            ticket,
        )
        if identity[0] not in own:
            core.locks.rows.add(shard, identity, tag)
        answer = core.locks.acquire(asked, message.wait)
        if answer.verdict is not LockVerdict.GRANTED:
            return _refused_row(core, asked, answer)
    if core.groups.writes.any_gone(state, deletes):
        return [Reply(message.request, _moved(core, txn, ticket, has_news=True))]
    if message.implicit:
        txn.rows_locked += len(wanted)
    else:
        # Those that only an earlier try has taken were shown to nobody (A9).
        txn.locks_rows = True
        core.locks.asked_for(txn.owner, txn.id, [tag for _, tag in wanted])
    return [Reply(message.request, LockAnswered(True, ticket))]


def _take_free_rows(
    core: CoreState, txn: Transaction, message: LockRows, ticket: int, limit: int
) -> LockAnswered | Refused:
    """SKIP LOCKED: the first rows that are free. One that has changed since it was shown was locked
    by whoever changed it; it is passed over, unless there are too few without it.
    """
    rows = message.rows
    if min(limit, len(rows.sources)) > core.settings.row_locks_max * EXPLICIT_FACTOR:
        return _too_many_rows()
    shard = ShardId(rows.table.shard)
    state = core.shards.get(shard)
    if state is None or not core.settings.locks:
        return LockAnswered(True, ticket, taken=tuple(range(min(limit, len(rows.sources)))))
    pairs = list(zip(rows.sources, rows.indexes, strict=True))
    own = _own_sources(txn, shard)
    others = as_deletes(identity for identity in pairs if identity[0] not in own)
    in_flight = _deletes_in_flight(core, state, others)
    taken: list[tuple[int, RowTag]] = []
    changed = False
    for place, (identity, tag) in enumerate(zip(pairs, _tags(core, state, rows), strict=True)):
        if len(taken) == limit:
            break
        if identity[0] in own:
            # A row that it has replaced has its key still, which others may hold FOR KEY SHARE.
            is_replaced = rows.keys is not None and bool(core.locks.holds(txn.owner, tag))
            if not is_replaced or _try_row(core, txn, message, tag):
                taken.append((place, tag))
        elif in_flight and is_row_among(state, identity, in_flight):
            continue
        elif core.groups.writes.any_gone(state, as_deletes([identity])):
            changed = True
        elif _try_row(core, txn, message, tag):
            core.locks.rows.add(shard, identity, tag)
            taken.append((place, tag))
    if len(taken) < limit and changed:
        return _moved(core, txn, ticket, has_news=True)
    txn.locks_rows = True
    core.locks.asked_for(
        txn.owner, txn.id, [tag for place, tag in taken if pairs[place][0] not in own]
    )
    places = tuple(place for place, _ in taken)
    return LockAnswered(len(taken) == limit, ticket, taken=places)


def _try_row(core: CoreState, txn: Transaction, message: LockRows, tag: RowTag) -> bool:
    savepoint = txn.innermost_savepoint
    asked = LockRequest(message.request, txn.owner, txn.id, tag, message.mode, savepoint)
    return core.locks.acquire(asked, LockWait.NO).verdict is LockVerdict.GRANTED


def _too_many_rows() -> Refused:
    hint = "Lock fewer rows at once, or LOCK TABLE."
    return Refused(RefusedReason.OTHER, "53200", "too many rows to lock", hint=hint)


def _refused_row(core: CoreState, asked: LockRequest, answer: Answer) -> list[Effect]:
    effects = serve_waiters(core, answer.served)
    if answer.verdict is LockVerdict.DEADLOCK:
        effects.append(Reply(asked.request, _deadlock(answer.circle or "")))
    elif answer.verdict is LockVerdict.NOT_AVAILABLE:
        effects.append(Reply(asked.request, LockAnswered(False, asked.ticket)))
    else:
        _give_back_lease(core, asked)
    return effects


def _rows_to_take(
    core: CoreState, txn: Transaction, message: LockRows
) -> list[tuple[RowIdentity, RowTag]]:
    """The rows that others can see, in the order of their keys; none that are beyond the number."""
    rows = message.rows
    if not core.settings.locks or ShardId(rows.table.shard) not in core.shards:
        return []
    state = core.shards[ShardId(rows.table.shard)]
    pairs = zip(zip(rows.sources, rows.indexes, strict=True), _tags(core, state, rows), strict=True)
    # A row that it has replaced has its key still; one that it has made is nobody else's business.
    own = _own_sources(txn, ShardId(rows.table.shard))
    wanted = {
        tag: identity
        for identity, tag in pairs
        if identity[0] not in own or (rows.keys is not None and core.locks.holds(txn.owner, tag))
    }
    if message.implicit and txn.rows_locked + len(wanted) > core.settings.row_locks_max:
        return []
    return [(wanted[tag], tag) for tag in sorted(wanted, key=_by_key)]


def _tags(core: CoreState, state: ShardState, rows: RowsToLock) -> Sequence[RowTag]:
    """What locks them, row by row. Without a key a row keeps the tag by which it was locked first,
    though cuts and compactions rename it (H2 of `held_rows.py`).
    """
    tags = rows.tags()
    if rows.keys is not None or state.shard not in core.locks.rows:
        return tags
    identities = zip(rows.sources, rows.indexes, strict=True)
    known = [core.locks.rows.tag_of(state, identity) for identity in identities]
    return [found or tag for found, tag in zip(known, tags, strict=True)]


def _own_sources(txn: Transaction, shard: ShardId) -> frozenset[Source]:
    """Where rows are that only the transaction sees."""
    staged = (Source(name) for at, name in txn.staged_files() if at == shard)
    return frozenset([OWN, *staged])


def _by_key(tag: RowTag) -> str:
    return repr(tag.key)


def locked_by_others(
    core: CoreState, txn: Transaction, state: ShardState, mode: LockMode
) -> Deletes:
    """The rows of a shard that other sessions, or the group in flight, hold against a mode."""
    rows = core.locks.rows.rows_of(state.shard)
    held = as_deletes(
        identity
        for identity, tag in rows
        if core.locks.is_held_against(
            LockRequest(RequestId(0), txn.owner, None, tag, mode), group=True
        )
    )
    group = core.groups.in_flight
    batch = None if group is None else group.commit.batches.get(state.shard)
    return held if batch is None else merge_deletes(held, batch.deletes)


def _deletes_in_flight(core: CoreState, state: ShardState, deletes: Deletes) -> Deletes:
    """What the group in flight deletes of these rows' shard, if one of them is among it."""
    group = core.groups.in_flight
    batch = None if group is None else group.commit.batches.get(state.shard)
    if batch is None or not batch.deletes:
        return {}
    wanted = state.surviving(deletes)
    return batch.deletes if meet(wanted, batch.deletes) else {}


def _granted(core: CoreState, request: LockRequest, *, waited: bool) -> LockAnswered | Refused:
    """The answer to whoever has got a lock: if what it protects has changed, the transaction moves
    to the newest timestamp, and its statement begins again.
    """
    done = LockAnswered(True, request.ticket)
    txn = None if request.txn is None else core.transactions[request.txn]
    if txn is None or txn.snapshot is None or isinstance(request.tag, AdvisoryTag):
        return done
    if not waited and not _has_news(core, txn, request):
        return done
    return _moved(core, txn, request.ticket, has_news=_is_lost(core, txn, request))


def _moved(
    core: CoreState, txn: Transaction, ticket: int, *, has_news: bool
) -> LockAnswered | Refused:
    """Move who has waited to the newest timestamp; it stays where it is, for its commit to decide,
    if that may not be. `has_news`: then it cannot go on at its timestamp.
    """
    if txn.isolation is Isolation.READ_COMMITTED or refresh(core, txn):
        txn.forget_reads()
        return LockAnswered(True, ticket, again=True)
    if has_news:
        return concurrent_update_refusal()
    return LockAnswered(True, ticket)


def _is_lost(core: CoreState, txn: Transaction, request: LockRequest) -> bool:
    """Whether what is locked has changed so that the transaction's timestamp is of no use: a row
    is gone, or a table to be altered must be seen as it is (A11).
    """
    match request.tag:
        case RowTag() as tag:
            found = core.locks.rows.place(tag)
            if found is None:
                return True
            shard, (source, index) = found
            gone = {source: BitMap64([index])}
            return core.groups.writes.any_gone(core.shards[shard], gone)
        case _:
            return request.mode is LockMode.ACCESS_EXCLUSIVE and _has_news(core, txn, request)


def _has_news(core: CoreState, txn: Transaction, request: LockRequest) -> bool:
    """Whether what is locked has changed since the transaction's timestamp."""
    assert isinstance(request.tag, TableTag), "rows say so themselves"
    assert txn.snapshot is not None, "X1: who asks has a snapshot"
    now = core.catalog.current
    if now is not txn.base:
        before, table = txn.base.by_oid(request.tag.table), now.by_oid(request.tag.table)
        if (before and before.version) != (table and table.version):
            return True
    if request.mode in (LockMode.ROW_SHARE, LockMode.ROW_EXCLUSIVE):
        return False
    table = txn.base.by_oid(request.tag.table)
    state = None if table is None else core.shards.get(ShardId(table.shard))
    return state is not None and state.last_write > txn.snapshot.ts


def cancel_lock(core: CoreState, message: CancelLock) -> list[Effect]:
    """Leave the line, or give back what was granted just then."""
    wanted = message.wanted
    txn = core.transactions.get(wanted.txn)
    if txn is None:
        return []  # its end has released what it waited for
    served = core.locks.cancel(txn.owner, wanted.request)
    if served is not None:
        return serve_waiters(core, served)
    if isinstance(wanted, AcquireLock) and wanted.by_session:
        return serve_waiters(core, core.locks.unlock(txn.owner, wanted.tag, wanted.mode).served)
    return []


def release_lock(core: CoreState, message: ReleaseLock) -> list[Effect]:
    """Give back a lock of the session."""
    found = core.locks.unlock(message.owner, message.tag, message.mode)
    return [*serve_waiters(core, found.served), Reply(message.request, Released(found.held))]


def release_session_locks(core: CoreState, owner: ConnectionId) -> list[Effect]:
    """Give back all locks that the session holds by itself."""
    return serve_waiters(core, core.locks.release_session(owner))
