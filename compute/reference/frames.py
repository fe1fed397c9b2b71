"""Window frames: the rows of its partition that a window call sees from a row.

INVARIANTS
  F1  NULLs of the sort key are peers of each other and are never within a distance of a value.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from compute.reference.expressions import Frame, Row, compile_expression
from compute.reference.groups import CompiledKey
from compute.reference.range_frames import key_distance_of
from sql.errors import SqlError
from sql.plan.nodes import BoundKind, Exclusion, FrameBound, FrameMode, WindowCall, has_range_offset
from sql.types.sql_type import Value


@dataclass(frozen=True, slots=True)
class Partition:
    """The sorted rows of a partition, the peer group of each row, and the start of each group."""

    rows: list[Row]
    group: list[int]
    starts: list[int]
    """One more than there are groups: the end stands last."""


class WindowFrameRows:
    """Finds the rows of a row's frame."""

    def __init__(self, call: WindowCall, order: Sequence[CompiledKey], inside: Frame) -> None:
        frame = self._frame = call.frame
        self._order = order
        self._reach = key_distance_of(call.order[0].expr.type) if has_range_offset(frame) else None
        self._offsets = [
            None if end.offset is None else compile_expression(end.offset, inside)
            for end in (frame.start, frame.end)
        ]

    def rows(self, partition: Partition, index: int) -> list[Row]:
        """The rows of the frame, in the order of the partition."""
        first, end = self._limits(partition, index)
        exclusion = self._frame.exclusion
        if exclusion is Exclusion.NO_OTHERS:
            return partition.rows[first:end]
        group = partition.group[index]
        start, stop = partition.starts[group], partition.starts[group + 1]
        if exclusion is Exclusion.CURRENT_ROW:
            start, stop = index, index + 1
        kept = [at for at in range(first, end) if not start <= at < stop]
        if exclusion is Exclusion.TIES and first <= index < end:
            kept = sorted([*kept, index])
        return [partition.rows[at] for at in kept]

    def _limits(self, partition: Partition, index: int) -> tuple[int, int]:
        count = len(partition.rows)
        first = self._place(self._frame.start, 0, partition, index)
        end = self._place(self._frame.end, 1, partition, index)
        first, end = max(first, 0), min(end, count)
        return (first, end) if first < end else (0, 0)

    def _place(self, bound: FrameBound, which: int, partition: Partition, index: int) -> int:
        """The first row of the frame (which = 0), or the row behind its last one (1)."""
        match bound.kind:
            case BoundKind.UNBOUNDED_PRECEDING:
                return 0
            case BoundKind.UNBOUNDED_FOLLOWING:
                return len(partition.rows)
            case BoundKind.CURRENT_ROW:
                if self._frame.mode is FrameMode.ROWS:
                    return index + which
                return partition.starts[partition.group[index] + which]
            case BoundKind.PRECEDING | BoundKind.FOLLOWING:
                offset = self._offset(which, partition.rows[index])
                back = bound.kind is BoundKind.PRECEDING
                return self._at_distance(offset, which, partition, index, back=back)

    def _offset(self, which: int, row: Row) -> Value:
        evaluator = self._offsets[which]
        assert evaluator is not None, "this bound has an offset"
        value = evaluator(row)
        word = ("starting", "ending")[which]
        if value is None:
            raise SqlError("22004", f"frame {word} offset must not be null")
        if self._reach is not None:
            if self._reach.is_negative(value):
                message = "invalid preceding or following size in window function"
                raise SqlError("22013", message)
        elif value < 0:  # type: ignore[operator]
            raise SqlError("22013", f"frame {word} offset must not be negative")
        return value

    def _at_distance(
        self, offset: Value, which: int, partition: Partition, index: int, *, back: bool
    ) -> int:
        if self._frame.mode is FrameMode.RANGE:
            return self._at_value(offset, which, partition, index, back=back)
        assert isinstance(offset, int), "an offset of ROWS or GROUPS is an int8"
        moved = -offset if back else offset
        if self._frame.mode is FrameMode.ROWS:
            return index + moved + which
        group = partition.group[index] + moved + which
        return partition.starts[max(min(group, len(partition.starts) - 1), 0)]

    def _at_value(
        self, offset: Value, which: int, partition: Partition, index: int, *, back: bool
    ) -> int:
        """Find the bound by the sort key, as in_range() decides; NULLs only among themselves
        (F1).
        """
        key, rows, reach = self._order[0], partition.rows, self._reach
        assert reach is not None, "an offset of RANGE"
        base = key.value(rows[index])
        if base is None:
            return partition.starts[partition.group[index] + which]
        subtract = back is not key.descending
        # The first row that is not before the bound, or the first one that is behind it.
        less = (which == 1) is not key.descending
        first, end = 0, len(rows)
        if key.nulls_first and key.value(rows[0]) is None:
            first = partition.starts[1]
        elif key.value(rows[-1]) is None:
            end = partition.starts[-2]

        def found(row: Row) -> bool:
            inside = reach.within(key.value(row), base, offset, subtract=subtract, less=less)
            return inside is (which == 0)

        return bisect_left(rows, True, first, end, key=found)
