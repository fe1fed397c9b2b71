"""Window functions: evaluate each call over the frame of every row.

    partitions ─▶ sorted, cut into groups of peers ─▶ for each row its frame ─▶ one value a call

INVARIANTS
  W1  rows keep the order of the input; among peers the order of the input decides.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from compute.reference.aggregates import folder
from compute.reference.expressions import Evaluator, Frame, Row, Source
from compute.reference.frames import FrameRows, Partition
from compute.reference.functions.ordering import Key, row_key
from compute.reference.groups import CompiledKey, aggregate_over, compiled, sort_keys, sorted_rows
from sql.errors import SqlError, not_supported
from sql.functions.table import FunctionKind
from sql.plan.nodes import Aggregate, Window, WindowCall
from sql.types.sql_type import Value


def can_run_windows(plan: Window) -> bool:
    """Whether every call has an implementation here."""
    return all(map(_can_run, plan.calls))


def _can_run(call: WindowCall) -> bool:
    return call.function.kind is FunctionKind.WINDOW or folder(_plain(call)) is not None


def _plain(call: WindowCall) -> Aggregate:
    return Aggregate(call.function, call.args, False, call.filter, (), call.type)


def windows(plan: Window, source: Source, inside: Frame) -> Source:
    """The rows of the input, each with the values of the calls behind it."""
    makers = [window_over(call, inside) for call in plan.calls]

    def run() -> Iterator[Row]:
        rows = list(source())
        columns = [make(rows) for make in makers]
        for index, row in enumerate(rows):
            yield (*row, *[column[index] for column in columns])

    return run


# --- one call ----------------------------------------------------------------------------------


_Value: TypeAlias = Callable[[Partition, int], Value]


def window_over(call: WindowCall, inside: Frame) -> Callable[[list[Row]], list[Value]]:
    """The values of a call for any rows, in their order."""
    if not _can_run(call):
        raise not_supported(f"this window of {call.function.id}")
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
) -> Partition:
    group: list[int] = []
    starts: list[int] = []
    last: Key = None
    for index, row in enumerate(rows):
        key = peers_of([part.value(row) for part in order])
        if not starts or key != last:
            starts.append(index)
            last = key
        group.append(len(starts) - 1)
    return Partition(rows, group, [*starts, len(rows)])


def _value_of(
    call: WindowCall, inside: Frame, order: Sequence[CompiledKey]
) -> Callable[[Partition], _Value]:
    name = call.function.name
    args = compiled(call.args, inside)
    if name in _RANKS:
        return lambda _partition: _RANKS[name]
    if name == "ntile":
        return lambda partition: _ntile(args[0], partition)
    if name in ("lag", "lead"):
        value = _shifted(args, back=name == "lag")
        return lambda _partition: value
    frame = FrameRows(call, order, inside)
    if call.function.kind is FunctionKind.AGGREGATE:
        run = aggregate_over(_plain(call), inside)
        return lambda _partition: lambda partition, index: run(frame.rows(partition, index))
    picked = _picked(name, args)
    return lambda _partition: lambda partition, index: picked(partition, index, frame)


def _rank(partition: Partition, index: int) -> int:
    return partition.starts[partition.group[index]] + 1


def _percent_rank(partition: Partition, index: int) -> float:
    count = len(partition.rows)
    return (_rank(partition, index) - 1) / (count - 1) if count > 1 else 0.0


def _cume_dist(partition: Partition, index: int) -> float:
    return partition.starts[partition.group[index] + 1] / len(partition.rows)


_RANKS: Final[dict[str, _Value]] = {
    "row_number": lambda _partition, index: index + 1,
    "rank": _rank,
    "dense_rank": lambda partition, index: partition.group[index] + 1,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}


def _ntile(count: Evaluator, partition: Partition) -> _Value:
    """The argument is that of the partition's first row, as in PostgreSQL."""
    buckets = count(partition.rows[0])
    if buckets is None:
        return lambda _partition, _index: None
    assert isinstance(buckets, int), "ntile takes an int4"
    if buckets <= 0:
        raise SqlError("22014", "argument of ntile must be greater than zero")
    size, larger = divmod(len(partition.rows), buckets)
    border = larger * (size + 1)

    def value(_partition: Partition, index: int) -> int:
        if index < border:
            return index // (size + 1) + 1
        return (index - border) // size + larger + 1

    return value


def _shifted(args: Sequence[Evaluator], *, back: bool) -> _Value:
    def value(partition: Partition, index: int) -> Value:
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


def _picked(name: str, args: Sequence[Evaluator]) -> Callable[[Partition, int, FrameRows], Value]:
    def value(partition: Partition, index: int, frame: FrameRows) -> Value:
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
