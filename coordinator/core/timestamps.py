"""Choose the timestamp of a query: constraints with reasons, a preference, a choice; pure.

    since ─────── read_ts ─────── now ─────── now + bound
      │  answers at once  │ close it first │   wait for the clock   │ refused

Every choice is made here, and `EXPLAIN TIMESTAMP` prints the same `Determination` that the choice
was taken from.

INVARIANTS
  D1  the chosen timestamp meets every constraint; if none does, the choice says which one failed.
  D2  what is chosen is a function of the question alone.

Not here: closing timestamps and waiting (`core/core.py`), keeping the choice readable
(`read_holds.py`).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from coordinator.core.messages.identities import Isolation
from storage.types import Timestamp

_BEFORE_ALL: Final = Timestamp(0)


class BoundSide(StrEnum):
    """Which way a constraint points."""

    LOWER = "at least"
    UPPER = "at most"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound on the timestamp, inclusive, and why it is there."""

    side: BoundSide
    ts: Timestamp
    reason: str


class Preference(StrEnum):
    """Which timestamp of the interval is taken."""

    FRESHEST = "the freshest that answers at once"
    EARLIEST = "the earliest, to wait as little as possible"


# --- choices -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """Readable at once."""

    ts: Timestamp
    reason: str


@dataclass(frozen=True, slots=True)
class Close:
    """Readable as soon as the oracle has closed `ts`: no write on its way is at or below it."""

    ts: Timestamp
    reason: str


@dataclass(frozen=True, slots=True)
class WaitForClock:
    """In the future, within the bound."""

    ts: Timestamp


@dataclass(frozen=True, slots=True)
class TooOld:
    """Below since: 72000."""

    since: Timestamp


@dataclass(frozen=True, slots=True)
class TooFar:
    """Further ahead than the bound: 22023."""

    ts: Timestamp


@dataclass(frozen=True, slots=True)
class TooStale:
    """The staleness bound cannot be met without waiting: 40001."""

    least: Timestamp


TimestampChoice: TypeAlias = Ready | Close | WaitForClock | TooOld | TooFar | TooStale


@dataclass(frozen=True, slots=True)
class InputSince:
    """The since of one table that a query reads."""

    name: str
    since: Timestamp


@dataclass(frozen=True, slots=True)
class Question:
    """What a choice depends on. Timestamps are those of one timeline.

    `read_ts`: the oracle's. `closable`: the newest that can be closed without waiting. `own`: what
    the transaction reads at already. `inputs`: tables with a since of their own, as far as they are
    known.
    """

    since: Timestamp
    read_ts: Timestamp
    now: Timestamp
    bound_us: int
    isolation: Isolation = Isolation.STRICT_SERIALIZABLE
    as_of: Timestamp | None = None
    at_least: bool = False
    own: Timestamp | None = None
    staleness_us: int | None = None
    closable: Timestamp = _BEFORE_ALL
    inputs: tuple[InputSince, ...] = ()


@dataclass(frozen=True, slots=True)
class Determination:
    """A choice with all that it follows from. The interval is [lower, upper], empty if lower is
    greater; `upper` None: no bound.
    """

    constraints: tuple[Constraint, ...]
    preference: Preference
    lower: Timestamp
    upper: Timestamp | None
    choice: TimestampChoice


def determine(question: Question) -> Determination:
    """The timestamp of a query that asks now (D1, D2)."""
    found = constraints(question)
    lower = max(item.ts for item in found if item.side is BoundSide.LOWER)
    upper = min((item.ts for item in found if item.side is BoundSide.UPPER), default=None)
    chosen = _chosen(question, lower, upper)
    preference = Preference.FRESHEST if isinstance(chosen, Ready) else Preference.EARLIEST
    return Determination(found, preference, lower, upper, chosen)


def constraints(question: Question) -> tuple[Constraint, ...]:
    """Every bound on the timestamp, with its reason."""
    found = [Constraint(BoundSide.LOWER, question.since, "since of the timeline")]
    found += [
        Constraint(BoundSide.LOWER, item.since, f"since of table {item.name}")
        for item in question.inputs
    ]
    if question.as_of is not None:
        return (*found, *_asked(question, question.as_of))
    if question.own is not None:
        reason = "the transaction reads at one timestamp"
        found.append(Constraint(BoundSide.LOWER, question.own, reason))
        found.append(Constraint(BoundSide.UPPER, question.own, reason))
        return tuple(found)
    return (*found, *_by_level(question))


def _asked(question: Question, as_of: Timestamp) -> tuple[Constraint, ...]:
    latest = Timestamp(question.now + question.bound_us)
    reason = "the clock, and how far ahead of it one may wait"
    if question.bound_us == 0:
        reason = "the timeline has no clock that one could wait for"
    bound = Constraint(BoundSide.UPPER, latest, reason)
    if question.at_least:
        return (Constraint(BoundSide.LOWER, as_of, "AS OF AT LEAST"), bound)
    return (
        Constraint(BoundSide.LOWER, as_of, "AS OF"),
        Constraint(BoundSide.UPPER, as_of, "AS OF"),
        bound,
    )


def _by_level(question: Question) -> tuple[Constraint, ...]:
    """What the isolation level asks of a query without a time of its own."""
    if question.staleness_us is not None:
        least = Timestamp(question.now - question.staleness_us)
        newest = max(question.read_ts, question.closable)
        return (
            Constraint(BoundSide.LOWER, least, "bounded staleness: the clock, less the bound"),
            Constraint(BoundSide.UPPER, newest, "bounded staleness: the newest without waiting"),
        )
    closed = Constraint(BoundSide.UPPER, question.read_ts, "oracle: nothing later is closed")
    match question.isolation:
        case Isolation.SERIALIZABLE:
            return (closed,)
        case Isolation.STRICT_SERIALIZABLE:
            reason = "strict serializable: everything acknowledged is at or below it"
        case _:
            reason = f"{question.isolation.value}: the present"
    return (Constraint(BoundSide.LOWER, question.read_ts, reason), closed)


def _chosen(question: Question, lower: Timestamp, upper: Timestamp | None) -> TimestampChoice:
    as_of, read_ts = question.as_of, question.read_ts
    if as_of is not None and not question.at_least:
        lower = as_of
        since = max([question.since, *(item.since for item in question.inputs)])
        if as_of < since:
            return TooOld(since)
    elif as_of is None and question.own is not None:
        return Ready(question.own, "the transaction's own timestamp")
    elif lower <= read_ts:
        what = "oracle read timestamp"
        return Ready(read_ts, what if as_of is None else f"{what}, at least what was asked for")
    elif question.staleness_us is not None and as_of is None:
        if upper is None or lower > upper:
            return TooStale(lower)
        return Close(upper, "the newest that can be closed without waiting")
    if lower <= read_ts:
        return Ready(lower, "as asked, already closed")
    if lower <= question.now:
        return Close(lower, "as asked, closed on arrival")
    if upper is None or lower <= question.now + question.bound_us:
        return WaitForClock(lower)
    return TooFar(lower)
