"""Set-returning functions (generate_series, unnest, generate_subscripts) as iterators of rows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

from compute.reference.expressions import Frame, Row, Source
from compute.reference.functions.generate_series import SERIES, numbers
from compute.reference.groups import compiled
from sql.errors import not_supported
from sql.plan.nodes import SetCall, SetScan
from sql.types.sql_type import Value

_Values: TypeAlias = Iterator[Value]


def can_run_sets(plan: SetScan) -> bool:
    """Whether every call has an implementation here."""
    return all(call.function.name in _MAKERS for call in plan.calls)


def sets(plan: SetScan, frame: Frame) -> Source:
    """The rows of the calls, side by side."""
    if not can_run_sets(plan):
        raise not_supported(f"the set-returning function {plan.calls[0].function.id}")
    args = [compiled(call.args, frame) for call in plan.calls]
    makers = [_MAKERS[call.function.name](call) for call in plan.calls]

    def run() -> Iterator[Row]:
        columns = [make([arg(()) for arg in some]) for make, some in zip(makers, args, strict=True)]
        for number, row in enumerate(zip_longest(*columns), 1):
            yield row if plan.ordinality is None else (*row, number)

    return run


_Maker: TypeAlias = Callable[[SetCall], Callable[[Sequence[Value]], _Values]]


def _unnest(_call: SetCall) -> Callable[[Sequence[Value]], _Values]:
    def run(args: Sequence[Value]) -> _Values:
        (array,) = args
        return iter(array if isinstance(array, tuple) else ())

    return run


def _subscripts(_call: SetCall) -> Callable[[Sequence[Value]], _Values]:
    def run(args: Sequence[Value]) -> _Values:
        array, dimension, *rest = args
        reverse = rest[0] if rest else False
        if not isinstance(array, tuple) or dimension != 1 or reverse is None:
            return iter(())
        found = range(1, len(array) + 1)
        return iter(reversed(found) if reverse else found)

    return run


def _series(call: SetCall) -> Callable[[Sequence[Value]], _Values]:
    series = SERIES.get(",".join(call.function.args), numbers)

    def run(args: Sequence[Value]) -> _Values:
        return iter(()) if None in args else series(*args)

    return run


_MAKERS: Final[dict[str, _Maker]] = {
    "generate_series": _series,
    "unnest": _unnest,
    "generate_subscripts": _subscripts,
}
