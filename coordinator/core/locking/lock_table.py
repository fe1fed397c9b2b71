"""The lock table of one timeline: for each tag its holders, and a line of sessions that wait.

    request ─┬─ fits the holders and delays nobody ahead ─▶ held
             ├─ NOWAIT, try ─▶ not available
             └─ in line ─▶ a circle of holders? ─▶ deadlock
    release ─▶ the line in order: whoever fits, and delays no waiter before it, is granted

INVARIANTS
  K1, K3, K4, K5 of the package, and
  T1  a lock is held until its transaction ends, or ROLLBACK TO a savepoint before it; or by the
      session until it has unlocked it as often as it took it, or ends. RELEASE changes nothing: no
      number of a savepoint comes again (X4 of `transactions.py`), and one that is still open or is
      to come is before a released one, with all that was locked since, or after it.
  T2  a tag that nobody holds and nobody waits for takes no memory.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from coordinator.core.locking.held_rows import HeldRows
from coordinator.core.locking.modes import (
    MODE_CONFLICTS,
    ROW_MODES,
    AdvisoryTag,
    LockMode,
    LockTag,
    LockWait,
    RowTag,
)
from coordinator.core.locking.wait_graph import Edge, Wait, WaitGraph
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from storage.batch import RowIdentity
from storage.fast_dataclass import fast_dataclass
from storage.shard import ShardState
from storage.types import ShardId

DISSOLVED_MAX: Final = 100
"""Waiters moved ahead to dissolve the circles of one request. Beyond, it counts as a deadlock."""


@fast_dataclass(frozen=True, slots=True)
class LockRequest:
    """A session wants a lock. `txn`: whose end releases it; None: the session's.

    `savepoint`: the innermost when it is asked for. `ticket`: its place in the line, kept from an
    earlier try of the same statement. `single`: a statement that is its whole transaction; those
    are woken together and are one holder (K1).
    """

    request: RequestId
    session: ConnectionId
    txn: TransactionId | None
    tag: LockTag
    mode: LockMode
    savepoint: int = 0
    ticket: int = 0
    single: bool = False


@dataclass(slots=True)
class HeldLock:
    """A session holds a mode of a tag; it was taken `count` times. `shown`: the row as FOR UPDATE
    or its kin has shown it; None: they have not.
    """

    session: ConnectionId
    txn: TransactionId | None
    mode: LockMode
    savepoint: int
    count: int = 1
    single: bool = False
    shown: RowIdentity | None = None


GROUP: Final = ConnectionId(0)
"""Holds what the group in flight changes, as far as somebody has asked for it."""

GROUP_TXN: Final = TransactionId(0)
"""Of the group itself; units of lanes have others, which are negative (N2 of `views`)."""


class LockVerdict(Enum):
    """What becomes of a request at once."""

    GRANTED = "granted"
    WAITS = "waits"
    NOT_AVAILABLE = "not available"
    DEADLOCK = "deadlock"


@fast_dataclass(frozen=True, slots=True)
class Answer:
    """`circle`: PostgreSQL's detail of a deadlock. `served`: others whose wait ended by it."""

    verdict: LockVerdict
    circle: str | None = None
    served: Sequence[LockRequest] = ()


