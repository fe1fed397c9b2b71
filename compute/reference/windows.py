"""Window functions: evaluate each call over the frame of every row.

    partitions ─▶ sorted, cut into groups of peers ─▶ for each row its frame ─▶ one value a call

INVARIANTS
  W1  rows keep the order of the input; among peers the order of the input decides.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from compute.reference.aggregates import aggregate_fold
from compute.reference.expressions import Evaluator, Frame, Row, Source
from compute.reference.frames import Partition, WindowFrameRows
from compute.reference.functions.ordering import Key, row_key
from compute.reference.groups import (
    CompiledKey,
    compile_aggregate,
    compile_expressions,
    compile_sort_keys,
    sort_rows,
)
from compute.reference.registry import Registry
from sql.errors import SqlError, not_supported
from sql.functions.table import FunctionKind
from sql.plan.nodes import Aggregate, Window, WindowCall
from sql.types.sql_type import Value

_Value: TypeAlias = Callable[[Partition, int], Value]
_Args: TypeAlias = Sequence[Evaluator]
_MakeFrame: TypeAlias = Callable[[], WindowFrameRows]
_Maker: TypeAlias = Callable[[_Args, _MakeFrame], Callable[[Partition], _Value]]

WINDOWS: Final = Registry[_Maker](FunctionKind.WINDOW)
_computes: Final = WINDOWS.maker


def as_aggregate(call: WindowCall) -> Aggregate:
    """An aggregate over a window, as one over the rows of a frame."""
    return Aggregate(call.function, call.args, False, call.filter, (), call.type)


def compile_windows(plan: Window, source: Source, inside: Frame) -> Source:
    """The rows of the input, each with the values of the calls behind it."""
    makers = [compile_window_call(call, inside) for call in plan.calls]

    def run() -> Iterator[Row]:
        rows = list(source())
        columns = [make(rows) for make in makers]
        for index, row in enumerate(rows):
            yield (*row, *[column[index] for column in columns])

    return run


# --- one call ----------------------------------------------------------------------------------


def compile_window_call(call: WindowCall, inside: Frame) -> Callable[[list[Row]], list[Value]]:
    """The values of a call for any rows, in their order. Raises 0A000."""
    maker = WINDOWS.makers().get(call.function.id)
    if maker is None and aggregate_fold(as_aggregate(call)) is None:
        raise not_supported(f"this window of {call.function.id}")
    partition_keys = compile_expressions(call.partition, inside)
    partition_of = row_key([expr.type for expr in call.partition])
    order = compile_sort_keys(call.order, inside)
    peers_of = row_key([key.expr.type for key in call.order])
    value_of = _value_of(call, maker, inside, order)

    def run(rows: list[Row]) -> list[Value]:
        parts: dict[Key, list[Row]] = {}
        for number, row in enumerate(rows):
            key = partition_of([part(row) for part in partition_keys])
            # The number goes along behind the columns, where no expression looks.
            parts.setdefault(key, []).append((*row, number))
        found: list[Value] = [None] * len(rows)
        for members in parts.values():
            partition = _partition(sort_rows(members, order), order, peers_of)
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
    call: WindowCall, maker: _Maker | None, inside: Frame, order: Sequence[CompiledKey]
) -> Callable[[Partition], _Value]:
    args = compile_expressions(call.args, inside)
    if maker is not None:
        return maker(args, lambda: WindowFrameRows(call, order, inside))
    frame, run = WindowFrameRows(call, order, inside), compile_aggregate(as_aggregate(call), inside)
    return lambda _partition: lambda partition, index: run(frame.rows(partition, index))


# --- the functions -----------------------------------------------------------------------------


def _ranks(value: _Value) -> _Maker:
    """A function without arguments or a frame."""
    return lambda _args, _frame: lambda _partition: value


def _rank(partition: Partition, index: int) -> int:
    return partition.starts[partition.group[index]] + 1


def _percent_rank(partition: Partition, index: int) -> float:
    count = len(partition.rows)
    return (_rank(partition, index) - 1) / (count - 1) if count > 1 else 0.0


def _cume_dist(partition: Partition, index: int) -> float:
    return partition.starts[partition.group[index] + 1] / len(partition.rows)


_computes("row_number()")(_ranks(lambda _partition, index: index + 1))
_computes("rank()")(_ranks(_rank))
_computes("dense_rank()")(_ranks(lambda partition, index: partition.group[index] + 1))
_computes("percent_rank()")(_ranks(_percent_rank))
_computes("cume_dist()")(_ranks(_cume_dist))


@_computes("ntile(int4)")
def _ntile(args: _Args, _frame: _MakeFrame) -> Callable[[Partition], _Value]:
    return lambda partition: _tile(args[0], partition)


def _tile(count: Evaluator, partition: Partition) -> _Value:
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


@_computes("lag(anyelement)", "lag(anyelement,int4)", "lag(anycompatible,int4,anycompatible)")
def _lag(args: _Args, _frame: _MakeFrame) -> Callable[[Partition], _Value]:
    value = _shifted(args, back=True)
    return lambda _partition: value


@_computes("lead(anyelement)", "lead(anyelement,int4)", "lead(anycompatible,int4,anycompatible)")
def _lead(args: _Args, _frame: _MakeFrame) -> Callable[[Partition], _Value]:
    value = _shifted(args, back=False)
    return lambda _partition: value


def _shifted(args: _Args, *, back: bool) -> _Value:
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


@_computes("first_value(anyelement)")
def _first_value(args: _Args, make_frame: _MakeFrame) -> Callable[[Partition], _Value]:
    return _picked(args, make_frame(), lambda _row: 0)


@_computes("last_value(anyelement)")
def _last_value(args: _Args, make_frame: _MakeFrame) -> Callable[[Partition], _Value]:
    return _picked(args, make_frame(), lambda _row: -1)


@_computes("nth_value(anyelement,int4)")
def _nth_value(args: _Args, make_frame: _MakeFrame) -> Callable[[Partition], _Value]:
    def place(row: Row) -> int | None:
        number = args[1](row)
        if number is None:
            return None
        assert isinstance(number, int), "nth_value takes an int4"
        if number <= 0:
            raise SqlError("22016", "argument of nth_value must be greater than zero")
        return number - 1

    return _picked(args, make_frame(), place)


def _picked(
    args: _Args, frame: WindowFrameRows, place_of: Callable[[Row], int | None]
) -> Callable[[Partition], _Value]:
    """The first argument of one row of the frame; NULL for a place that it does not have."""

    def value(partition: Partition, index: int) -> Value:
        place = place_of(partition.rows[index])
        if place is None:
            return None
        rows = frame.rows(partition, index)
        return args[0](rows[place]) if -1 <= place < len(rows) and rows else None

    return lambda _partition: value
