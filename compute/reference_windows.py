"""Windows over lists of rows: every frame written out, for every row.

    partitions ─▶ sorted, cut into groups of peers ─▶ for each row its frame ─▶ one value a call

INVARIANTS
  W1  rows keep the order of the input; among peers the order of the input decides.
  W2  NULLs of the sort key are peers of each other and are never within a distance of a value.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from compute.reference_aggregates import folder
from compute.reference_expressions import Evaluator, Frame, Row, Source, compile_expression
from compute.reference_groups import CompiledKey, aggregate_over, compiled, sort_keys, sorted_rows
from compute.reference_numbers import EXACT
from compute.reference_ordering import Key, row_key
from sql.errors import SqlError, not_supported
from sql.frames import BoundKind, Exclusion, FrameBound, FrameMode
from sql.frames import Frame as WindowFrame
from sql.functions import FunctionKind
from sql.plan import (
    Aggregate,
    Window,
    WindowCall,
)
from sql.types import Value

_ADDED: Final = frozenset({"int2", "int4", "int8", "numeric", "float4", "float8"})


def can_run_windows(plan: Window) -> bool:
    """Whether every call has an implementation here."""
    return all(map(_can_run, plan.calls))


def _can_run(call: WindowCall) -> bool:
    ends = (call.frame.start, call.frame.end)
    if call.frame.mode is FrameMode.RANGE and any(end.offset is not None for end in ends):
        key = call.order[0].expr.type
        if key.name not in _ADDED:
            return False
    return call.function.kind is FunctionKind.WINDOW or folder(_plain(call)) is not None


def _plain(call: WindowCall) -> Aggregate:
    return Aggregate(call.function, call.args, False, call.filter, (), call.type)


def windows(plan: Window, source: Source, inside: Frame) -> Source:
    """The rows of the input, each with the values of the calls behind it."""
    for call in plan.calls:
        if not _can_run(call):
            raise not_supported(f"this window of {call.function.id}")
    makers = [_compiled(call, inside) for call in plan.calls]

    def run() -> Iterator[Row]:
        rows = list(source())
        columns = [make(rows) for make in makers]
        for index, row in enumerate(rows):
            yield (*row, *[column[index] for column in columns])

    return run


# --- one call ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Partition:
    """Sorted rows, the group of peers that each is in, and where each group begins."""

    rows: list[Row]
    group: list[int]
    starts: list[int]
    """One more than there are groups: the end stands last."""


_Value: TypeAlias = Callable[[_Partition, int], Value]


def _compiled(call: WindowCall, inside: Frame) -> Callable[[list[Row]], list[Value]]:
    partition_keys = compiled(call.partition, inside)
    partition_of = row_key([expr.type for expr in call.partition])
    order = sort_keys(call.order, inside)
    peers_of = row_key([key.expr.type for key in call.order])
    value_of = _value_of(call, inside, order)

    def run(rows: list[Row]) -> list[Value]:
        parts: dict[Key, list[Row]] = {}
        for number, row in enumerate(rows):
            key = partition_of([part(row) for part in partition_keys])
            # The number goes along behind the columns, where no expression looks.
            parts.setdefault(key, []).append((*row, number))
        found: list[Value] = [None] * len(rows)
        for members in parts.values():
            partition = _partition(sorted_rows(members, order), order, peers_of)
            value = value_of(partition)
            for index, row in enumerate(partition.rows):
                place = row[-1]
                assert isinstance(place, int), "the number of the row"
                found[place] = value(partition, index)
        return found

    return run


def _partition(
    rows: list[Row], order: Sequence[CompiledKey], peers_of: Callable[[Sequence[Value]], Key]
) -> _Partition:
    group: list[int] = []
    starts: list[int] = []
    last: Key = None
    for index, row in enumerate(rows):
        key = peers_of([part.value(row) for part in order])
        if not starts or key != last:
            starts.append(index)
            last = key
        group.append(len(starts) - 1)
    return _Partition(rows, group, [*starts, len(rows)])


def _value_of(
    call: WindowCall, inside: Frame, order: Sequence[CompiledKey]
) -> Callable[[_Partition], _Value]:
    name = call.function.name
    args = compiled(call.args, inside)
    if name in _RANKS:
        return lambda _partition: _RANKS[name]
    if name == "ntile":
        return lambda partition: _ntile(args[0], partition)
    if name in ("lag", "lead"):
        value = _shifted(args, back=name == "lag")
        return lambda _partition: value
    frame = _FrameRows(call.frame, order, inside)
    if call.function.kind is FunctionKind.AGGREGATE:
        run = aggregate_over(_plain(call), inside)
        return lambda _partition: lambda partition, index: run(frame.rows(partition, index))
    picked = _picked(name, args)
    return lambda _partition: lambda partition, index: picked(partition, index, frame)


def _rank(partition: _Partition, index: int) -> int:
    return partition.starts[partition.group[index]] + 1


def _percent_rank(partition: _Partition, index: int) -> float:
    count = len(partition.rows)
    return (_rank(partition, index) - 1) / (count - 1) if count > 1 else 0.0


def _cume_dist(partition: _Partition, index: int) -> float:
    return partition.starts[partition.group[index] + 1] / len(partition.rows)


_RANKS: Final[dict[str, _Value]] = {
    "row_number": lambda _partition, index: index + 1,
    "rank": _rank,
    "dense_rank": lambda partition, index: partition.group[index] + 1,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}


def _ntile(count: Evaluator, partition: _Partition) -> _Value:
    """The argument is that of the partition's first row, as in PostgreSQL."""
    buckets = count(partition.rows[0])
    if buckets is None:
        return lambda _partition, _index: None
    assert isinstance(buckets, int), "ntile takes an int4"
    if buckets <= 0:
        raise SqlError("22014", "argument of ntile must be greater than zero")
    size, larger = divmod(len(partition.rows), buckets)
    border = larger * (size + 1)

    def value(_partition: _Partition, index: int) -> int:
        if index < border:
            return index // (size + 1) + 1
        return (index - border) // size + larger + 1

    return value


