"""Register functions of the reference evaluator in DuckDB, as Arrow UDFs that work row by row.

Each call has an argument more, the number of the run that it belongs to: one that nobody waits for
any more is stopped inside of a batch, which DuckDB's own interrupt does not see.

INVARIANTS
  F1  a function is registered once, under a name that states its row and types
      (`sql/emit/state.py`, M3), before a statement that calls it runs.
"""

import itertools
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter, Signature
from itertools import accumulate, chain
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from compute.duckdb.remembered_values import remembering
from compute.interruption import Computation, ComputationStopped
from compute.reference.aggregates import aggregate_fold
from compute.reference.arrow import to_array, to_values
from compute.reference.expressions import Frame, Source, compile_expression
from compute.reference.functions.float_folds import (
    FloatFold,
    float_fold,
    float_frames,
    float_groups,
    fold_frames,
)
from compute.reference.groups import compile_aggregate
from compute.reference.registry import AggregateFold
from compute.reference.tagged_errors import encode_error
from sql.emit.duckdb.types import duckdb_type
from sql.emit.state import EVALUATOR_PREFIX, EvaluatorCall
from sql.errors import SqlError, statement_too_complex
from sql.plan.nodes import (
    Aggregate,
    Call,
    ColumnId,
    Const,
    Expr,
    Plan,
    WindowCall,
    begins_at_partition_start,
)
from sql.types.limits import VALUE_MAX
from sql.types.sql_type import SqlType, Value

_Column: TypeAlias = "pa.ChunkedArray[pa.Scalar[pa.DataType]]"
_Array: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"
RUN_ARGUMENT: Final = "run"
"""The name of the run's number among a statement's arguments."""
_CALL: Final = re.compile(rf"(\b{EVALUATOR_PREFIX}[0-9a-f]+\()")
_STOPPED: Final = SqlError("57014", "canceling statement due to user request")

_LONG: Final = 1 << 16
_PART_BYTES: Final = 1 << 20
"""Of columns whose values are made at once, in a millisecond. Larger: the event loop stands."""
_ITEM_BYTES: Final = 100
"""Approximate bytes of an element of a long array in Python."""


class _Failed(Exception):
    """Carries an SqlError through DuckDB as text."""


class LocalFunctions:
    """The functions that are registered with a database. Thread-safe."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._numbers = itertools.count(1)
        self._computations: dict[int, Computation] = {}
        """What runs compute here, by the number of the run."""

    def enter(self, computation: Computation) -> int:
        """A run begins: its number, the value of RUN_ARGUMENT."""
        number = next(self._numbers)
        self._computations[number] = computation
        return number

    def leave(self, number: int) -> None:
        """It is over."""
        self._computations.pop(number, None)

    def register(self, calls: Mapping[str, EvaluatorCall]) -> None:
        """Register the functions that the database lacks (F1)."""
        if calls.keys() <= self._names:
            return
        with self._lock:
            for name, call in calls.items():
                if name not in self._names:
                    self._create(name, call)
                    self._names.add(name)

    def _create(self, name: str, call: EvaluatorCall) -> None:
        function, types, result = _function(call)
        self._connection.create_function(
            name,
            self._stoppable(function, len(types)),
            ["bigint", *types],
            result,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=call.function.volatility == "volatile",
        )

    def _stoppable(self, function: Callable[..., _Array], arity: int) -> Callable[..., _Array]:
        """The function with the run's number in front."""

        def of_run(numbers: _Column, *arrays: _Column) -> _Array:
            computation = self._computations.get(numbers[0].as_py()) if len(numbers) else None
            if computation is None:
                return function(*arrays)
            try:
                return computation.run(lambda: function(*arrays))
            except ComputationStopped:
                raise _Failed(encode_error(_STOPPED)) from None

        return _described(of_run, arity + 1)


def with_run_argument(text: str) -> str:
    """The text of a statement, whose calls of registered functions say which run they are of."""
    return _CALL.sub(rf"\1${RUN_ARGUMENT}, ", text)


def _function(call: EvaluatorCall) -> tuple[Callable[..., Any], list[str], str]:
    """The function of a call, its argument types and its result type."""
    taken = [duckdb_type(arg.type) for arg in _columns(call)]
    made = duckdb_type(call.type)
    match call:
        case Call():
            return arrow_udf_of(call), taken, made
        case Aggregate():
            return _over_lists(call), [f"{type_}[]" for type_ in taken], made
        case WindowCall():
            # Of `sql/emit/running_windows.py`.
            places = (
                ["bigint[]"] if begins_at_partition_start(call.frame) else ["bigint[]", "bigint[]"]
            )
            return _over_frames(call), [f"{taken[0]}[]", *places], f"{made}[]"


def arrow_udf_of(call: Call) -> Callable[..., _Array]:
    """The call as a function over Arrow columns."""
    columns = {ColumnId(index): index for index in range(len(call.args))}
    evaluate = remembering(call, compile_expression(call, Frame(columns, (), _no_subplan)))
    types = [arg.type for arg in call.args]

    def results(arrays: Sequence[_Column]) -> Iterator[Value]:
        for part in _parts(arrays):
            values = [to_values(array, type_) for array, type_ in zip(part, types, strict=True)]
            yield from map(evaluate, zip(*values, strict=True))

    def over_columns(*arrays: _Column) -> _Array:
        with _passing():
            return to_array(_bounded(results(arrays)), call.type)

    return over_columns


