"""What clients of all kinds share: where the server is, how far they are, what was wrong.

    client ── attempt(kind, step) ──▶ done | SQLSTATE ──▶ Crowd ──▶ judges

INVARIANTS
  K1  an SQLSTATE that no client here may get is a finding, and so is a wrong answer.
  K2  every client has a name and says what it does, so that whoever hangs can be named.
"""

import random
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeAlias

import psycopg

from tests.resilience.faults.clients import UNKNOWN_STATES, state_of
from tests.resilience.history.events import Finding

CONTROL: Final = "soak control"
"""The application's name of those whom nobody cancels or terminates."""

EXPECTED_STATES: Final = frozenset(
    {"57014", "57P01", "40001", "40P01", "53200", "53300", "40003", "08003", "08006", "lost"}
)
"""What a client may be told: cancelled, terminated, in conflict, no room; its outcome is unknown,
its connection gone."""

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]


class Crowd:
    """See the module."""

    def __init__(self, dsn: str, *, spark: bool) -> None:
        self.dsn = dsn
        self.spark = spark
        self.ended = threading.Event()
        self.findings: list[Finding] = []
        self.done: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.doing: dict[str, str] = {}
        """What each client is at; who has left is not there (K2)."""
        self._lock = threading.Lock()

    def as_control(self) -> str:
        """A DSN of somebody who is left alone."""
        return f"{self.dsn}?application_name={CONTROL.replace(' ', '%20')}"

    def rest(self, rng: random.Random, seconds: float) -> None:
        """A pause of so long on average, or until all go home: two cores are for everybody."""
        self.ended.wait(rng.random() * 2 * seconds)

    def found(self, anomaly: str, explanation: str) -> None:
        """Something that must not be."""
        self.findings.append(Finding(anomaly, explanation))

    def counted(self, kind: str) -> None:
        """One more thing done."""
        with self._lock:
            self.done[kind] += 1

    def told(self, state: str, text: str) -> None:
        """An error was told (K1)."""
        with self._lock:
            self.states[state] += 1
        if state not in EXPECTED_STATES:
            self.found("unexpected error", f"{state} {text}")

    @contextmanager
    def present(self, name: str) -> Generator[None]:
        """A client comes, and leaves; if it cannot make sense of an answer, that is a finding."""
        self.doing[name] = "begins"
        try:
            yield
        except Exception as error:
            why = "".join(traceback.format_exception(error))
            self.found("a client failed", f"{name}, {self.doing[name]}: {why}")
        finally:
            del self.doing[name]


class OwnCount:
    """How often a client has incremented a row of its own: what was acknowledged is there, and no
    more than what was tried.
    """

    def __init__(self, crowd: Crowd, name: str) -> None:
        self._crowd = crowd
        self._name = name
        self._least = 0
        self._most = 0

    def acknowledged(self, times: int = 1) -> None:
        """It happened."""
        self._least += times
        self._most += times

    def failed(self, state: str, times: int = 1) -> None:
        """It was refused; or nobody knows."""
        if state in UNKNOWN_STATES or state == "lost" or state.startswith("08"):
            self._most += times

    def seen(self, count: int) -> None:
        """What stands there now."""
        if not self._least <= count <= self._most:
            why = f"{self._name} has {count}, between {self._least} and {self._most} were told"
            self._crowd.found("own writes", why)
        # A commit that nobody has heard of may still be on its way: only the least is known.
        self._least = max(self._least, count)


Step: TypeAlias = Callable[[Connection, random.Random], None]


def keep_on(crowd: Crowd, name: str, step: Step) -> None:
    """Step after step with psycopg, on one connection after the other, until the crowd goes home.
    What fails is counted; a step that must know how it ended catches by itself.
    """
    rng = random.Random(name)
    kind = name.rpartition(" ")[0]
    with crowd.present(name):
        while not crowd.ended.is_set():
            crowd.doing[name] = "connects"
            try:
                with psycopg.connect(crowd.dsn, autocommit=True) as connection:
                    while not crowd.ended.is_set() and not connection.closed:
                        _attempt(crowd, name, kind, step, connection, rng)
            except psycopg.Error as error:
                crowd.told(state_of(error), str(error))


def _attempt(
    crowd: Crowd, name: str, kind: str, step: Step, connection: Connection, rng: random.Random
) -> None:
    crowd.doing[name] = "a step"
    try:
        step(connection, rng)
        crowd.counted(kind)
    except psycopg.Error as error:
        crowd.told(state_of(error), str(error))
        if not connection.closed:
            crowd.doing[name] = "rolls back"
            connection.rollback()
