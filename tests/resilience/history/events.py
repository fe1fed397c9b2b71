"""Histories: invocations and completions of transactions, as plain data.

    client ──invoke──▶ Recorder ──▶ History ──transactions()──▶ checkers (replay, black_box)
    client ──ok|fail|info──▶

A transaction is a tuple of operations on named keys. An invocation says what is going to be asked
(reads without their results); the completion repeats the operations with the results filled in.

INVARIANTS
  E1  the order of the events in a history is the real-time order: `a` ended before `b` began when
      a's completion stands before b's invocation. `at` is for the reader of a report.
  E2  a process has at most one open invocation; after `info` it never speaks again (its fate is
      unknown, so the client goes on under a new process number).
  E3  `fail` means: certainly did not happen. `info` means: may have happened, may happen later.

Not here: judging (`replay.py`, `black_box.py`), choosing operations (the workloads).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Key: TypeAlias = str
Value: TypeAlias = int


@dataclass(frozen=True, slots=True)
class Add:
    """Insert a value into a grow-only set. A value is added to a key at most once."""

    key: Key
    value: Value


@dataclass(frozen=True, slots=True)
class ReadSet:
    """Read a whole grow-only set, as rows: a value that stands there twice is a finding."""

    key: Key
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """Append a value to a list. A value is appended to a key at most once."""

    key: Key
    value: Value


@dataclass(frozen=True, slots=True)
class ReadList:
    """Read a whole list, in its order."""

    key: Key
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Overwrite a register. A value is written to a key at most once."""

    key: Key
    value: Value


@dataclass(frozen=True, slots=True)
class Read:
    """Read a register; None is the value before the first write."""

    key: Key
    value: Value | None = None


Operation: TypeAlias = Add | ReadSet | Append | ReadList | Write | Read
WRITES = (Add, Append, Write)


class Kind(StrEnum):
    """What an event says about its transaction."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history. `ts` is the timestamp that the server chose, where it is known."""

    process: int
    kind: Kind
    operations: tuple[Operation, ...]
    at: int = 0
    ts: int | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """An invocation with its completion. `began` and `ended` are positions in the history (E1);
    `ended` is None when the outcome is unknown.
    """

    number: int
    process: int
    status: Kind
    operations: tuple[Operation, ...]
    began: int
    ended: int | None
    ts: int | None = None

    @property
    def is_ok(self) -> bool:
        """The client was told that it happened."""
        return self.status is Kind.OK

    def ended_before(self, other: "Transaction") -> bool:
        """This one was over before the other one began (E1)."""
        return self.ended is not None and self.ended < other.began

    @property
    def writes(self) -> bool:
        """It changes something."""
        return any(isinstance(operation, WRITES) for operation in self.operations)

    def __str__(self) -> str:
        when = "" if self.ts is None else f" @{self.ts}"
        what = ", ".join(describe(operation) for operation in self.operations)
        return f"T{self.number} p{self.process} {self.status}{when}: {what}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One anomaly: its name, the shortest explanation, and the transactions that show it."""

    anomaly: str
    explanation: str
    transactions: tuple[Transaction, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.anomaly}: {self.explanation}"]
        return "\n".join(lines + [f"    {transaction}" for transaction in self.transactions])


@dataclass(frozen=True, slots=True)
class History:
    """Events in real-time order (E1)."""

    events: tuple[Event, ...]

    def transactions(self) -> tuple[Transaction, ...]:
        """Pair completions with invocations; an invocation without completion is unknown."""
        open_at: dict[int, int] = {}
        paired: list[tuple[int, int | None]] = []
        for position, event in enumerate(self.events):
            if event.kind is Kind.INVOKE:
                assert event.process not in open_at, f"E2: p{event.process} is still busy"
                open_at[event.process] = position
            else:
                assert event.process in open_at, f"E2: p{event.process} has nothing open"
                paired.append((open_at.pop(event.process), position))
        paired += [(position, None) for position in open_at.values()]
        return tuple(self._pair(number, *pair) for number, pair in enumerate(sorted(paired)))

    def _pair(self, number: int, began: int, completed: int | None) -> Transaction:
        invocation = self.events[began]
        if completed is None:
            return Transaction(
                number, invocation.process, Kind.INFO, invocation.operations, began, None
            )
        event = self.events[completed]
        ended = None if event.kind is Kind.INFO else completed
        operations = event.operations or invocation.operations
        return Transaction(number, event.process, event.kind, operations, began, ended, event.ts)

    def shares(self) -> dict[Kind, float]:
        """The share of each outcome: a run without failures and unknowns proves little."""
        outcomes = [transaction.status for transaction in self.transactions()]
        return {
            kind: outcomes.count(kind) / max(1, len(outcomes))
            for kind in (Kind.OK, Kind.FAIL, Kind.INFO)
        }


class Recorder:
    """Collects events in the order in which it is told (E1): one recorder per run.

    `now` gives the virtual or monotonic time for reports. Not locked: threads bring a lock.
    """

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self._now = now
        self._events: list[Event] = []
        self._open: dict[int, tuple[Operation, ...]] = {}
        self._silent: set[int] = set()

    def invoke(self, process: int, *operations: Operation) -> None:
        """The client is about to send these operations."""
        assert process not in self._silent, f"E2: p{process} had an unknown outcome"
        assert process not in self._open, f"E2: p{process} is still busy"
        self._open[process] = operations
        self._record(process, Kind.INVOKE, operations, None)

    def ok(self, process: int, *operations: Operation, ts: int | None = None) -> None:
        """The client was told that it happened; operations carry the results of the reads."""
        asked = self._open.pop(process)
        self._record(process, Kind.OK, operations or asked, ts)

    def fail(self, process: int) -> None:
        """The client was told that it did not happen (E3)."""
        self._record(process, Kind.FAIL, self._open.pop(process), None)

    def info(self, process: int) -> None:
        """The client does not know; the process number is used up (E2)."""
        self._silent.add(process)
        self._record(process, Kind.INFO, self._open.pop(process), None)

    def history(self) -> History:
        """Everything so far."""
        return History(tuple(self._events))

    def _record(
        self, process: int, kind: Kind, operations: Sequence[Operation], ts: int | None
    ) -> None:
        self._events.append(Event(process, kind, tuple(operations), self._now(), ts))


def merge(histories: Iterable[History]) -> History:
    """One history of several recorders with one clock. At equal times invocations go first, which
    makes transactions overlap rather than follow each other: no order is invented.
    """
    events = [event for history in histories for event in history.events]
    return History(tuple(sorted(events, key=lambda e: (e.at, e.kind is not Kind.INVOKE))))


def describe(operation: Operation) -> str:
    """One operation in the notation of `notation.py`."""
    match operation:
        case Add(key, value):
            return f"add {key} {value}"
        case Append(key, value):
            return f"append {key} {value}"
        case Write(key, value):
            return f"write {key} {value}"
        case Read(key, value):
            return f"read {key} {'nil' if value is None else value}"
        case ReadSet(key, values):
            return f"set {key} {{{_words(values)}}}"
        case ReadList(key, values):
            return f"list {key} [{_words(values)}]"


def _words(values: Sequence[Value] | None) -> str:
    return "?" if values is None else " ".join(map(str, values))
