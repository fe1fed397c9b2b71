"""Since when a materialized view is behind its inputs: what its Delta log tells foreign readers.

    left at b ─▶ mark(b, behind b) ─▶ the next cut tells `meridian.behindSince` = b
    attached at c ─▶ mark(c, none) ─▶ the next cut tells it no more

INVARIANTS
  M1  at a cut whose version does not tell it, the rows of a view that follows its inputs are those
      of its query. A cut that is before the timestamp that is told is as exact as its own version
      says.
  M2  marks ascend. They follow from the history of the catalog, so a start makes them again. If
      that history begins later than the view was left, the log knows better.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from storage.types import Timestamp
from storage.version import Version


@dataclass(frozen=True, slots=True)
class BehindMark:
    """From a commit on a view is behind `behind`; None: it is exact, or does not follow inputs."""

    since: Timestamp
    behind: Timestamp | None


def marked_at(marks: Sequence[BehindMark], ts: Timestamp) -> Timestamp | None:
    """Since when a view is behind, at a timestamp."""
    last = bisect_right(marks, ts, key=_mark_since) - 1
    return marks[last].behind if last >= 0 else None


def add_mark(
    marks: tuple[BehindMark, ...], ts: Timestamp, *, behind: bool, kept: Timestamp | None
) -> tuple[BehindMark, ...]:
    """The marks after a commit at `ts`, without those that no cut after `kept` needs (M2)."""
    before = marks[-1].behind if marks else None
    now = None if not behind else before if before is not None else ts
    if now == before:
        return marks
    first = 0 if kept is None else max(bisect_right(marks, kept, key=_mark_since) - 1, 0)
    return (*(mark for mark in marks[first:] if mark.since < ts), BehindMark(ts, now))


def recovered_marks(
    marks: tuple[BehindMark, ...], versions: Iterable[Version]
) -> tuple[BehindMark, ...]:
    """The marks of a catalog whose history may begin later than the log (M2)."""
    first = next(iter(marks), None)
    if first is None or first.behind is None:
        return marks
    end = next((mark.since for mark in marks[1:]), None)
    told = [one.behind_since for one in versions if end is None or one.cut < end]
    if not told or told[-1] is None or told[-1] >= first.behind:
        return marks
    return (replace(first, behind=told[-1]), *marks[1:])


def _mark_since(mark: BehindMark) -> Timestamp:
    return mark.since