def _parts(arrays: Sequence[_Column]) -> Iterator[Sequence[_Column]]:
    """The rows of columns by stretches that Python's values of are made at once: nobody else, not
    even the event loop, runs meanwhile.
    """
    rows, size = len(arrays[0]), sum(array.nbytes for array in arrays)
    step = rows if size <= _PART_BYTES else max(1, rows * _PART_BYTES // size)
    for first in range(0, rows, max(1, step)):
        yield [array.slice(first, step) for array in arrays]


def _bounded(values: Iterable[Value]) -> list[Value]:
    """The values of a batch; 53200 if they are too long together, which nothing else counts."""
    found: list[Value] = []
    length = 0
    for value in values:
        found.append(value)
        if isinstance(value, str | bytes | tuple) and len(value) >= _LONG:
            length += len(value) * (_ITEM_BYTES if isinstance(value, tuple) else 1)
            if length > VALUE_MAX:
                detail = f"The values of a batch of rows have more than {VALUE_MAX} bytes together."
                raise SqlError("53200", "out of memory", detail=detail)
    return found


def _over_lists(call: Aggregate) -> Callable[..., _Array]:
    """The aggregate as a function over lists of values."""
    of_floats = None if call.distinct else float_fold(call)
    if of_floats is not None:
        return _over_float_lists(of_floats, call.type)
    columns, nulls = _columns(call), call.function.nulls
    fold = _distinct_fold(call, len(columns)) if call.distinct else aggregate_fold(call)
    assert fold is not None, "the reference evaluator has every aggregate"
    rest = [arg.value for arg in call.args[len(columns) :] if isinstance(arg, Const)]

    def over_lists(*arrays: _Column) -> _Array:
        lists = [_lists(array, arg.type) for array, arg in zip(arrays, columns, strict=True)]
        with _passing():
            found = [
                fold(
                    [
                        (*values, *rest)
                        for values in zip(*group, strict=True)
                        if nulls or values[0] is not None
                    ]
                )
                for group in zip(*lists, strict=True)
            ]
            return to_array(found, call.type)

    return over_lists


def _distinct_fold(call: Aggregate, arity: int) -> AggregateFold:
    columns = {ColumnId(index): index for index in range(arity)}
    return compile_aggregate(call, Frame(columns, (), _no_subplan))


def _over_frames(call: WindowCall) -> Callable[..., _Array]:
    """A window call as a function over lists (`over_frames` of `sql/emit/state.py`)."""
    fold = float_fold(call)
    assert fold is not None, "there are frames for floats only"

    def over_frames(*arrays: _Column) -> _Array:
        lists = [_as_lists(array.combine_chunks()) for array in arrays]
        columns = [array.flatten() for array in lists]
        with _passing():
            found = [fold_frames(fold, frames) for frames in float_frames(columns, lists[0])]
            values = to_array(list(chain.from_iterable(found)), call.type)
            offsets = accumulate(map(len, found), initial=0)
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)

    return over_frames


def _over_float_lists(fold: FloatFold, type_: SqlType) -> Callable[..., _Array]:
    def over_lists(lists: _Column) -> _Array:
        with _passing():
            found = [
                fold(values)
                for chunk in lists.chunks
                for values in float_groups(_as_lists(chunk).flatten(), chunk)
            ]
            return to_array(found, type_)

    return over_lists


def _as_lists(array: _Array) -> "pa.ListArray[pa.Scalar[pa.DataType]]":
    assert isinstance(array, pa.ListArray), "an aggregate takes lists"
    return array


def _columns(call: EvaluatorCall) -> Sequence[Expr]:
    """The arguments that are columns, or lists of values of an aggregate."""
    return call.args if isinstance(call, Call) else call.args[: len(call.function.args)]


def _lists(array: _Column, type_: SqlType) -> Iterator[Sequence[Value]]:
    for chunk in array.chunks:
        lists = _as_lists(chunk)
        values = to_values(pa.chunked_array([lists.flatten()]), type_)
        first = 0
        for length in lists.value_lengths().to_pylist():
            # NULL is the list of no values.
            yield values[first : first + (length or 0)]
            first += length or 0


@contextmanager
def _passing() -> Generator[None]:
    try:
        yield
    except SqlError as error:
        raise _Failed(encode_error(error)) from error
    except RecursionError as error:
        raise _Failed(encode_error(statement_too_complex())) from error


def _described(function: Callable[..., _Array], arity: int) -> Callable[..., _Array]:
    """Give the function one parameter for each type, as DuckDB expects; it evaluates
    annotations.
    """
    function.__annotations__.clear()
    parameters = [Parameter(f"a{index}", Parameter.POSITIONAL_ONLY) for index in range(arity)]
    vars(function)["__signature__"] = Signature(parameters)
    return function


def _no_subplan(_plan: Plan, _frame: Frame) -> Source:
    raise AssertionError("M3 of `sql/emit/state.py`: a call is over columns")
