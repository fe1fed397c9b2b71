"""Frames of windows: which rows of its partition a window call sees."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sql.plan import Expr


class FrameMode(StrEnum):
    """In what a frame counts: rows, values of the ORDER BY key, groups of peers."""

    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class BoundKind(StrEnum):
    """Where a frame begins or ends."""

    UNBOUNDED_PRECEDING = "unbounded preceding"
    PRECEDING = "preceding"
    CURRENT_ROW = "current row"
    FOLLOWING = "following"
    UNBOUNDED_FOLLOWING = "unbounded following"


@dataclass(frozen=True, slots=True)
class FrameBound:
    """One end of a frame. `offset`: for PRECEDING and FOLLOWING, an int8, with RANGE what is added
    to the key; without columns of this level but for those that its key is made of
    (`range_frames.py`).
    """

    kind: BoundKind
    offset: "Expr | None" = None


class Exclusion(StrEnum):
    """What of a frame is left out."""

    NO_OTHERS = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of its partition that a window call sees. RANGE with an offset has one sort key."""

    mode: FrameMode = FrameMode.RANGE
    start: FrameBound = FrameBound(BoundKind.UNBOUNDED_PRECEDING)
    end: FrameBound = FrameBound(BoundKind.CURRENT_ROW)
    exclusion: Exclusion = Exclusion.NO_OTHERS


def begins_at_first(frame: Frame) -> bool:
    """Whether it has all rows from the partition's first one on."""
    whole = frame.exclusion is Exclusion.NO_OTHERS
    return whole and frame.start.kind is BoundKind.UNBOUNDED_PRECEDING


def has_range_offset(frame: Frame) -> bool:
    """Whether it is counted in values of the sort key."""
    ends = (frame.start, frame.end)
    return frame.mode is FrameMode.RANGE and any(end.offset is not None for end in ends)
