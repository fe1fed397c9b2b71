"""Set-returning functions (generate_series, unnest, generate_subscripts) as iterators of rows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

from compute.reference.expressions import Frame, Row, Source
from compute.reference.functions.generate_series import SERIES, number_series
from compute.reference.groups import compile_expressions
from compute.reference.registry import Registry
from sql.errors import not_supported
from sql.functions.table import FunctionKind
from sql.plan.nodes import SetCall, SetScan
from sql.types.sql_type import Value

_Values: TypeAlias = Iterator[Value]
_Rows: TypeAlias = Callable[[Sequence[Value]], _Values]
_Maker: TypeAlias = Callable[[SetCall], _Rows]

SETS: Final = Registry[_Maker](FunctionKind.SET)
_returns: Final = SETS.maker
_NUMBERS: Final = (
    "int4,int4", "int4,int4,int4", "int8,int8", "int8,int8,int8", "numeric,numeric",
    "numeric,numeric,numeric",
)  # fmt: skip


def compile_set_calls(plan: SetScan, frame: Frame) -> Source:
    """The rows of the calls, side by side. Raises 0A000."""
    known = SETS.makers()
    if not all(call.function.id in known for call in plan.calls):
        raise not_supported(f"the set-returning function {plan.calls[0].function.id}")
    args = [compile_expressions(call.args, frame) for call in plan.calls]
    makers = [known[call.function.id](call) for call in plan.calls]

    def run() -> Iterator[Row]:
        columns = [make([arg(()) for arg in some]) for make, some in zip(makers, args, strict=True)]
        for number, row in enumerate(zip_longest(*columns), 1):
            yield row if plan.ordinality is None else (*row, number)

    return run


# --- the functions -----------------------------------------------------------------------------


@_returns("unnest(anyarray)")
def _unnest(_call: SetCall) -> _Rows:
    def run(args: Sequence[Value]) -> _Values:
        (array,) = args
        return iter(array if isinstance(array, tuple) else ())

    return run


@_returns("generate_subscripts(anyarray,int4)", "generate_subscripts(anyarray,int4,bool)")
def _subscripts(_call: SetCall) -> _Rows:
    def run(args: Sequence[Value]) -> _Values:
        array, dimension, *rest = args
        reverse = rest[0] if rest else False
        if not isinstance(array, tuple) or dimension != 1 or reverse is None:
            return iter(())
        found = range(1, len(array) + 1)
        return iter(reversed(found) if reverse else found)

    return run


@_returns(*[f"generate_series({types})" for types in (*SERIES, *_NUMBERS)])
def _series(call: SetCall) -> _Rows:
    series = SERIES.get(",".join(call.function.args), number_series)

    def run(args: Sequence[Value]) -> _Values:
        return iter(()) if None in args else series(*args)

    return run
