"""Every function of the table stops, also inside of one call over one large value.

Each is called with large arguments in a thread. One that has not answered after a moment is
stopped, and must end. One that does not runs into the limit of the test, which says where it
stands.
"""

from concurrent.futures import TimeoutError as NotYet
from decimal import Decimal
from typing import Final

import pytest

from compute.interruption import STOP_AGAIN_S, Computation, ComputationStopped
from compute.reference.executor import evaluate
from compute.reference.function_table import implementations
from sql.binder.expressions.calls import TYPES_BY_NAME
from sql.functions.table import function_by_id
from sql.plan.nodes import Call, Const
from sql.types.sql_type import TEXT, Value
from storage.threads import Threads

LENGTH: Final = 400_000
MOMENT_S: Final = 0.01
_TEXTS: Final = ("ab" * LENGTH, "[" + "1," * LENGTH + "1]", "1" * 90_000)
_OBJECT: Final = "{" + ", ".join(f'"k{number}": {number}' for number in range(LENGTH // 4)) + "}"
_ARRAY: Final = "[" + ", ".join(["1"] * LENGTH) + "]"
_VALUES: Final[dict[str, tuple[Value, ...]]] = {
    "text": _TEXTS,
    "varchar": _TEXTS,
    "bpchar": _TEXTS,
    "bytea": (b"ab" * LENGTH,),
    "json": (_ARRAY, _OBJECT),
    "jsonb": (_ARRAY, _OBJECT),
    "jsonpath": ("$[*] ? (@ > 0)", "$.**"),
    "numeric": (Decimal("9" * 20 + "." + "9" * 18), Decimal("1.000000000000000001")),
    "int2": (32_000, 2),
    "int4": (100_000, 2, 2_000_000_000),
    "int8": (2_000_000, 2, 1 << 62),
    "float8": (1e300, 1.5),
    "float4": (1.5,),
    "bool": (True,),
    "date": (0,),
    "timestamp": (0,),
    "timestamptz": (0,),
    "oid": (23,),
    "_text": (("ab",) * LENGTH,),
    "_int4": (tuple(range(LENGTH)),),
    "_int8": (tuple(range(LENGTH)),),
    "_float8": (tuple(map(float, range(LENGTH))),),
    "_numeric": (tuple(map(Decimal, range(LENGTH))),),
    "_bool": ((True,) * LENGTH,),
    "_json": (("1",) * LENGTH,),
    "_jsonb": (("1",) * LENGTH,),
    "_bytea": ((b"ab",) * LENGTH,),
}
_STANDS_FOR: Final = {
    "anyelement": "int4",
    "anynonarray": "int4",
    "anycompatible": "int4",
    "anyarray": "_int4",
    "anycompatiblearray": "_int4",
    "any": "text",
}


def call_of(id_: str, which: int) -> Call | None:
    """A call with large arguments; None if one is of a type whose values are small."""
    function = function_by_id(id_)
    types = [_STANDS_FOR.get(name, name) for name in function.args]
    if not types or any(name not in _VALUES for name in types):
        return None
    values = [_VALUES[name][which % len(_VALUES[name])] for name in types]
    args = tuple(
        Const(value, TYPES_BY_NAME[name]) for value, name in zip(values, types, strict=True)
    )
    result = _STANDS_FOR.get(function.result, function.result)
    return Call(function, args, TYPES_BY_NAME.get(result, TEXT))


def stops(threads: Threads, call: Call) -> bool:
    """Whether it had to be stopped."""
    computation = Computation()
    job = threads.submit(computation.run, lambda: evaluate(call) is None)
    wait = MOMENT_S
    while True:
        try:
            return isinstance(job.exception(wait), ComputationStopped)
        except NotYet:
            computation.stop()
            wait = STOP_AGAIN_S


# The collector may run finalizers of other tests' garbage in the thread that is stopped (I3).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_every_row_stops() -> None:
    called = stopped = 0
    with Threads(1) as threads:
        for place, id_ in enumerate(sorted(implementations())):
            call = call_of(id_, place)
            if call is not None:
                called += 1
                stopped += stops(threads, call)
                assert threads.submit(lambda: 7).result() == 7
    assert called > 500
    assert stopped > 20
