"""Several sessions on one server: each statement answers, or is seen waiting.

    send ─▶ answers arrive ─▶ pg_blocking_pids() of all that have not answered ─▶ the step is over

INVARIANTS
  S1  a step is over when every session has answered or is seen waiting for another one. Then nobody
      can be running: no circle of waiters is open, the locks of sessions that have hung up are
      gone, and PostgreSQL has said of each wait that its search for deadlocks is over
      (`log_lock_waits`, which `client_min_messages = log` sends to the client).
  S2  nothing depends on how long anything takes. A limit of time ends what hangs, loudly.

Not here: what is compared (`stories.py`, `lockstep.py`).
"""

import re
import select
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from psycopg.pq import TransactionStatus

from tests.postgres.locking.connection import ANSWER_SECONDS_MAX, POLL_SECONDS, Connection

POSTGRES_SETTINGS: Final = (
    "fsync=off",
    "autovacuum=off",
    "deadlock_timeout=10ms",
    "log_lock_waits=on",
    "client_min_messages=log",
    "client_connection_check_interval=10ms",
)
"""Autovacuum takes locks, too; a session that waits looks whether its client is still there."""


class Action(Enum):
    """What a session does; the text is how scripts write it."""

    SAY = ":"
    SAY_AND_STAY = "!:"
    """The statement waits for time to pass: that it is seen waiting is not the end of the step."""
    SAY_AND_BE_LOST = "!!:"
    """After the statement the server ends the session."""
    CANCEL = " is cancelled"
    HANG_UP = " hangs up"


@dataclass(frozen=True, slots=True)
class Step:
    """A session does something."""

    session: str
    action: Action
    text: str = ""

    def __str__(self) -> str:
        text = f" {self.text}" if self.text else ""
        return f"{self.session}{self.action.value}{text}"


Answers = dict[str, list[str]]


