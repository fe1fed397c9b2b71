"""A model of lock tables: who holds what and who waits, checked by brute force after each step.

    operation ─▶ LockTables and their WaitGraph ─▶ what they answer
              └▶ the model: what must they answer?  ─▶ compare, then look at K1, K3, K4, T2

The model has its own table of conflicts (that of PostgreSQL's manual), its own lists of holders,
one entry for each time that a lock was taken, and its own lines. Only where a circle runs through a
place in a line does it ask the table who has moved; then nobody may be refused whom another order
of the lines would have helped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

from coordinator.core.locking.lock_table import GROUP, LockRequest, LockTable, LockVerdict
from coordinator.core.locking.modes import LockMode, LockTag, LockWait
from coordinator.core.locking.wait_graph import WaitGraph
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId

GROUP_TXN = TransactionId(0)

_M = LockMode
TABLE_MODES = (
    _M.ACCESS_SHARE, _M.ROW_SHARE, _M.ROW_EXCLUSIVE, _M.SHARE_UPDATE_EXCLUSIVE, _M.SHARE,
    _M.SHARE_ROW_EXCLUSIVE, _M.EXCLUSIVE, _M.ACCESS_EXCLUSIVE,
)  # fmt: skip
ROW_MODES = (_M.ROW_KEY_SHARE, _M.ROW_SHARED, _M.ROW_NO_KEY_UPDATE, _M.ROW_UPDATE)
ADVISORY_MODES = (_M.ADVISORY_SHARED, _M.ADVISORY_EXCLUSIVE)

# PostgreSQL's manual, 13.2 and 13.3: rows are what is wanted, columns what is held.
_TABLES = """
. . . . . . . X
. . . . . . X X
. . . . X X X X
. . . X X X X X
. . X X . X X X
. . X X X X X X
. X X X X X X X
X X X X X X X X
"""
_ROWS = """
. . . X
. . X X
. X X X
X X X X
"""
_ADVISORY = """
. X
X X
"""


def _pairs(modes: Sequence[LockMode], drawn: str) -> Iterator[tuple[LockMode, LockMode]]:
    for wanted, line in zip(modes, drawn.split("\n")[1:-1], strict=True):
        for held, sign in zip(modes, line.split(), strict=True):
            if sign == "X":
                yield wanted, held


CONFLICTS = frozenset(
    pair
    for modes, drawn in ((TABLE_MODES, _TABLES), (ROW_MODES, _ROWS), (ADVISORY_MODES, _ADVISORY))
    for pair in _pairs(modes, drawn)
)


@dataclass(slots=True)
class Taken:
    """A session took a lock, once."""

    session: ConnectionId
    txn: TransactionId | None
    mode: LockMode
    savepoint: int
    single: bool = False


def conflict(one: Taken | LockRequest, other: Taken | LockRequest) -> bool:
    """Whether two sessions must not hold these together; single statements share rows (K1)."""
    both_single = one.single and other.single and one.mode in ROW_MODES
    return (one.mode, other.mode) in CONFLICTS and not both_single


Edges = Mapping[ConnectionId, frozenset[ConnectionId]]
Lines = Mapping[LockTag, Sequence[LockRequest]]


@dataclass
class Model:
    """Lock tables under test, each with its tags, and what they must be."""

    tags: Mapping[LockTag, LockTable]
    graph: WaitGraph
    taken: dict[LockTag, list[Taken]] = field(default_factory=dict)
    lines: dict[LockTag, list[LockRequest]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    """What has happened at least once."""

    def __post_init__(self) -> None:
        self.taken = {tag: [] for tag in self.tags}
        self.lines = {tag: [] for tag in self.tags}

    def waiting(self, session: ConnectionId) -> LockRequest | None:
        """What a session waits for."""
        return next((w for line in self.lines.values() for w in line if w.session == session), None)

    # --- operations ---------------------------------------------------------------------------

    def acquire(self, wanted: LockRequest, wait: LockWait) -> None:
        """A session asks for a lock."""
        line = self.lines[wanted.tag]
        place = self._entry_place(wanted)
        fits = self._fits(wanted, line[:place])
        answer = self.tags[wanted.tag].acquire(wanted, wait)
        self.seen.add(answer.verdict.value)
        if fits:
            assert answer.verdict is LockVerdict.GRANTED, f"K3: {wanted} fits"
            self._take(wanted)
        elif wait is LockWait.NO:
            assert answer.verdict is LockVerdict.NOT_AVAILABLE, f"K1, K5: {wanted} does not fit"
        else:
            line.insert(place, wanted)
            self._after_wait(wanted, answer.verdict, answer.served)
            self.check()
            return
        assert not answer.served
        self.check()

    def _after_wait(
        self, wanted: LockRequest, verdict: LockVerdict, served: Sequence[LockRequest]
    ) -> None:
        edges = self.edges(self.lines)
        if circle_of(edges) is None:
            assert verdict is LockVerdict.WAITS, f"{wanted} closes no circle"
            assert not served
            return
        if verdict is LockVerdict.DEADLOCK:
            assert not self._resolvable(wanted), f"{wanted} was refused for a place in a line"
            self.lines[wanted.tag].remove(wanted)
        elif verdict is LockVerdict.GRANTED:
            self._granted([wanted])
        if verdict is not LockVerdict.DEADLOCK or served:
            self.seen.add("dissolved")
            self._granted(served)
            self._take_over_order()

    def _take_over_order(self) -> None:
        """Waiters were moved: the same ones stand in each line, in the order of the table."""
        for tag, line in self.lines.items():
            found = self.line_of(tag)
            assert sorted(w.session for w in found) == sorted(w.session for w in line)
            self.lines[tag] = found

    def cancel(self, session: ConnectionId) -> None:
        """A session gives up its wait, if it waits."""
        wanted = self.waiting(session)
        if wanted is None:
            return
        self.lines[wanted.tag].remove(wanted)
        served = self.tags[wanted.tag].cancel(session, wanted.request)
        assert served is not None, "it waits"
        self._expect(served, [wanted.tag])

    def unlock(self, session: ConnectionId, tag: LockTag, mode: LockMode) -> None:
        """Give back a lock of the session."""
        own = [
            at
            for at, t in enumerate(self.taken[tag])
            if (t.session, t.txn, t.mode) == (session, None, mode)
        ]
        answer = self.tags[tag].unlock(session, tag, mode)
        assert answer.held == bool(own), "T1"
        if own:
            del self.taken[tag][own[0]]
        self._expect(answer.served, [tag])

    def release(
        self,
        call: Callable[[LockTable], list[LockRequest]],
        is_over: Callable[[Taken], bool],
    ) -> None:
        """A call that gives back locks in each table: those which the model says."""
        for table in dict.fromkeys(self.tags.values()):
            tags = [tag for tag, owner in self.tags.items() if owner is table]
            for tag in tags:
                self.taken[tag] = [t for t in self.taken[tag] if not is_over(t)]
            self._expect(call(table), tags)

    def release_savepoint(
        self, session: ConnectionId, txn: TransactionId, number: int, outer: int
    ) -> None:
        """RELEASE: what was taken since belongs to the savepoint outside; no table is told (T1)."""
        for taken in self.taken.values():
            for one in taken:
                if one.session == session and one.txn == txn and one.savepoint >= number:
                    one.savepoint = outer

    def hold_for_group(self, tag: LockTag, mode: LockMode) -> None:
        """The group in flight holds a tag, if nobody holds it against its members."""
        wanted = LockRequest(RequestId(0), GROUP, GROUP_TXN, tag, mode)
        if not self._holders_against(wanted):
            self.tags[tag].hold_for_group(tag, mode)
            self._take(wanted)
            self.seen.add("group holds")
            self.check()

    def ask_for_single(self, session: ConnectionId, tag: LockTag, mode: LockMode) -> None:
        """Whether a single statement of the session may be gathered now."""
        wanted = LockRequest(RequestId(0), session, None, tag, mode, single=True)
        own = any(taken.session == session for taken in self.taken[tag])
        is_against = bool(self._holders_against(wanted) - {GROUP}) or (
            not own and any(conflict(wanted, waiter) for waiter in self.lines[tag])
        )
        assert self.tags[tag].is_against(session, tag, mode) == is_against, "K2"

    # --- what must be ------------------------------------------------------------------------

    def _take(self, wanted: LockRequest) -> None:
        self.taken[wanted.tag].append(
            Taken(wanted.session, wanted.txn, wanted.mode, wanted.savepoint, wanted.single)
        )

    def _granted(self, requests: Sequence[LockRequest]) -> None:
        for request in requests:
            self.lines[request.tag].remove(request)
            self._take(request)

    def _expect(self, served: Sequence[LockRequest], tags: Sequence[LockTag]) -> None:
        """Each line is served in its order, in this step (K3, K5)."""
        expected: list[LockRequest] = []
        for tag in tags:
            still: list[LockRequest] = []
            for waiter in self.lines[tag]:
                if self._fits(waiter, still):
                    self._take(waiter)
                    expected.append(waiter)
                else:
                    still.append(waiter)
            self.lines[tag] = still
        key = [(request.session, request.request) for request in expected]
        assert sorted((r.session, r.request) for r in served) == sorted(key), "K3, K5"
        if len(expected) > 1:
            self.seen.add("several served")
        self.check()

    def _holders_against(self, wanted: LockRequest) -> frozenset[ConnectionId]:
        return frozenset(
            taken.session
            for taken in self.taken[wanted.tag]
            if taken.session != wanted.session and conflict(wanted, taken)
        )

    @staticmethod
    def _waiters_against(
        wanted: LockRequest, ahead: Sequence[LockRequest]
    ) -> frozenset[ConnectionId]:
        if wanted.mode is LockMode.ROW_KEY_SHARE:
            return frozenset()
        return frozenset(waiter.session for waiter in ahead if conflict(wanted, waiter))

    def _fits(self, wanted: LockRequest, ahead: Sequence[LockRequest]) -> bool:
        return not self._holders_against(wanted) and not self._waiters_against(wanted, ahead)

    def _entry_place(self, wanted: LockRequest) -> int:
        own = [t.mode for t in self.taken[wanted.tag] if t.session == wanted.session]
        for place, waiter in enumerate(self.lines[wanted.tag]):
            blocks = any((waiter.mode, mode) in CONFLICTS for mode in own)
            if blocks or waiter.ticket > wanted.ticket:
                return place
        return len(self.lines[wanted.tag])

    def edges(self, lines: Lines) -> Edges:
        """Who waits for whom."""
        return {
            waiter.session: self._holders_against(waiter)
            | self._waiters_against(waiter, line[:place])
            for line in lines.values()
            for place, waiter in enumerate(line)
        }

    def _resolvable(self, wanted: LockRequest) -> bool:
        """Whether some order of the lines that the request's table has is free of circles."""
        table = self.tags[wanted.tag]
        own = [tag for tag, owner in self.tags.items() if owner is table and self.lines[tag]]
        orders = product(*(permutations(self.lines[tag]) for tag in own))
        return any(
            circle_of(self.edges({**self.lines, **dict(zip(own, order, strict=True))})) is None
            for order in orders
        )

    # --- comparison --------------------------------------------------------------------------

    def line_of(self, tag: LockTag) -> list[LockRequest]:
        """As the table has it."""
        return [w for queue in self.tags[tag].queues() if queue.tag == tag for w in queue.waiting]

    def check(self) -> None:
        """All invariants, and that tables and model agree."""
        for table in dict.fromkeys(self.tags.values()):
            wanted = {t for t, owner in self.tags.items() if owner is table and self._is_used(t)}
            assert {queue.tag for queue in table.queues()} == wanted, "T2"
        for tag in self.tags:
            self._check_tag(tag)
        waits = {w.session: w.mode for line in self.lines.values() for w in line}
        assert {s: wait.mode for s, wait in self.graph.waits.items()} == waits, "G1"
        edges = self.edges(self.lines)
        assert circle_of(edges) is None, "K4"
        for session, blockers in edges.items():
            assert set(self.graph.blockers(session)) == blockers, "edges"

    def _check_tag(self, tag: LockTag) -> None:
        held = {(t.session, t.txn, t.mode) for t in self.taken[tag]}
        found = [(h, q) for q in self.tags[tag].queues() if q.tag == tag for h in q.held]
        assert {(h.session, h.txn, h.mode) for h, _ in found} == held, "T1"
        own = [t for t in self.taken[tag] if t.txn is None]
        assert sum(h.count for h, _ in found if h.txn is None) == len(own), "T1"
        for one in self.taken[tag]:
            for other in self.taken[tag]:
                assert one.session == other.session or not conflict(one, other), "K1"
        assert self.line_of(tag) == self.lines[tag], "K5"
        for place, waiter in enumerate(self.lines[tag]):
            assert not self._fits(waiter, self.lines[tag][:place]), "K3"

    def _is_used(self, tag: LockTag) -> bool:
        return bool(self.taken[tag] or self.lines[tag])


def circle_of(edges: Edges) -> frozenset[ConnectionId] | None:
    """Those who wait for themselves, by taking away again and again who waits for no waiter."""
    left = dict(edges)
    while left:
        free = [session for session, blockers in left.items() if not blockers & left.keys()]
        if not free:
            return frozenset(left)
        for session in free:
            del left[session]
    return None
