"""Handle the messages about locks: acquire, cancel, release; serve those whose turn it is.

Functions over the core's state; the invariants are those of the package (K1 to K6).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

from pyroaring import BitMap64

from coordinator.core.effects import Effect, Reply
from coordinator.core.locking.held_rows import as_deletes, current_names, is_among
from coordinator.core.locking.lock_table import GROUP, Answer, HeldLock, LockRequest, LockVerdict
from coordinator.core.locking.modes import (
    MODE_CONFLICTS,
    AdvisoryTag,
    LockMode,
    LockTag,
    LockWait,
    RowTag,
    TableTag,
)
from coordinator.core.locking.moved_rows import newest_names
from coordinator.core.messages.identities import ConnectionId, Isolation
from coordinator.core.messages.locks import (
    AcquireLock,
    CancelLock,
    DropLocks,
    LockRows,
    ReleaseLock,
    ReleaseSessionLocks,
)
from coordinator.core.messages.replies import LockAnswered, Refused, RefusedReason, Released
from coordinator.core.own_writes import merge_deletes
from coordinator.core.refresh import refresh
from coordinator.core.state import CoreState
from coordinator.core.transactions import VALIDATING, Transaction
from coordinator.core.validation import concurrent_update_refusal
from storage.batch import Deletes, RowIdentity
from storage.shard import ShardState
from storage.types import OWN, ShardId

EXPLICIT_FACTOR: Final = 10
"""Rows that FOR UPDATE and its kin may lock, for each that a statement locks by changing it."""

LockMessage: TypeAlias = (
    AcquireLock | LockRows | CancelLock | ReleaseLock | ReleaseSessionLocks | DropLocks
)


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
        case DropLocks():
            return drop_locks(core, guards=message.guards)
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
        0 if message.by_session else txn.innermost_savepoint,
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
    if not isinstance(tag, TableTag):
        return
    for holder in core.groups.holders():
        for held in holder.changes.table_modes(tag.table):
            if held & MODE_CONFLICTS[mode]:
                core.locks.hold_for_group(tag, held, holder.txn)


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
    seen = as_deletes(row.seen for row in wanted if not row.is_own)
    is_any_gone = core.groups.writes.any_gone(state, seen)
    in_flight = [(h.txn, h.changes.deletes(state)) for h in core.groups.holders()]
    newest: Mapping[RowTag, RowIdentity] = {}
    if is_any_gone and txn.snapshot is not None:
        tags = (row.tag for row in wanted if not row.is_own)
        newest = newest_names(state, message.rows.table, tags, txn.snapshot.ts)
    taken = 0
    for row in wanted:
        taken += not core.locks.holds(txn.owner, row.tag)
        asked = LockRequest(
            message.request,
            txn.owner,
            txn.id,
            row.tag,
            message.mode,
            txn.innermost_savepoint,
            ticket,
        )
        stale = is_any_gone and _is_gone(core, state, row)
        if not row.is_own:
            # Somebody else may know it, and change it, by the name that it has now.
            name = newest.get(row.tag) if stale else row.now
            for holder, deletes in in_flight:
                if is_among(name or row.now, deletes):
                    core.locks.hold_for_group(row.tag, LockMode.ROW_UPDATE, holder)
            if name is not None or core.locks.rows.place(row.tag) is None:
                core.locks.rows.add(shard, name or row.now, row.tag)
        answer = core.locks.acquire(asked, message.wait)
        skipped = answer.verdict is LockVerdict.NOT_AVAILABLE and txn.skips_locked
        if skipped and (stale or row.now != row.seen):
            # No scan at its timestamp can leave the row out: it is another one there.
            return [Reply(message.request, _moved(core, txn, ticket, has_news=True))]
        if answer.verdict is not LockVerdict.GRANTED:
            return _refused_row(core, asked, answer)
    if is_any_gone:
        return [Reply(message.request, _moved(core, txn, ticket, has_news=True))]
    if message.implicit:
        txn.rows_locked += taken
    else:
        # Those that only an earlier try has taken were shown to nobody (A9).
        txn.locks_rows = True
        shown = {row.tag: row.now for row in wanted if not row.is_own}
        core.locks.asked_for(txn.owner, txn.id, shown)
    return [Reply(message.request, LockAnswered(True, ticket))]


def take_if_free(core: CoreState, message: LockRows) -> bool:
    """Take rows that others can see if all are free and none has changed since the transaction's
    timestamp. False: some of them may be held now, and stay so.
    """
    txn, rows, locks = core.transactions[message.txn], message.rows, core.locks
    shard = ShardId(rows.table.shard)
    state = core.shards[shard]
    seen = list(zip(rows.sources, rows.indexes, strict=True))
    if core.groups.writes.any_gone(state, as_deletes(seen)):
        return False
    wanted: dict[RowTag, RowIdentity] = {}
    for name, tag in zip(current_names(state, seen), rows.tags(), strict=True):
        assert name is not None, "H2: a row that is there has a name"
        wanted[replace(tag, key=name) if tag.by_identity else tag] = name
    held = {tag: locks.holds(txn.owner, tag) for tag in wanted}
    new = sum([not modes for modes in held.values()])
    if message.implicit and txn.rows_locked + new > core.settings.row_locks_max:
        return True
    ticket = message.ticket or locks.graph.ticket()
    for tag in wanted if len(wanted) == 1 else _in_order(wanted):
        if message.implicit and held[tag] & (message.mode | LockMode.ROW_UPDATE):
            continue
        name = wanted[tag]
        for holder in core.groups.holders():
            if is_among(name, holder.changes.deletes(state)):
                locks.hold_for_group(tag, LockMode.ROW_UPDATE, holder.txn)
        locks.rows.add(shard, name, tag)
        if not _try_row(core, txn, message, ticket, tag):
            return False
    if message.implicit:
        txn.rows_locked += new
    else:
        txn.locks_rows = True
        locks.asked_for(txn.owner, txn.id, wanted)
    return True


def _is_gone(core: CoreState, state: ShardState, row: "_WantedRow") -> bool:
    if row.is_own:
        return False
    return core.groups.writes.any_gone(state, as_deletes([row.seen]))


def _take_free_rows(
    core: CoreState, txn: Transaction, message: LockRows, ticket: int, limit: int
) -> LockAnswered | Refused:
    """SKIP LOCKED: the first rows that are free. One that has changed since it was shown was locked
    by whoever changed it; it is passed over, unless there are too few without it.
    """
    most = core.settings.row_locks_max * EXPLICIT_FACTOR
    if min(limit, len(message.rows.sources)) > most:
        return _too_many_rows()
    shard = ShardId(message.rows.table.shard)
    state = core.shards.get(shard)
    if state is None or not core.settings.locks:
        places = tuple(range(min(limit, len(message.rows.sources))))
        return LockAnswered(True, ticket, taken=places)
    in_flight = _deletes_in_flight(core, state)
    taken: dict[int, _WantedRow] = {}
    changed = False
    for place, row in enumerate(_seen_rows(txn, message, state)):
        if len(taken) == limit:
            break
        if row.is_own:
            # A row that it has replaced has its key still, which others may hold FOR KEY SHARE.
            is_replaced = not row.tag.by_identity and bool(core.locks.holds(txn.owner, row.tag))
            if not is_replaced or _try_row(core, txn, message, ticket, row.tag):
                taken[place] = row
        elif _is_gone(core, state, row):
            changed = True
        elif not is_among(row.now, in_flight) and _try_row(core, txn, message, ticket, row.tag):
            core.locks.rows.add(shard, row.now, row.tag)
            taken[place] = row
        else:
            # No scan at its timestamp leaves out a row that has another name there.
            changed = changed or row.now != row.seen
    if len(taken) < limit and changed:
        return _moved(core, txn, ticket, has_news=True)
    txn.locks_rows = True
    shown = {row.tag: row.now for row in taken.values() if not row.is_own}
    core.locks.asked_for(txn.owner, txn.id, shown)
    return LockAnswered(len(taken) == limit, ticket, taken=tuple(taken))


def _try_row(
    core: CoreState, txn: Transaction, message: LockRows, ticket: int, tag: RowTag
) -> bool:
    savepoint = txn.innermost_savepoint
    asked = LockRequest(message.request, txn.owner, txn.id, tag, message.mode, savepoint, ticket)
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


@dataclass(frozen=True, slots=True)
class _WantedRow:
    """A row to lock: as the transaction has seen it, and as it is called now."""

    seen: RowIdentity
    now: RowIdentity
    tag: RowTag
    is_own: bool


def _seen_rows(txn: Transaction, message: LockRows, state: ShardState) -> list[_WantedRow]:
    """All rows of a request, in its order."""
    rows = message.rows
    made = {OWN, *(file.name for file in txn.staged_in(state.shard))}
    seen = list(zip(rows.sources, rows.indexes, strict=True))
    others = [row for row in seen if row[0] not in made]
    names = dict(zip(others, current_names(state, others), strict=True))
    wanted: list[_WantedRow] = []
    for identity, tag in zip(seen, rows.tags(), strict=True):
        now = names.get(identity) or identity
        named = replace(tag, key=now) if tag.by_identity else tag
        wanted.append(_WantedRow(identity, now, named, is_own=identity[0] in made))
    return wanted


def _rows_to_take(core: CoreState, txn: Transaction, message: LockRows) -> list[_WantedRow]:
    """The rows that others can see, in the order of their keys; none that are beyond the number."""
    state = core.shards.get(ShardId(message.rows.table.shard))
    if not core.settings.locks or state is None:
        return []
    # A row that it has replaced has its key still; one that it has made is nobody else's business.
    wanted = {
        row.tag: row
        for row in _seen_rows(txn, message, state)
        if not row.is_own or (not row.tag.by_identity and core.locks.holds(txn.owner, row.tag))
    }
    more = sum(not core.locks.holds(txn.owner, tag) for tag in wanted)
    if message.implicit and txn.rows_locked + more > core.settings.row_locks_max:
        return []
    return [wanted[tag] for tag in _in_order(wanted)]


def _in_order(tags: Iterable[RowTag]) -> Sequence[RowTag]:
    """The same for all sessions, so that who locks several rows seldom meets another one."""
    found = list(tags)
    try:
        return sorted(found, key=lambda tag: tag.key)
    except TypeError:  # a key with NaN
        return sorted(found, key=lambda tag: repr(tag.key))


def locked_by_others(
    core: CoreState, txn: Transaction, state: ShardState, mode: LockMode
) -> Deletes:
    """The rows of a shard that a transaction would have to wait for, also because others wait."""
    rows = core.locks.rows.rows_of(state.shard)
    taken = as_deletes(
        identity for identity, tag in rows if not core.locks.is_free(txn.owner, tag, mode)
    )
    return merge_deletes(taken, _deletes_in_flight(core, state))


def _deletes_in_flight(core: CoreState, state: ShardState) -> Deletes:
    """What is deleted of a shard by who is on its way, by the names that the rows have now."""
    found: Deletes = {}
    for holder in core.groups.holders():
        found = merge_deletes(found, holder.changes.deletes(state))
    return found


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
    moved = _moved(core, txn, request.ticket, has_news=_is_lost(core, txn, request))
    if isinstance(request.tag, RowTag) and moved == done:
        # At its own timestamp, to take the rows that come after this one.
        txn.forget_reads()
        return replace(done, again=True)
    return moved


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


def drop_locks(core: CoreState, *, guards: bool) -> list[Effect]:
    """For the simulation alone: all row and table locks are lost (K6).

    Whoever has lost a lock that was promised, and that nothing but the lock would keep, commits
    nothing any more. Implicit locks are promised to nobody, and serializable transactions have read
    what they have locked, but for rows that SKIP LOCKED has chosen. Where a lock of theirs guards
    what others do below these levels, losing it would let the others lose updates.
    """

    def by_lock_only(txn: Transaction) -> bool:
        return guards or txn.skips_locked or txn.isolation not in VALIDATING

    def is_kept(held: HeldLock) -> bool:
        # Who commits already is not refused any more, and others must not read what was before.
        txn = None if held.txn is None else core.transactions.get(held.txn)
        commits = txn is not None and txn.committing and by_lock_only(txn)
        return commits or held.session == GROUP

    lost, served = core.locks.drop_rows_and_tables(is_kept)
    for tag, held in lost:
        txn = None if held.txn is None else core.transactions.get(held.txn)
        if txn is None:
            continue
        strong = isinstance(tag, TableTag) and held.mode > LockMode.ROW_EXCLUSIVE
        if by_lock_only(txn) and (held.shown is not None or strong):
            txn.doomed = True
    return serve_waiters(core, served)
