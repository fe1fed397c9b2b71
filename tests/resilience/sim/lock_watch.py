"""What must hold of locks after every step of a core: looked at from outside, step by step.

    driver ── message ──▶ watch ──▶ core.step ──▶ effects ──▶ watch: is all as it should be?

INVARIANTS (of `coordinator/core/locking/__init__.py`, as they are looked at here)
  K1  no two sessions hold conflicting modes of one tag, or of one row under two names; a member of
      the group in flight, or of a lane, holds what it changes.
  K2  no commit changes a row, or writes a table, that another session holds against it;
      but for batches of sources, which pass all locks (F5 of `sources`).
  K3  no waiter is left that fits the holders and delays nobody ahead of it.
  K4  no waiters wait for each other in a circle.
  K5  no single statement overtakes a block that waits for what it changes.
  G1  a session waits for one lock, and the wait graph knows where.
  T1  what is held or asked for belongs to a transaction that is open, and to no savepoint that was
      rolled back.
  R1  who is told that he holds rows holds all of them, and they are there; so does a block whose
      statement has changed rows by key.
  F1  above read committed a transaction is validated from its own timestamp on (`core/refresh.py`).
  L1, L2 of `lease_watch.py`.

The rules are written anew here, so that a mistake in the core's is a difference. Sessions that have
lost their locks to a fault (K6) are not looked at until they end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from pyroaring import BitMap64

from coordinator.core.core import Core
from coordinator.core.effects import CommitGroup, Effect, Reply
from coordinator.core.group_members import GroupMember, PendingChange, PendingCommit, changed_tables
from coordinator.core.locking.lock_table import (
    GROUP,
    HeldLock,
    LockQueue,
    LockRequest,
)
from coordinator.core.locking.modes import (
    MODE_CONFLICTS,
    ROW_MODES,
    LockMode,
    LockTag,
    RowTag,
    TableTag,
)
from coordinator.core.messages.identities import ConnectionId, Isolation, RequestId, TransactionId
from coordinator.core.messages.locks import DropLocks, LockRows
from coordinator.core.messages.replies import ChangedByKey, LockAnswered
from coordinator.core.messages.requests import (
    Begin,
    BeginStatement,
    ChangeInBlock,
    Message,
    RecordLookUps,
    RollbackTo,
    Scan,
    TakeSnapshot,
    WriteRows,
)
from coordinator.core.own_writes import deletes_of_others
from coordinator.core.sources.batches import PendingBatch
from storage.batch import Deletes, RowIdentity
from storage.shard import ShardState
from storage.types import OWN, ShardId, Source, Timestamp
from tests.resilience.sim.key_changes import KeyChange
from tests.resilience.sim.lease_watch import check_leases

UNLOCKED = (Begin, BeginStatement, TakeSnapshot, RecordLookUps, Scan, WriteRows)
"""Messages that have nothing to do with locks."""

TOLD_MAX = 3
"""Findings of one core: what is wrong is wrong again after the next step."""


def watch(core: Core, found: Callable[[str, str], None]) -> None:
    """Look at every step of a core from now on; `found` is told what must not be."""
    watched = LockWatch(core, found)
    step = core.step

    def look(message: Message, now: Timestamp) -> list[Effect]:
        watched.before(message)
        effects = step(message, now)
        watched.after(message, effects)
        return effects

    core.step = look  # type: ignore[method-assign]


class LockWatch:
    """See the module."""

    def __init__(self, core: Core, found: Callable[[str, str], None]) -> None:
        self._core = core._state
        self._found = found
        self._asked: dict[RequestId, LockRows] = {}
        self._rows: dict[tuple[ConnectionId, RowTag], tuple[ShardId, RowIdentity]] = {}
        """By what name a session has asked for a row that it was told it holds, if the tag does not
        say it."""
        self._losers: set[TransactionId] = set()
        self._seen: dict[LockTag, object] = {}
        self._overtaking: frozenset[RequestId] = frozenset()
        self._told = 0

    def before(self, message: Message) -> None:
        """A step is about to be made."""
        self._overtaking = self._core.groups._again | {m.request for m in self._in_lanes()}
        if isinstance(message, LockRows):
            self._asked[message.request] = message
        elif isinstance(message, DropLocks):
            self._losers |= {held.txn for _, held in self._held() if held.txn is not None}

    def after(self, message: Message, effects: Iterable[Effect]) -> None:
        """It has been made."""
        if isinstance(message, UNLOCKED):
            return
        self._losers &= self._core.transactions.keys()
        self._forget_rows()
        for effect in effects:
            if isinstance(effect, Reply) and effect.request in self._asked:
                self._check_answer(self._asked.pop(effect.request), effect)
            elif isinstance(effect, Reply) and isinstance(message, ChangeInBlock):
                self._check_block(message, effect)
            elif isinstance(effect, CommitGroup):
                self._check_commit()
        if isinstance(message, RollbackTo):
            self._check_rollback(message)
        queues = self._core.locks.queues()
        self._check_queues(queues)
        self._check_group()
        self._check_waits(queues)
        self._check_names()
        self._check_timestamps()
        check_leases(self._core, list(self._in_lanes()), self._expect)

    def _expect(self, condition: bool, rule: str, explanation: str) -> None:
        if not condition and self._told < TOLD_MAX:
            self._told += 1
            self._found(rule, explanation)

    def _in_lanes(self) -> Iterator[GroupMember]:
        """Members whose commit waits for the maintenance of views."""
        for unit in self._core.groups.lanes.units():
            yield from unit.work.members

    def _held(self) -> Iterator[tuple[LockTag, HeldLock]]:
        for queue in self._core.locks.queues():
            for held in queue.held:
                yield queue.tag, held

    # --- holders and lines -------------------------------------------------------------------

    def _check_queues(self, queues: Iterable[LockQueue]) -> None:
        """Each that has changed."""
        known, self._seen = self._seen, {}
        for queue in queues:
            self._expect(bool(queue.held or queue.waiting), "T2", f"{queue.tag} is for nobody")
            everybody = (*queue.held, *queue.waiting)
            for one in everybody:
                is_open = one.txn is None or one.txn in self._core.transactions
                is_open = is_open or one.session == GROUP
                self._expect(is_open, "T1", f"{one} of {queue.tag} is over")
            shown = [(one.session, int(one.mode), one.single) for one in everybody]
            seen = self._seen[queue.tag] = (len(queue.held), shown)
            if known.get(queue.tag) != seen:
                self._check_holders(queue)
                self._check_line(queue)

    def _check_holders(self, queue: LockQueue) -> None:
        held = [h for h in queue.held if h.session != GROUP]
        for at, one in enumerate(held):
            for other in held[at + 1 :]:
                if _are_apart(one, other):
                    self._expect(False, "K1", f"{queue.tag} is held by {one} and {other}")

    def _check_line(self, queue: LockQueue) -> None:
        for at, waiter in enumerate(queue.waiting):
            ahead = () if waiter.mode is LockMode.ROW_KEY_SHARE else queue.waiting[:at]
            blockers = (*queue.held, *ahead)
            if not any(_are_apart(one, waiter) for one in blockers):
                self._expect(False, "K3", f"{waiter} waits for nobody: {blockers}")

    def _check_waits(self, queues: Iterable[LockQueue]) -> None:
        graph = self._core.locks.graph
        mine = [(queue, waiter) for queue in queues for waiter in queue.waiting]
        sessions = [waiter.session for _, waiter in mine]
        self._expect(len(sessions) == len(set(sessions)), "G1", f"{sessions} wait")
        for queue, waiter in mine:
            wait = graph.waits.get(waiter.session)
            known = wait is not None and wait.line is queue
            self._expect(known, "G1", f"the graph does not know that {waiter} waits")
        if mine:
            # Of all timelines: a circle may go through several.
            edges = {session: _blockers(wait.line) for session, wait in graph.waits.items()}
            self._check_circles({s: list(blockers(s)) for s, blockers in edges.items()})

    def _check_circles(self, edges: Mapping[ConnectionId, list[ConnectionId]]) -> None:
        """Take out those who wait for nobody that waits, until nobody is left."""
        left = dict(edges)
        while free := [s for s, blockers in left.items() if not any(b in left for b in blockers)]:
            for session in free:
                del left[session]
        self._expect(not left, "K4", f"these wait for each other: {left}")

    def _check_rollback(self, message: RollbackTo) -> None:
        txn = self._core.transactions.get(message.txn)
        for tag, held in self._held():
            since = held.txn == message.txn and held.savepoint >= message.number
            kept = txn is not None and since and not message.keeps_locks
            self._expect(not kept, "T1", f"{held} of {tag} after ROLLBACK TO {message.number}")

    # --- rows --------------------------------------------------------------------------------

    def _forget_rows(self) -> None:
        """Those that nobody holds any more."""
        held = {(one.session, tag) for tag, one in self._held() if _has_key(tag)}
        self._rows = {key: self._rows[key] for key in held if key in self._rows}

    def _name(self, session: ConnectionId, tag: RowTag) -> tuple[ShardId, RowIdentity] | None:
        """What a row that a session holds is called now."""
        place = self._core.locks.rows.place(tag)
        if _has_key(tag):
            place = self._rows.get((session, tag), place)
        if place is None:
            return None
        shard, identity = place
        now = _name_now(self._core.shards[shard], identity)
        return None if now is None else (shard, now)

    def _check_answer(self, asked: LockRows, reply: Reply) -> None:
        """R1."""
        answer = reply.value
        txn = self._core.transactions.get(asked.txn)
        if not isinstance(answer, LockAnswered) or answer.again:
            return
        if not answer.granted and asked.limit is None:
            return
        if txn is None or not self._core.settings.locks or txn.id in self._losers:
            return
        shard = ShardId(asked.rows.table.shard)
        state = self._core.shards.get(shard)
        if state is None or (asked.implicit and self._is_beyond(asked)):
            return
        live = _live(state)
        own = {file.name for file in txn.writes[shard].staged} if shard in txn.writes else set()
        rows = list(_identities(asked))
        told = rows if asked.limit is None else [rows[place] for place in answer.taken]
        for tag, identity in told:
            if identity[0] == OWN or identity[0] in own:
                continue
            now = _name_now(state, identity)
            self._expect(now in live, "R1", f"p{txn.owner} was given {tag}, which is gone")
            named = tag if now is None or not tag.by_identity else replace(tag, key=now)
            mode = self._core.locks.holds(txn.owner, named)
            self._expect(bool(asked.mode & mode), "R1", f"p{txn.owner} was told it holds {tag}")
            if not tag.by_identity:
                self._rows[txn.owner, tag] = shard, identity

    def _check_block(self, message: ChangeInBlock, reply: Reply) -> None:
        """R1."""
        txn, change = self._core.transactions[message.txn], message.change
        assert isinstance(change, KeyChange), "the simulation's own"
        assert isinstance(reply.value, ChangedByKey), "nothing else is answered"
        if not reply.value.affected or not self._core.settings.locks or txn.id in self._losers:
            return
        shard = ShardId(change.table.shard)
        rows = self._core.locks.rows
        mine = [tag for tag, held in self._held() if held.session == txn.owner]
        held_rows = {rows.place(tag) for tag in mine if isinstance(tag, RowTag)}
        for base, _ in change.touched:
            name = _name_now(self._core.shards[shard], base)
            has = base[0] == OWN or (name is not None and (shard, name) in held_rows)
            self._expect(has, "R1", f"p{txn.owner} has changed {base} without its lock")

    def _is_beyond(self, asked: LockRows) -> bool:
        """Whether implicit locks are not announced any more."""
        txn = self._core.transactions[asked.txn]
        count = len(asked.rows.sources)
        return txn.rows_locked + count > self._core.settings.row_locks_max

    def _check_names(self) -> None:
        """K1: one row under two names. H1, H2 of `held_rows.py`."""
        seen: dict[tuple[ShardId, RowIdentity], RowTag] = {}
        for queue in self._core.locks.queues():
            tag = queue.tag
            held = [one for one in queue.held if one.session != GROUP]
            if not isinstance(tag, RowTag) or not held:
                continue
            known = all(one.single for one in held)
            known = known or self._core.locks.rows.place(tag) is not None
            self._expect(known, "H1", f"{tag} is nowhere")
            sessions = [one.session for one in held if (one.session, tag) in self._rows]
            for name in {self._name(session, tag) for session in (*sessions, GROUP)}:
                if name is None:
                    continue
                renamed = tag.by_identity and tag.key != name[1]
                self._expect(not renamed, "H2", f"{tag} is called {name} now")
                other = seen.setdefault(name, tag)
                if other != tag:
                    self._check_two_names(name[1], tag, other)

    def _check_two_names(self, row: RowIdentity, tag: RowTag, other: RowTag) -> None:
        held = [(known, one) for known, one in self._held() if known in (tag, other)]
        for one_tag, one in held:
            for two_tag, two in held:
                apart = one_tag != two_tag and _are_apart(one, two) and one.session != GROUP
                why = f"{row} is held as {one_tag} by {one} and as {two_tag} by {two}"
                self._expect(not apart, "K1", why)

    # --- commits -----------------------------------------------------------------------------

    def _check_commit(self) -> None:
        """K2, when a group is launched."""
        group = self._core.groups.in_flight
        assert group is not None, "G1: a group that is launched is in flight"
        for member in group.members:
            self._check_member(member, "K2")
            self._check_overtaking(member)

    def _check_overtaking(self, member: GroupMember) -> None:
        """K5, when a group is launched; one that was passed over goes first."""
        if isinstance(member, PendingCommit) and not member.single:
            return
        if isinstance(member, PendingBatch) or member.request in self._overtaking:
            return
        session = member.owner
        wanted = [*_tables(member), *self._changed_rows(member)]
        for queue in self._core.locks.queues():
            if any(one.session == session for one in queue.held):
                continue
            for tag, mode in wanted:
                mine = HeldLock(session, None, mode, 0, single=True)
                late = [w for w in queue.waiting if tag == queue.tag and _are_apart(w, mine)]
                self._expect(not late, "K5", f"{member.request} of p{session} overtakes {late}")

    def _check_group(self) -> None:
        """K1, while it is in flight; also if its timestamp was passed, and it is launched again."""
        groups = self._core.groups
        members = () if groups.in_flight is None else groups.in_flight.members
        passed = [member for member in groups._queue if member.request in groups._again]
        for member in (*members, *passed, *self._in_lanes()):
            self._check_member(member, "K1")

    def _check_member(self, member: GroupMember, rule: str) -> None:
        if not len(self._core.locks) or isinstance(member, PendingBatch):
            return
        if isinstance(member, PendingCommit) and member.txn.id in self._losers:
            return
        session = member.owner
        single = not isinstance(member, PendingCommit) or member.single
        for tag, mode in (*_tables(member), *self._changed_rows(member)):
            mine = HeldLock(session, None, mode, 0, single=single)
            for other_tag, held in self._held():
                counts = held.session != GROUP and held.txn not in self._losers
                if other_tag == tag and counts and self._protects(held, tag):
                    why = f"{member.request} of p{session} changes {tag}, which {held} holds"
                    self._expect(not _are_apart(held, mine), rule, why)

    def _protects(self, held: HeldLock, tag: LockTag) -> bool:
        """Whether a holder was told so, and the row is as it has seen it: if not, its statement
        begins again.
        """
        if not _has_key(tag) or held.single:
            return True
        place = self._rows.get((held.session, tag))
        if place is None or held.mode is LockMode.ROW_KEY_SHARE:
            return place is not None
        return _name_now(self._core.shards[place[0]], place[1]) in _live(
            self._core.shards[place[0]]
        )

    def _changed_rows(self, member: GroupMember) -> Iterator[tuple[LockTag, LockMode]]:
        """The rows that it deletes or replaces and that somebody holds."""
        if isinstance(member, PendingChange) and isinstance(member.change, KeyChange):
            yield from self._changed_by_key(member.change)
        if not isinstance(member, PendingCommit):
            return
        for shard, own in member.txn.writes.items():
            state = self._core.shards.get(shard)
            if state is None:
                continue
            deletes = state.surviving(deletes_of_others(own.merged()))
            keeps = shard not in member.txn.changed_keys
            mode = LockMode.ROW_NO_KEY_UPDATE if keeps else LockMode.ROW_UPDATE
            for tag, held in self._held():
                name = self._name(held.session, tag) if isinstance(tag, RowTag) else None
                if name is None or name[0] != shard or name[1][0] not in deletes:
                    continue
                if name[1][1] in deletes[name[1][0]]:
                    yield tag, mode

    def _changed_by_key(self, change: KeyChange) -> Iterator[tuple[LockTag, LockMode]]:
        shard = ShardId(change.table.shard)
        state = self._core.shards[shard]
        for base, mode in change.touched:
            now = _name_now(state, base)
            for tag, held in self._held():
                name = self._name(held.session, tag) if isinstance(tag, RowTag) else None
                if name == (shard, now):
                    yield tag, mode

    # --- timestamps ------------------------------------------------------------------

    def _check_timestamps(self) -> None:
        """F1."""
        for txn in self._core.transactions.values():
            if txn.snapshot is None or txn.isolation is Isolation.READ_COMMITTED:
                continue
            sinces = {ts for _, ts in (*txn.key_look_ups, *txn.required, *txn.locked)}
            sinces |= set(txn.altered.values()) | {read[0][1] for read in txn._undoable or ()}
            why = f"{txn.id} of p{txn.owner} reads at {txn.snapshot.ts}, and looked at {sinces}"
            self._expect(sinces <= {txn.snapshot.ts}, "F1", why)


Holder = HeldLock | LockRequest


def _are_apart(one: Holder, other: Holder) -> bool:
    """Whether two sessions must not hold these at once."""
    if one.session == other.session or not int(one.mode) & _AGAINST[int(other.mode)]:
        return False
    # Single statements that change a row are one holder: validation decides between them.
    return not (one.single and other.single and one.mode & ROW_MODES)


_AGAINST = {int(mode): int(others) for mode, others in MODE_CONFLICTS.items()}


def _blockers(line: object) -> Callable[[ConnectionId], Iterator[ConnectionId]]:
    """Whom a session waits for in a line: holders, and those ahead of it."""
    assert isinstance(line, LockQueue), "lines are those of lock tables"

    def found(session: ConnectionId) -> Iterator[ConnectionId]:
        at = next((at for at, w in enumerate(line.waiting) if w.session == session), None)
        if at is None:
            return iter(())
        waiter = line.waiting[at]
        ahead = () if waiter.mode is LockMode.ROW_KEY_SHARE else line.waiting[:at]
        return (one.session for one in (*line.held, *ahead) if _are_apart(one, waiter))

    return found


def _tables(member: GroupMember) -> Iterator[tuple[LockTag, LockMode]]:
    """The tables that a member changes."""
    changes = member.txn.changes if isinstance(member, PendingCommit) else ()
    for oid, mode in changed_tables(changes).items():
        yield TableTag(oid), mode
    for oid in member.tables():
        yield TableTag(oid), LockMode.ROW_EXCLUSIVE


def _has_key(tag: LockTag) -> TypeGuard[RowTag]:
    """Whether it is a row that is known by its primary key."""
    return isinstance(tag, RowTag) and not tag.by_identity


def _identities(asked: LockRows) -> Iterator[tuple[RowTag, RowIdentity]]:
    rows = asked.rows
    return zip(rows.tags(), zip(rows.sources, rows.indexes, strict=True), strict=True)


def _name_now(state: ShardState, identity: RowIdentity) -> RowIdentity | None:
    """What a row is called now; None: its file is gone."""
    found: Deletes = state.surviving({identity[0]: BitMap64([identity[1]])})
    return next(((source, index) for source, rows in found.items() for index in rows), None)


def _live(state: ShardState) -> set[tuple[Source, int]]:
    """All rows that are there now."""
    view = state.view(max(state.last_write, state.cut or Timestamp(0)))
    live: set[tuple[Source, int]] = set()
    for part in view.files:
        rows = BitMap64(range(part.row_limit)) - part.deleted
        live.update((part.file.name, index) for index in rows)
    for inline in view.inline:
        rows = BitMap64(range(inline.rows.num_rows)) - inline.deleted
        live.update((inline.source, index) for index in rows)
    return live