class Sessions:
    """All sessions of one server, by name, and one that looks on.

    `is_postgresql`: with POSTGRES_SETTINGS (S1).
    """

    def __init__(self, dsn: str, *, is_postgresql: bool) -> None:
        self._dsn = dsn
        self._is_postgresql = is_postgresql
        self._names: dict[int, str] = {}
        self._sessions: dict[str, Connection] = {}
        self._gone: list[int] = []
        self._onlooker = Connection(dsn)
        self._first: Sequence[str] = ()
        self.seconds_max = ANSWER_SECONDS_MAX
        """Of a step (S2)."""

    def begin(self, setup: Sequence[str], first: Sequence[str] = ()) -> None:
        """Set the stage; each session says `first` when it begins."""
        self._first = first
        for text in setup:
            self.ask(text)

    def ask(self, text: str) -> list[str]:
        """The answer of a statement of nobody in the play, which cannot wait."""
        answer = self._onlooker.ask(text)
        assert not answer[-1].startswith("E "), f"{text}: {answer}"
        return answer

    def waits(self, name: str) -> bool:
        """Whether a session has not answered yet."""
        return name in self._sessions and self._sessions[name].is_pending

    def status(self, name: str) -> TransactionStatus:
        """Of the session's transaction, when it has answered."""
        session = self._sessions.get(name)
        return TransactionStatus.IDLE if session is None else session.status

    def play(self, step: Step) -> list[str]:
        """Do a step; what it is answered, and who goes on by it."""
        name = step.session
        match step.action:
            case Action.SAY | Action.SAY_AND_STAY:
                self._session(name).send(self._with_pids(step.text))
                answers = self._settle([] if step.action is Action.SAY else [name])
            case Action.SAY_AND_BE_LOST:
                self._session(name).send(self._with_pids(step.text))
                answers = self._settle([name])
                answers |= self._without(name, self._sessions[name].wait_until_lost)
            case Action.CANCEL:
                assert self.waits(name), f"{step}: it does not wait"
                self._sessions[name].cancel()
                answers = self._settle([name])
            case Action.HANG_UP:
                answers = self._without(name, self._session(name).close) | {name: ["gone"]}
        return _told(name, answers)

    def end(self) -> list[str]:
        """All roll back, give up what they hold and leave, in the order of their names; who goes on
        by it. Fails if somebody waits for nobody.
        """
        told: list[str] = []
        ended: set[str] = set()
        while idle := sorted(n for n in self._sessions if n not in ended and not self.waits(n)):
            for text in ("ROLLBACK", "SELECT pg_advisory_unlock_all()"):
                self._sessions[idle[0]].send(text)
                answers = self._settle(idle[:1])
                told += _told(idle[0], answers)[len(answers[idle[0]]) :]
            ended.add(idle[0])
        waiting = sorted(name for name in self._sessions if self.waits(name))
        assert not waiting, f"they wait for nobody: {waiting}"
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self._names.clear()
        return told

    def close(self) -> None:
        """Hang up."""
        for session in (self._onlooker, *self._sessions.values()):
            session.close()

    # --- sessions ------------------------------------------------------------------------------

    def _session(self, name: str) -> Connection:
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Connection(self._dsn, self._names)
            self._names[session.pid] = name
            for text in self._first:
                session.ask(text)
        return session

    def _without(self, name: str, leave: Callable[[], None]) -> Answers:
        session = self._sessions.pop(name)
        leave()
        self._gone.append(session.pid)
        return self._settle([]) | {name: session.answer}

    def _with_pids(self, text: str) -> str:
        """`{b}` is the pid of session b."""
        return re.sub(r"\{(\w)\}", lambda name: str(self._session(name[1]).pid), text)

    # --- waiting -------------------------------------------------------------------------------

    def _settle(self, must: Collection[str]) -> Answers:
        """Wait until the step is over (S1); the answers that have come. `must`: these answer."""
        answers: Answers = {}
        limit = time.monotonic() + self.seconds_max
        before: Mapping[int, frozenset[int]] = {}
        while True:
            answers |= self._received()
            waiting = {name: s for name, s in self._sessions.items() if s.is_pending}
            if not waiting and not self._gone:
                return answers
            blockers = self._blockers(waiting.values())
            is_over = not waiting.keys() & set(must) and self._is_over(waiting.values(), blockers)
            # Meridian shows all sessions at one moment, PostgreSQL one after the other. An answer
            # that has come meanwhile makes both an old picture.
            is_one_moment = not self._is_postgresql or blockers == before
            if is_over and is_one_moment and not _readable(waiting.values(), 0):
                return answers
            before = blockers if is_over else {}
            assert time.monotonic() < limit, f"S2: no end of {sorted(waiting)}: {blockers}"

    def _received(self) -> Answers:
        waiting = {s.socket: name for name, s in self._sessions.items() if s.is_pending}
        readable = _readable([s for s in self._sessions.values() if s.is_pending], POLL_SECONDS)
        names = [waiting[socket] for socket in readable]
        return {
            name: self._sessions[name].answer for name in names if self._sessions[name].receive()
        }

    def _blockers(self, waiting: Collection[Connection]) -> dict[int, frozenset[int]]:
        if not waiting:
            return {}
        calls = ", ".join(f"pg_blocking_pids({session.pid})" for session in waiting)
        values = self._asked_for(f"SELECT {calls}")
        found = [frozenset(map(int, re.findall(r"\d+", value))) for value in values]
        return dict(zip([session.pid for session in waiting], found, strict=True))

    def _asked_for(self, query: str) -> list[str]:
        """The values of its only row."""
        (answer,) = self.ask(query)
        return answer.partition(" = ")[2].split("|")

    def _is_over(
        self, waiting: Collection[Connection], blockers: Mapping[int, frozenset[int]]
    ) -> bool:
        """S1."""
        if self._gone:
            pids = ", ".join(map(str, self._gone))
            if self._asked_for(f"SELECT count(*) FROM pg_locks WHERE pid IN ({pids})") != ["0"]:
                return False
            self._gone.clear()
        if self._is_postgresql and not all(session.is_checked for session in waiting):
            return False
        return all(blockers.values()) and not _has_circle(blockers)


def _readable(sessions: Collection[Connection], seconds: float) -> list[int]:
    if not sessions:
        return []
    return select.select([session.socket for session in sessions], [], [], seconds)[0]


def _has_circle(blockers: Mapping[int, frozenset[int]]) -> bool:
    left = dict(blockers)
    while left:
        free = [pid for pid, others in left.items() if not others & left.keys()]
        if not free:
            return True
        for pid in free:
            del left[pid]
    return False


def _told(name: str, answers: Mapping[str, Sequence[str]]) -> list[str]:
    """What the session is answered comes first, then who goes on by it."""
    told = [*answers.get(name, ["waits"])]
    for other, answer in sorted(answers.items()):
        if other != name:
            told += [f"({other} goes on) {answer[0]}", *answer[1:]]
    return told