@dataclass(slots=True)
class LockQueue:
    """The holders of a tag, and who waits, in order."""

    tag: LockTag
    held: list[HeldLock] = field(default_factory=list[HeldLock])
    waiting: list[LockRequest] = field(default_factory=list[LockRequest])

    def blocking_holders(self, session: ConnectionId) -> Iterator[ConnectionId]:
        """See Line of `wait_graph.py`."""
        return self.holders_against(self.waiting[self.place(session)])

    def blocking_waiters(self, session: ConnectionId) -> Iterator[ConnectionId]:
        """See Line of `wait_graph.py`; those that `fits` looks at."""
        place = self.place(session)
        waiter = self.waiting[place]
        conflicts = MODE_CONFLICTS[waiter.mode]
        before = () if waiter.mode is LockMode.ROW_KEY_SHARE else self.waiting[:place]
        return (
            ahead.session
            for ahead in before
            if ahead.mode & conflicts and not _are_one(ahead, waiter)
        )

    def holders_against(self, wanted: LockRequest) -> Iterator[ConnectionId]:
        """Other sessions that hold a conflicting mode."""
        conflicts = MODE_CONFLICTS[wanted.mode]
        return (
            held.session
            for held in self.held
            if held.mode & conflicts
            and held.session != wanted.session
            and not _are_one(held, wanted)
        )

    def place(self, session: ConnectionId) -> int:
        """See Line of `wait_graph.py`."""
        return next(at for at, w in enumerate(self.waiting) if w.session == session)

    def modes_of(self, session: ConnectionId) -> LockMode:
        """The modes that a session holds."""
        modes = LockMode(0)
        for held in self.held:
            if held.session == session:
                modes |= held.mode
        return modes

    def fits(self, wanted: LockRequest, ahead: Sequence[LockRequest]) -> bool:
        """Whether it fits the holders, and those who wait ahead of it (K5)."""
        conflicts = MODE_CONFLICTS[wanted.mode]
        if wanted.mode is LockMode.ROW_KEY_SHARE:
            ahead = ()
        if ahead and any(w.mode & conflicts and not _are_one(w, wanted) for w in ahead):
            return False
        return not self.held or next(self.holders_against(wanted), None) is None

    def entry_place(self, wanted: LockRequest) -> int:
        """Where it joins the line: by its ticket, but before the first whom it blocks already."""
        own = self.modes_of(wanted.session)
        for at, waiter in enumerate(self.waiting):
            if own & MODE_CONFLICTS[waiter.mode] or waiter.ticket > wanted.ticket:
                return at
        return len(self.waiting)

    def is_entered_last(self, wanted: LockRequest) -> bool:
        """Whether nobody in the line waits for it: it is the last, its session holds nothing."""
        return self.waiting[-1] is wanted and not self.modes_of(wanted.session)

    def hold(self, wanted: LockRequest) -> None:
        """The request is granted."""
        for held in self.held:
            same = held.session == wanted.session and held.txn == wanted.txn
            if same and held.mode == wanted.mode:
                held.count += 1
                return
        taken = HeldLock(wanted.session, wanted.txn, wanted.mode, wanted.savepoint)
        taken.single = wanted.single
        self.held.append(taken)

    def serve(self) -> list[LockRequest]:
        """Grant whatever fits, in order (K3); those granted leave the line."""
        if not self.waiting:
            return []
        granted: list[LockRequest] = []
        still: list[LockRequest] = []
        for waiter in self.waiting:
            if self.fits(waiter, still):
                self.hold(waiter)
                granted.append(waiter)
            else:
                still.append(waiter)
        self.waiting = still
        return granted


def _are_one(held: HeldLock | LockRequest, wanted: LockRequest) -> bool:
    """Whether both are single statements that change a row: they share its lock, so that one group
    commits them, and validation decides between them (K1).
    """
    return held.single and wanted.single and bool(wanted.mode & ROW_MODES)


