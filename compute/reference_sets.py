"""Set-returning functions as lists of rows."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Final, TypeAlias

from compute.reference_expressions import Frame, Row, Source, compile_expression
from compute.reference_groups import compiled
from compute.reference_numbers import EXACT
from compute.reference_times import length, whole_zone
from sql.errors import SqlError, not_supported
from sql.functions import function_by_id
from sql.plan import Call, ColumnId, ColumnRef, SetCall, SetScan
from sql.types import INTERVAL, TEXT, Interval, Value

_Values: TypeAlias = Iterator[Value]
_ADDITIONS: Final = {
    "timestamp": "timestamp + interval",
    "timestamptz": "timestamptz + interval",
}
_NAMED_ADDITION: Final = "date_add(timestamptz,interval,text)"


def can_run_sets(plan: SetScan) -> bool:
    """Whether every call has an implementation here."""
    return all(call.function.name in _MAKERS for call in plan.calls)


def sets(plan: SetScan, frame: Frame) -> Source:
    """The rows of the calls, side by side."""
    if not can_run_sets(plan):
        raise not_supported(f"the set-returning function {plan.calls[0].function.id}")
    args = [compiled(call.args, frame) for call in plan.calls]
    makers = [_MAKERS[call.function.name](call, frame) for call in plan.calls]

    def run() -> Iterator[Row]:
        columns = [make([arg(()) for arg in some]) for make, some in zip(makers, args, strict=True)]
        for number, row in enumerate(zip_longest(*columns), 1):
            yield row if plan.ordinality is None else (*row, number)

    return run


_Maker: TypeAlias = Callable[[SetCall, Frame], Callable[[Sequence[Value]], _Values]]


def _unnest(_call: SetCall, _frame: Frame) -> Callable[[Sequence[Value]], _Values]:
    def run(args: Sequence[Value]) -> _Values:
        (array,) = args
        return iter(array if isinstance(array, tuple) else ())

    return run


def _subscripts(_call: SetCall, _frame: Frame) -> Callable[[Sequence[Value]], _Values]:
    def run(args: Sequence[Value]) -> _Values:
        array, dimension, *rest = args
        reverse = rest[0] if rest else False
        if not isinstance(array, tuple) or dimension != 1 or reverse is None:
            return iter(())
        found = range(1, len(array) + 1)
        return iter(reversed(found) if reverse else found)

    return run


def _series(call: SetCall, frame: Frame) -> Callable[[Sequence[Value]], _Values]:
    if call.type.name in _ADDITIONS:
        return _times(call, frame)

    def run(args: Sequence[Value]) -> _Values:
        if any(arg is None for arg in args):
            return iter(())
        start, stop, *rest = args
        step = rest[0] if rest else 1
        if not step:
            raise SqlError("22023", "step size cannot equal zero")
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
            return iter(range(start, stop + (1 if step > 0 else -1), step))
        return _decimals(Decimal(str(start)), Decimal(str(stop)), Decimal(str(step)))

    return run


def _decimals(start: Decimal, stop: Decimal, step: Decimal) -> _Values:
    value = start
    while value <= stop if step > 0 else value >= stop:
        yield value
        value = EXACT.add(value, step)


def _times(call: SetCall, frame: Frame) -> Callable[[Sequence[Value]], _Values]:
    """Each value is the one before it and the step, as PostgreSQL adds them up."""
    # The zones behind the step: of the session, or a named one and the session's.
    zones = [ColumnRef(ColumnId(-3 - place), TEXT) for place in range(len(call.args) - 3)]
    operands = (ColumnRef(ColumnId(-1), call.type), ColumnRef(ColumnId(-2), INTERVAL), *zones)
    addition = _NAMED_ADDITION if len(zones) > 1 else _ADDITIONS[call.type.name]
    made = Call(function_by_id(addition), operands, call.type)
    places = {operand.id: place for place, operand in enumerate(operands)}
    add = compile_expression(made, Frame(places, frame.parameters, frame.subplan))

    def run(args: Sequence[Value]) -> _Values:
        if any(arg is None for arg in args):
            return
        start, stop, step, *rest = args
        assert isinstance(step, Interval), "the step is an interval"
        if len(zones) > 1:
            # A name that nobody knows is an error, whatever the step is.
            whole_zone(*[str(name) for name in rest])
        direction = length(step)
        if not direction:
            raise SqlError("22023", "step size cannot equal zero")
        value = start
        while value <= stop if direction > 0 else value >= stop:  # type: ignore[operator]
            yield value
            value = add((value, step, *rest))

    return run


_MAKERS: Final[dict[str, _Maker]] = {
    "generate_series": _series,
    "unnest": _unnest,
    "generate_subscripts": _subscripts,
}