def _shifted(args: Sequence[Evaluator], *, back: bool) -> _Value:
    def value(partition: _Partition, index: int) -> Value:
        row = partition.rows[index]
        distance = 1 if len(args) < 2 else args[1](row)
        if distance is None:
            return None
        assert isinstance(distance, int), "a distance is an int4"
        place = index - distance if back else index + distance
        if 0 <= place < len(partition.rows):
            return args[0](partition.rows[place])
        return args[2](row) if len(args) > 2 else None

    return value


def _picked(
    name: str, args: Sequence[Evaluator]
) -> "Callable[[_Partition, int, _FrameRows], Value]":
    def value(partition: _Partition, index: int, frame: "_FrameRows") -> Value:
        place = 0 if name == "first_value" else -1
        if name == "nth_value":
            number = args[1](partition.rows[index])
            if number is None:
                return None
            assert isinstance(number, int), "nth_value takes an int4"
            if number <= 0:
                raise SqlError("22016", "argument of nth_value must be greater than zero")
            place = number - 1
        rows = frame.rows(partition, index)
        return args[0](rows[place]) if -1 <= place < len(rows) and rows else None

    return value


# --- frames ------------------------------------------------------------------------------------


class _FrameRows:
    """The rows of the frame of a row."""

    def __init__(self, frame: WindowFrame, order: Sequence[CompiledKey], inside: Frame) -> None:
        self._frame = frame
        self._order = order
        self._offsets = [
            None if end.offset is None else compile_expression(end.offset, inside)
            for end in (frame.start, frame.end)
        ]

    def rows(self, partition: _Partition, index: int) -> list[Row]:
        """In the order of the partition."""
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

    def _limits(self, partition: _Partition, index: int) -> tuple[int, int]:
        count = len(partition.rows)
        first = self._place(self._frame.start, 0, partition, index)
        end = self._place(self._frame.end, 1, partition, index)
        first, end = max(first, 0), min(end, count)
        return (first, end) if first < end else (0, 0)

    def _place(self, bound: FrameBound, which: int, partition: _Partition, index: int) -> int:
        """Where the frame begins (which = 0), or the row behind its last one (1)."""
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
        if self._frame.mode is FrameMode.RANGE:
            if not value >= 0:  # type: ignore[operator]
                message = "invalid preceding or following size in window function"
                raise SqlError("22013", message)
        elif value < 0:  # type: ignore[operator]
            raise SqlError("22013", f"frame {word} offset must not be negative")
        return value

    def _at_distance(
        self, offset: Value, which: int, partition: _Partition, index: int, *, back: bool
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
        self, offset: Value, which: int, partition: _Partition, index: int, *, back: bool
    ) -> int:
        """By the key's value, as in_range() decides; NULLs only among themselves (W2)."""
        key = self._order[0]
        base = key.value(partition.rows[index])
        if base is None:
            return partition.starts[partition.group[index] + which]
        subtract = back is not key.descending
        # The first row that is not before the bound, or the first one that is behind it.
        less = (which == 1) is not key.descending
        for at, row in enumerate(partition.rows):
            value = key.value(row)
            if value is None:
                if key.nulls_first:
                    continue
                return at
            inside = _in_range(value, base, offset, subtract=subtract, less=less)
            if inside is (which == 0):
                return at
        return len(partition.rows)


def _in_range(value: Value, base: Value, offset: Value, *, subtract: bool, less: bool) -> bool:
    """Whether value <= or >= base - or + offset, without overflow (in_range)."""
    if isinstance(value, float):
        assert isinstance(base, float), "keys have one type"
        assert isinstance(offset, float), "an offset over floats is a float"
        return _floats_in_range(value, base, offset, subtract=subtract, less=less)
    a, b, c = (Decimal(part) for part in (value, base, offset))  # type: ignore[arg-type]
    bound = EXACT.subtract(b, c) if subtract else EXACT.add(b, c)
    return a <= bound if less else a >= bound


def _floats_in_range(
    value: float, base: float, offset: float, *, subtract: bool, less: bool
) -> bool:
    if math.isnan(value):
        return math.isnan(base) or not less
    if math.isnan(base):
        return less
    if math.isinf(offset) and math.isinf(base) and (base > 0) is subtract:
        return True
    bound = base - offset if subtract else base + offset
    return value <= bound if less else value >= bound
