"""The judge that knows the timestamps: replay every transaction at the time the server gave it.

    acknowledged writes, by ts ─▶ state at each ts ─▶ every read compared with the state it claims

A transaction that writes reads just before its own timestamp; one that only reads sees everything
up to and including it ("writes before reads at equal timestamps").

INVARIANTS
  P1  every acknowledged write is in every answer at or after its timestamp, and in none before.
  P2  real-time order implies timestamp order: a transaction that began after another ended has no
      smaller timestamp, and a greater one if it writes (O1, O2).
  P3  an unknown write that was seen once is seen by every read at a later timestamp.

Not here: histories without timestamps (`black_box.py`). Transactions without `ts` are judged as
unknown ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.resilience.history.cycles import real_time_edges
from tests.resilience.history.events import (
    WRITES,
    Add,
    Append,
    Finding,
    History,
    Key,
    Kind,
    Operation,
    Read,
    ReadList,
    ReadSet,
    Transaction,
    Value,
    Write,
)


@dataclass(frozen=True, slots=True)
class _Written:
    """One write: when, in which order within its timestamp, and by whom. ts None: unknown."""

    ts: int | None
    ordinal: int
    value: Value
    writer: Transaction


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody read AS OF a timestamp, beside the history: it has no place in real time."""

    ts: int
    operation: Operation
    source: str


def check_replay(history: History, answers: Iterable[Answer] = ()) -> list[Finding]:
    """Compare every answer with the state at its timestamp, and time with time (P1-P3)."""
    transactions = history.transactions()
    written = _written(transactions)
    found = _check_time(transactions)
    for reader in transactions:
        if reader.is_ok and reader.ts is not None:
            found += _check_reads(reader, written)
    for answer in answers:
        found += _check_answer(answer, written)
    return found + _check_unknowns(transactions, written)


def check_answers(history: History, answers: Iterable[Answer]) -> list[Finding]:
    """Compare answers at timestamps with the history (P1)."""
    written = _written(history.transactions())
    return [finding for answer in answers for finding in _check_answer(answer, written)]


def _check_answer(answer: Answer, written: dict[tuple[type, Key], list[_Written]]) -> list[Finding]:
    end = 1 << 60
    reader = Transaction(-1, -1, Kind.OK, (answer.operation,), end, end, answer.ts)
    return [
        Finding(f"{answer.source}-{finding.anomaly}", finding.explanation, finding.transactions)
        for finding in _check_reads(reader, written)
    ]


def _written(transactions: Iterable[Transaction]) -> dict[tuple[type, Key], list[_Written]]:
    written: dict[tuple[type, Key], list[_Written]] = {}
    for transaction in transactions:
        if transaction.status is Kind.FAIL:
            continue
        ts = transaction.ts if transaction.is_ok else None
        for ordinal, operation in enumerate(transaction.operations):
            if isinstance(operation, WRITES):
                place = (type(operation), operation.key)
                entry = _Written(ts, ordinal, operation.value, transaction)
                written.setdefault(place, []).append(entry)
    return written


def _check_time(transactions: Sequence[Transaction]) -> list[Finding]:
    # One without operations has told nobody anything: it may have read at a weaker level.
    timed = [t for t in transactions if t.is_ok and t.ts is not None and t.operations]
    found: list[Finding] = []
    for first, second in real_time_edges(timed):
        assert first.ts is not None
        assert second.ts is not None
        if second.ts < first.ts or (second.ts == first.ts and second.writes):
            why = f"ts {second.ts} was given after {first.ts} had been answered"
            found.append(Finding("time-went-back", why, (first, second)))
    return found


def _check_reads(
    reader: Transaction, written: dict[tuple[type, Key], list[_Written]]
) -> list[Finding]:
    found: list[Finding] = []
    for position, operation in enumerate(reader.operations):
        match operation:
            case ReadSet(key, values) if values is not None:
                entries = written.get((Add, key), [])
                required, allowed = _visible(reader, position, entries)
                found += _compare(reader, key, values, required, allowed)
            case ReadList(key, values) if values is not None:
                entries = written.get((Append, key), [])
                required, allowed = _visible(reader, position, entries)
                found += _compare(reader, key, values, required, allowed)
                found += _compare_order(reader, key, values, entries)
            case Read(key, value):
                entries = written.get((Write, key), [])
                found += _compare_register(reader, key, value, *_visible(reader, position, entries))
            case _:
                pass
    return found


