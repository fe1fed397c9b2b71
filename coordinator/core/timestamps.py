"""Choosing the timestamp of a query: pure, with the reason beside the choice (DESIGN §2).

since ─────── read_ts ─────── now ─────── now + bound
  │  answers at once  │ close it first │   wait for the clock   │ refused
"""

from dataclasses import dataclass
from typing import TypeAlias

from storage.types import Timestamp


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


Choice: TypeAlias = Ready | Close | WaitForClock | TooOld | TooFar


def determine_as_of(
    as_of: Timestamp,
    *,
    at_least: bool,
    since: Timestamp,
    read_ts: Timestamp,
    now: Timestamp,
    bound_us: int,
) -> Choice:
    """The timestamp of `AS OF [AT LEAST] as_of` for a query that arrives `now`."""
    if at_least and as_of <= read_ts:
        return Ready(read_ts, "oracle read timestamp, at least what was asked for")
    if as_of < since:
        return TooOld(since)
    if as_of <= read_ts:
        return Ready(as_of, "as asked, already closed")
    if as_of <= now:
        return Close(as_of, "as asked, closed on arrival")
    if as_of <= now + bound_us:
        return WaitForClock(as_of)
    return TooFar(as_of)