class LockTable:
    """See the module; `graph` is shared with the tables of other timelines."""

    def __init__(self, graph: WaitGraph) -> None:
        self.graph = graph
        self.rows = HeldRows()
        self.waits = 0
        """Requests that had to wait, since the start; for metrics."""
        self._queues: dict[LockTag, LockQueue] = {}
        self._by_session: dict[ConnectionId, dict[LockTag, None]] = {}

    def __len__(self) -> int:
        return len(self._queues)

    def queues(self) -> Sequence[LockQueue]:
        """All of them; for observation."""
        return list(self._queues.values())

    def rename_rows(self, state: ShardState) -> None:
        """Rows of a shard are called otherwise: those that are known by their names, too (H2 of
        `held_rows.py`).
        """
        for before, after in self.rows.rename(state).items():
            queue = self._queues.pop(before)
            self._queues[after] = queue
            queue.tag = after
            queue.waiting = [replace(waiter, tag=after) for waiter in queue.waiting]
            for tags in self._by_session.values():
                if before in tags:
                    del tags[before]
                    tags[after] = None

    def holds(self, session: ConnectionId, tag: LockTag) -> LockMode:
        """The modes of a tag that a session holds."""
        queue = self._queues.get(tag)
        return LockMode(0) if queue is None else queue.modes_of(session)

    def acquire(self, wanted: LockRequest, wait: LockWait) -> Answer:
        """Take a lock, or stand in line for it."""
        queue = self._queues.get(wanted.tag)
        if queue is None:
            queue = self._queues[wanted.tag] = LockQueue(wanted.tag)
        place = queue.entry_place(wanted) if queue.waiting else 0
        if queue.fits(wanted, queue.waiting[:place] if place else ()):
            queue.hold(wanted)
            self._by_session.setdefault(wanted.session, {})[wanted.tag] = None
            return Answer(LockVerdict.GRANTED)
        if wait is LockWait.NO:
            return Answer(LockVerdict.NOT_AVAILABLE)
        queue.waiting.insert(place, wanted)
        self.waits += 1
        self.graph.begin(wanted.session, Wait(queue, wanted.mode, wanted.single))
        return self._without_circles(queue, wanted)

    def _without_circles(self, queue: LockQueue, wanted: LockRequest) -> Answer:
        """Look for circles that the request has closed (K4)."""
        if queue.is_entered_last(wanted) and self.graph.is_one_line(queue):
            return Answer(LockVerdict.WAITS)  # nobody waits for it
        served: list[LockRequest] = []
        circle = self.graph.find_circle(wanted.session, hard_only=True)
        # Whoever is moved may close another circle, which need not go through the request.
        starts = [wanted.session]
        for _ in range(DISSOLVED_MAX):
            soft = None if circle else self._circle_through(starts)
            if soft is None:
                break
            edge = next((edge for edge in soft if self._may_move(edge)), None)
            if edge is None:
                circle = soft
                break
            starts = list(dict.fromkeys([*starts, edge.waiter, edge.blocker]))
            served += [request for request in self._move_ahead(edge) if request is not wanted]
        else:
            circle = self._circle_through(starts)
        if circle is None:
            waits = any(waiter is wanted for waiter in queue.waiting)
            return Answer(LockVerdict.WAITS if waits else LockVerdict.GRANTED, None, served)
        told = self.graph.describe(circle)
        served += self._leave(queue, wanted)
        return Answer(LockVerdict.DEADLOCK, told, served)

    def _circle_through(self, starts: Sequence[ConnectionId]) -> Sequence[Edge] | None:
        found = (self.graph.find_circle(start, hard_only=False) for start in starts)
        return next((circle for circle in found if circle is not None), None)

    def _may_move(self, edge: Edge) -> bool:
        """Whether only a place in a line of this timeline is in the way."""
        line = self.graph.waits[edge.waiter].line
        return not edge.hard and self._queues.get(line.tag) is line

    def _move_ahead(self, edge: Edge) -> list[LockRequest]:
        """A waiter goes ahead of the one that is only before it in the line."""
        queue = self.graph.waits[edge.waiter].line
        assert isinstance(queue, LockQueue), "lines are those of lock tables"
        behind = queue.waiting.pop(queue.place(edge.waiter))
        queue.waiting.insert(queue.place(edge.blocker), behind)
        return self._served(queue)

    def is_against(self, session: ConnectionId, tag: LockTag, mode: LockMode) -> bool:
        """Whether a single statement must not take this now: somebody holds it, or waits for it.

        What the group in flight holds does not count: nothing is gathered beside it. Nor does what
        units of lanes hold: nobody else changes their tables meanwhile (N1 of `views/lanes.py`).
        """
        queue = self._queues.get(tag)
        if queue is None:
            return False
        wanted = LockRequest(RequestId(0), session, None, tag, mode, single=True)
        if self.is_held_against(wanted):
            return True
        if queue.modes_of(session):
            return False  # it goes ahead of those who wait
        conflicts = MODE_CONFLICTS[mode]
        return any(w.mode & conflicts and not _are_one(w, wanted) for w in queue.waiting)

    def is_held_against(self, wanted: LockRequest) -> bool:
        """Whether another session holds a conflicting mode (K2); the group in flight is none."""
        queue = self._queues.get(wanted.tag)
        if queue is None:
            return False
        return any(holder != GROUP for holder in queue.holders_against(wanted))

    def is_free(self, session: ConnectionId, tag: LockTag, mode: LockMode) -> bool:
        """Whether a newcomer would be granted a tag at once."""
        queue = self._queues.get(tag)
        if queue is None:
            return True
        wanted = LockRequest(RequestId(0), session, None, tag, mode, ticket=self.graph.newest + 1)
        return queue.fits(wanted, queue.waiting[: queue.entry_place(wanted)])

    def asked_for(
        self, session: ConnectionId, txn: TransactionId, rows: Mapping[RowTag, RowIdentity]
    ) -> None:
        """A statement has shown these rows: they must be as they were when it commits (A9)."""
        for tag, identity in rows.items():
            for held in self._queues[tag].held:
                if held.session == session and held.txn == txn:
                    held.shown = identity

    def shown_rows(
        self, session: ConnectionId, txn: TransactionId
    ) -> Iterator[tuple[ShardId, RowIdentity]]:
        """The rows that a transaction still holds because it asked for them, as it has seen them;
        those that it holds FOR KEY SHARE alone as they are now (A9).
        """
        for tag in self._by_session.get(session, ()):
            place = self.rows.place(tag) if isinstance(tag, RowTag) else None
            if place is None:
                continue
            held = [h for h in self._queues[tag].held if h.session == session and h.txn == txn]
            shown = [h.shown for h in held if h.shown is not None]
            if not shown:
                continue
            key_only = all(h.mode is LockMode.ROW_KEY_SHARE for h in held)
            yield place[0], place[1] if key_only else shown[-1]

    def hold_for_group(self, tag: LockTag, mode: LockMode, txn: TransactionId = GROUP_TXN) -> None:
        """The group in flight, or a unit of a lane, holds a tag that somebody is about to ask for
        (K1).
        """
        queue = self._queues.get(tag)
        if queue is None:
            queue = self._queues[tag] = LockQueue(tag)
        mine = (h for h in queue.held if h.session == GROUP and h.txn == txn)
        if not any(held.mode & mode for held in mine):
            queue.held.append(HeldLock(GROUP, txn, mode, 0, single=False))
            self._by_session.setdefault(GROUP, {})[tag] = None

    def group_landed(self, over: Collection[TransactionId] = (GROUP_TXN,)) -> list[LockRequest]:
        """Nothing is in flight any more of these; those who are served by it."""
        return self._release(GROUP, lambda held: held.txn in over)

    def cancel(self, session: ConnectionId, request: RequestId) -> list[LockRequest] | None:
        """Leave the line; those who are served by it. None: the request does not wait."""
        wait = self.graph.waits.get(session)
        if wait is None or not isinstance(wait.line, LockQueue):
            return None
        found = next((w for w in wait.line.waiting if w.request == request), None)
        return None if found is None else self._leave(wait.line, found)

    def _leave(self, queue: LockQueue, wanted: LockRequest) -> list[LockRequest]:
        queue.waiting = [waiter for waiter in queue.waiting if waiter is not wanted]
        self.graph.end(wanted.session)
        return self._served(queue)

    def unlock(self, session: ConnectionId, tag: LockTag, mode: LockMode) -> "Unlocked":
        """Give back a lock of the session, once."""
        queue = self._queues.get(tag)
        for held in [] if queue is None else queue.held:
            if held.session == session and held.txn is None and held.mode == mode:
                held.count -= 1
                return Unlocked(True, [] if held.count else self._drop(session, [tag], _is_spent))
        return Unlocked(False, ())

    def release_transaction(self, session: ConnectionId, txn: TransactionId) -> list[LockRequest]:
        """A transaction is over, and waits no more; those who are served by it."""
        served = self._give_up(session, txn)
        return served + self._release(session, lambda held: held.txn == txn)

    def _give_up(self, session: ConnectionId, txn: TransactionId | None) -> list[LockRequest]:
        """Leave the line in which a transaction of the session waits here; None: itself."""
        wait = self.graph.waits.get(session)
        if wait is None or not isinstance(wait.line, LockQueue):
            return []
        waiter = wait.line.waiting[wait.line.place(session)]
        is_here = self._queues.get(wait.line.tag) is wait.line
        return self._leave(wait.line, waiter) if is_here and waiter.txn == txn else []

    def release_session(self, session: ConnectionId) -> list[LockRequest]:
        """Give back what the session holds by itself, or waits for (pg_advisory_unlock_all, its
        end).
        """
        served = self._give_up(session, None)
        return served + self._release(session, lambda held: held.txn is None)

    def rollback_to(
        self, session: ConnectionId, txn: TransactionId, savepoint: int
    ) -> list[LockRequest]:
        """Give back what was taken since a savepoint; 0: since the transaction began (T1)."""
        return self._release(session, lambda held: held.txn == txn and held.savepoint >= savepoint)

    def drop_rows_and_tables(
        self, is_kept: Callable[[HeldLock], bool]
    ) -> tuple[list[tuple[LockTag, HeldLock]], list[LockRequest]]:
        """For the simulation alone (K6): rows and tables are lost but for those that are kept; what
        was lost, and those who are served by it.
        """
        queues = [q for q in self._queues.values() if not isinstance(q.tag, AdvisoryTag)]
        lost = [(q.tag, held) for q in queues for held in q.held if not is_kept(held)]
        served: list[LockRequest] = []
        for queue in queues:
            queue.held = [held for held in queue.held if is_kept(held)]
            holders = {held.session for held in queue.held}
            for session in self._by_session.keys() - holders:
                self._by_session[session].pop(queue.tag, None)
                if not self._by_session[session]:
                    del self._by_session[session]
            served += self._served(queue)
        return lost, served

    def _release(
        self, session: ConnectionId, is_over: Callable[[HeldLock], bool]
    ) -> list[LockRequest]:
        tags = self._by_session.get(session)
        return self._drop(session, list(tags), is_over) if tags else []

    def _drop(
        self, session: ConnectionId, tags: Sequence[LockTag], is_over: Callable[[HeldLock], bool]
    ) -> list[LockRequest]:
        """Give back some of what the session holds of these tags, and serve their lines (K3)."""
        served: list[LockRequest] = []
        for tag in tags:
            queue = self._queues[tag]
            kept = [h for h in queue.held if h.session != session or not is_over(h)]
            if len(kept) == len(queue.held):
                continue
            queue.held = kept
            if all(held.session != session for held in kept):
                self._by_session[session].pop(tag, None)
            served += self._served(queue)
        if not self._by_session.get(session, True):
            del self._by_session[session]
        return served

    def _served(self, queue: LockQueue) -> list[LockRequest]:
        """Serve the line of a queue that has changed (K3), and forget it if nobody is left."""
        granted = queue.serve()
        for request in granted:
            self.graph.end(request.session)
            self._by_session.setdefault(request.session, {})[queue.tag] = None
        self._forget_empty(queue)
        return granted

    def _forget_empty(self, queue: LockQueue) -> None:
        """T2."""
        if not queue.held and not queue.waiting:
            self._queues.pop(queue.tag, None)
            if isinstance(queue.tag, RowTag):
                self.rows.forget(queue.tag)


def _is_spent(held: HeldLock) -> bool:
    return held.count == 0


@fast_dataclass(frozen=True, slots=True)
class Unlocked:
    """`held`: whether the session had the lock. `served`: those who have got it."""

    held: bool
    served: Sequence[LockRequest]