def _visible(
    reader: Transaction, position: int, entries: Iterable[_Written]
) -> tuple[list[_Written], list[_Written]]:
    """Writes that the read must see, in their order, and unknown ones that it may see (P1)."""
    assert reader.ts is not None
    required: list[_Written] = []
    allowed: list[_Written] = []
    for entry in entries:
        if entry.writer is reader:
            if entry.ordinal < position:
                required.append(entry)
        elif entry.ts is None:
            allowed.append(entry)
        elif entry.ts < reader.ts or (entry.ts == reader.ts and not reader.writes):
            required.append(entry)
    # Own writes come last: the transaction reads before its own timestamp.
    required.sort(key=lambda e: (e.writer is reader, e.ts or 0, e.ordinal))
    return required, allowed


def _compare(
    reader: Transaction,
    key: Key,
    values: Sequence[Value],
    required: Sequence[_Written],
    allowed: Sequence[_Written],
) -> list[Finding]:
    found: list[Finding] = []
    if len(set(values)) < len(values):
        found.append(Finding("duplicate", f"{key} holds a value more than once", (reader,)))
    for entry in required:
        if entry.value not in values:
            why = f"{key} at {reader.ts} misses {entry.value} of {entry.ts}"
            found.append(Finding("lost", why, (entry.writer, reader)))
    known = {entry.value for entry in (*required, *allowed)}
    for value in values:
        if value not in known:
            why = f"{key} at {reader.ts} holds {value}, not written by then"
            found.append(Finding("unwritten", why, (reader,)))
    return found


def _compare_order(
    reader: Transaction, key: Key, values: Sequence[Value], entries: Sequence[_Written]
) -> list[Finding]:
    """Elements of known timestamps stand in their order; one batch may hold several."""
    times = {entry.value: (entry.writer is reader, entry.ts) for entry in entries}
    known = [times[v] for v in values if v in times and times[v][1] is not None]
    if known == sorted(known, key=lambda own_ts: (own_ts[0], own_ts[1] or 0)):
        return []
    return [Finding("order", f"{key} at {reader.ts} is not in timestamp order", (reader,))]


def _compare_register(
    reader: Transaction,
    key: Key,
    value: Value | None,
    required: Sequence[_Written],
    allowed: Sequence[_Written],
) -> list[Finding]:
    """The last write, or one of those that share its timestamp, or an unknown one."""
    last = required[-1] if required else None
    if last is None:
        possible: set[Value | None] = {None}
    elif last.writer is reader:
        possible = {last.value}
    else:
        possible = {entry.value for entry in required if entry.ts == last.ts}
    if last is None or last.writer is not reader:
        possible |= {entry.value for entry in allowed}
    if value in possible:
        return []
    involved = (reader,) if last is None else (last.writer, reader)
    expected = None if last is None else last.value
    return [Finding("stale", f"{key} at {reader.ts} is {value} instead of {expected}", involved)]


def _check_unknowns(
    transactions: Iterable[Transaction], written: dict[tuple[type, Key], list[_Written]]
) -> list[Finding]:
    """P3, for sets and lists: they never lose an element."""
    found: list[Finding] = []
    readers = [t for t in transactions if t.is_ok and t.ts is not None]
    readers.sort(key=lambda t: (t.ts or 0, not t.writes))
    for (kind, key), entries in written.items():
        unknown = {entry.value: entry.writer for entry in entries if entry.ts is None}
        first_seen: dict[Value, Transaction] = {}
        for reader in readers:
            for values in _answers(reader, kind, key):
                for value, first in first_seen.items():
                    if value not in values and (first.ts or 0) < (reader.ts or 0):
                        why = f"{key} held {value} at {first.ts} and not at {reader.ts}"
                        found.append(Finding("vanished", why, (unknown[value], first, reader)))
                for value in unknown.keys() & set(values):
                    first_seen.setdefault(value, reader)
    return found


def _answers(reader: Transaction, kind: type, key: Key) -> list[tuple[Value, ...]]:
    """The reader's answers to reads of one set or list."""
    return [
        operation.values
        for operation in reader.operations
        if (kind is Add and isinstance(operation, ReadSet))
        or (kind is Append and isinstance(operation, ReadList))
        if operation.key == key and operation.values is not None
    ]
