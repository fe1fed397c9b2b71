"""The lock table and the wait graph by themselves: random operations against a model of them.

Five sessions take, convert, give back and give up locks of four tags in all modes, with savepoints,
by transaction and by session, with and without waiting, in one timeline and in two that share a
graph. `lock_model.py` says what must be true after each operation. Bugs are planted, and found.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from coordinator.core.locking import lock_table, modes
from coordinator.core.locking.lock_table import (
    GROUP,
    LockQueue,
    LockRequest,
    LockTable,
    LockVerdict,
)
from coordinator.core.locking.modes import (
    AdvisoryTag,
    LockMode,
    LockTag,
    LockWait,
    RowTag,
    TableTag,
)
from coordinator.core.locking.wait_graph import WaitGraph
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from tests.unit.core.lock_model import (
    ADVISORY_MODES,
    CONFLICTS,
    ROW_MODES,
    TABLE_MODES,
    Model,
    circle_of,
)

SESSIONS = tuple(map(ConnectionId, range(1, 6)))
TAGS: Mapping[LockTag, Sequence[LockMode]] = {
    TableTag(7): TABLE_MODES,
    RowTag(7, (1,)): ROW_MODES,
    RowTag(7, (2,)): ROW_MODES,
    AdvisoryTag.of_bigint(1): ADVISORY_MODES,
}
SEEDS = range(100)
STEPS = 80


@dataclass
class Block:
    """The open transaction of a session."""

    txn: TransactionId
    savepoints: list[int] = field(default_factory=list)
    single: bool = False
    """It is one statement."""
    ticket: int = 0
    """Of its last request; kept if the statement begins again."""


class Sessions:
    """Random operations on a model, by seed."""

    def __init__(self, seed: int, *, timelines: int) -> None:
        self._random = random.Random(seed)
        graph = WaitGraph()
        tables = [LockTable(graph) for _ in range(timelines)]
        self.model = Model({tag: tables[at % timelines] for at, tag in enumerate(TAGS)}, graph)
        self._numbers = iter(range(1, 1_000_000))
        self._blocks = {session: self._block() for session in SESSIONS}

    def _block(self) -> Block:
        return Block(TransactionId(next(self._numbers)), single=self._random.random() < 0.25)

    def run(self, steps: int) -> None:
        """So many operations, then all sessions end: nobody and nothing is left."""
        for _ in range(steps):
            self._step()
        self._land(SESSIONS[0])
        for session in SESSIONS:
            self._disconnect(session)
        assert not any(self.model.lines.values())
        assert not any(map(len, self.model.tags.values())), "T2"
        assert not any(table._by_session for table in self.model.tags.values()), "T2"

    def _step(self) -> None:
        session = self._random.choice(SESSIONS)
        if self.model.waiting(session) is not None:
            if self._random.random() < 0.3:
                self.model.cancel(session)
            elif self._random.random() < 0.1:
                self._disconnect(session)
            return
        operations = (self._acquire, self._unlock, self._savepoint, self._rollback_to,
                      self._release, self._end, self._disconnect, self._launch, self._land,
                      self._ask)  # fmt: skip
        weights = (60, 10, 14, 8, 8, 5, 1, 5, 4, 5)
        (operation,) = self._random.choices(operations, weights)
        operation(session)

    def _acquire(self, session: ConnectionId) -> None:
        block = self._blocks[session]
        tag = self._random.choice(list(TAGS))
        mode = self._random.choice(TAGS[tag])
        again = block.ticket and self._random.random() < 0.2
        block.ticket = block.ticket if again else self.model.graph.ticket()
        by_session = self._random.random() < 0.3
        wanted = LockRequest(
            RequestId(next(self._numbers)),
            session,
            None if by_session else block.txn,
            tag,
            mode,
            max(block.savepoints, default=0),
            block.ticket,
            block.single and not by_session,
        )
        wait = LockWait.NO if self._random.random() < 0.15 else LockWait.UNTIL_GRANTED
        self.model.acquire(wanted, wait)

    def _unlock(self, session: ConnectionId) -> None:
        tag = self._random.choice(list(TAGS))
        self.model.unlock(session, tag, self._random.choice(TAGS[tag]))

    def _savepoint(self, session: ConnectionId) -> None:
        block = self._blocks[session]
        if block.single:
            return
        block.savepoints.append(next(self._numbers))

    def _rollback_to(self, session: ConnectionId) -> None:
        block = self._blocks[session]
        number = self._random.choice(block.savepoints or [0])
        block.savepoints = [one for one in block.savepoints if one <= number]
        self.model.release(
            lambda table: table.rollback_to(session, block.txn, number),
            lambda t: (t.session, t.txn) == (session, block.txn) and t.savepoint >= number,
        )

    def _release(self, session: ConnectionId) -> None:
        block = self._blocks[session]
        if block.savepoints:
            number = self._random.choice(block.savepoints)
            block.savepoints = [one for one in block.savepoints if one < number]
            outer = max(block.savepoints, default=0)
            self.model.release_savepoint(session, block.txn, number, outer)

    def _launch(self, _: ConnectionId) -> None:
        tag = self._random.choice([tag for tag in TAGS if not isinstance(tag, AdvisoryTag)])
        if all(taken.session != GROUP for taken in self.model.taken[tag]):
            self.model.hold_for_group(tag, self._random.choice(TAGS[tag]))

    def _land(self, _: ConnectionId) -> None:
        self.model.release(LockTable.group_landed, lambda taken: taken.session == GROUP)

    def _ask(self, session: ConnectionId) -> None:
        tag = self._random.choice(list(TAGS))
        self.model.ask_for_single(session, tag, self._random.choice(TAGS[tag]))

    def _end(self, session: ConnectionId) -> None:
        txn = self._blocks[session].txn
        self._blocks[session] = self._block()
        self.model.release(
            lambda table: table.release_transaction(session, txn),
            lambda taken: (taken.session, taken.txn) == (session, txn),
        )

    def _disconnect(self, session: ConnectionId) -> None:
        self.model.cancel(session)
        self._end(session)
        self.model.release(
            lambda table: table.release_session(session),
            lambda taken: (taken.session, taken.txn) == (session, None),
        )


def run_all(seeds: Sequence[int] = SEEDS) -> set[str]:
    """All seeds; what has happened in some of them."""
    seen: set[str] = set()
    for timelines in (1, 2):
        for seed in seeds:
            sessions = Sessions(seed, timelines=timelines)
            try:
                sessions.run(STEPS)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {timelines} timelines: {error}") from error
            seen |= sessions.model.seen
    return seen


def test_random_sessions() -> None:
    seen = run_all()
    verdicts = {verdict.value for verdict in LockVerdict}
    assert seen == {*verdicts, "dissolved", "several served", "group holds"}


def test_modes_conflict_as_in_the_manual() -> None:
    found = {
        (wanted, held)
        for wanted, conflicts in modes.MODE_CONFLICTS.items()
        for held in LockMode
        if held & conflicts
    }
    assert found == CONFLICTS


def test_circles_are_found() -> None:
    a, b, c, d = SESSIONS[:4]
    line = {a: frozenset({b}), b: frozenset({c}), d: frozenset({a})}
    assert circle_of(line) is None
    assert circle_of({**line, c: frozenset({a})}) == {a, b, c, d}


# --- planted bugs ---------------------------------------------------------------------------------

SERVE, FITS, FIND = LockQueue.serve, LockQueue.fits, WaitGraph.find_circle
HOLD = LockQueue.hold


def _serve_one(self: LockQueue) -> list[LockRequest]:
    """Waiters that fit each other are woken one by one."""
    for at, waiter in enumerate(self.waiting):
        if self.fits(waiter, ()):
            self.hold(self.waiting.pop(at))
            return [waiter]
    return []


def _only_hard_edges(self: WaitGraph, start: ConnectionId, *, hard_only: bool) -> Any:
    return FIND(self, start, hard_only=True)


def _not_on_upgrade(self: WaitGraph, start: ConnectionId, *, hard_only: bool) -> Any:
    line = self.waits[start].line if start in self.waits else None
    upgrade = isinstance(line, LockQueue) and line.modes_of(start)
    return None if upgrade else FIND(self, start, hard_only=hard_only)


def _every_circle_is_hard(self: WaitGraph, start: ConnectionId, *, hard_only: bool) -> Any:
    return FIND(self, start, hard_only=False)


def _overtake(self: LockQueue, wanted: LockRequest, ahead: Sequence[LockRequest]) -> bool:
    return FITS(self, wanted, ())


def _key_share_waits(self: LockQueue, wanted: LockRequest, ahead: Sequence[LockRequest]) -> bool:
    delayed = any(waiter.mode & modes.MODE_CONFLICTS[wanted.mode] for waiter in ahead)
    return FITS(self, wanted, ahead) and not delayed


def _at_the_end(self: LockQueue, wanted: LockRequest) -> int:
    return len(self.waiting)


def _beyond_savepoint(
    self: LockTable, session: ConnectionId, txn: TransactionId, savepoint: int
) -> list[LockRequest]:
    return self._release(session, lambda held: held.txn == txn and held.savepoint > savepoint)


def _held_anew(self: LockQueue, wanted: LockRequest) -> None:
    HOLD(self, wanted)
    for held in self.held:
        if (held.session, held.txn, held.mode) == (wanted.session, wanted.txn, wanted.mode):
            held.savepoint = wanted.savepoint


def _leave_unserved(self: LockTable, queue: LockQueue, wanted: LockRequest) -> list[LockRequest]:
    queue.waiting = [waiter for waiter in queue.waiting if waiter is not wanted]
    self.graph.end(wanted.session)
    self._forget_empty(queue)
    return []


PLANTED: Mapping[str, tuple[Any, str, Callable[..., Any]]] = {
    "a release serves nobody": (LockQueue, "serve", lambda _: []),
    "a release serves one": (LockQueue, "serve", _serve_one),
    "only circles of holders are looked for": (WaitGraph, "find_circle", _only_hard_edges),
    "an upgrade looks for no circle": (WaitGraph, "find_circle", _not_on_upgrade),
    "a place in a line makes a deadlock": (WaitGraph, "find_circle", _every_circle_is_hard),
    "newcomers overtake": (LockQueue, "fits", _overtake),
    "for key share waits in line": (LockQueue, "fits", _key_share_waits),
    "holders wait behind their waiters": (LockQueue, "entry_place", _at_the_end),
    "rollback to keeps locks": (LockTable, "rollback_to", _beyond_savepoint),
    "what is taken again goes with the newer savepoint": (LockQueue, "hold", _held_anew),
    "who gives up serves nobody": (LockTable, "_leave", _leave_unserved),
    "single statements wait for each other": (lock_table, "_are_one", lambda *_: False),
    "a landed group holds on": (LockTable, "group_landed", lambda _: []),
    "empty queues stay": (LockTable, "_forget_empty", lambda *_: None),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[bug])
    with pytest.raises((AssertionError, LookupError)):
        run_all()


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        (LockMode.SHARE, LockMode.SHARE),
        (LockMode.EXCLUSIVE, LockMode.ROW_SHARE),
        (LockMode.ROW_NO_KEY_UPDATE, LockMode.ROW_KEY_SHARE),
        (LockMode.ADVISORY_EXCLUSIVE, LockMode.ADVISORY_SHARED),
    ],
)
def test_a_wrong_conflict_is_found(
    wanted: LockMode, held: LockMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: Any = modes.MODE_CONFLICTS
    monkeypatch.setitem(entries, wanted, entries[wanted] ^ held)
    with pytest.raises(AssertionError):
        run_all()
