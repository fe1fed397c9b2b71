"""Run functions of the reference evaluator over Arrow arrays, in Spark's Python workers.

    arrays of a batch ─▶ rows of Python values ─▶ evaluator, row by row ─▶ struct (value, error)

INVARIANTS
  P1  functions arrive bound and pickled by the server; no user text is parsed or evaluated as code.
  P2  a row never makes the batch fail: its error stands in `e`, tagged, and `v` is NULL
      (`sql/emit/spark/worker_functions.py`, O2). Lack of memory is an error of the whole batch.
      Anything else is a bug and ends the task.
  P3  only `sql` and the evaluator are imported, because a worker starts while a query waits.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, TypeAlias

import pyarrow as pa

from compute.reference.arrow import to_array, to_values
from compute.reference.expressions import Frame, Row, Source, compile_expression
from compute.reference.functions.float_folds import (
    Floats,
    float_fold,
    float_frames,
    float_groups,
    fold_frames,
)
from compute.reference.groups import compile_aggregate
from compute.reference.tagged_errors import encode_error
from compute.reference.windows import compile_window_call
from sql.emit.state import WorkerFunction
from sql.errors import SqlError, statement_too_complex
from sql.plan.nodes import Aggregate, ColumnId, Plan, WindowCall
from sql.types.sql_type import SqlType, Value

_Array: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"
# A row is a tuple of values, for an aggregate the list of rows of a group, for a window call the
# rows or the frames of a partition; then the answer is a list.
_Evaluate: TypeAlias = Callable[[Any], Any]

_COMPILED_MAX: Final = 256
"""Compiled functions that a worker caches: each task sends its functions again."""
_compiled: "OrderedDict[str, _Evaluate]" = OrderedDict()


@dataclass(frozen=True, slots=True)
class ArrowFunction:
    """The function of this name; equal names mean equal functions (O1 of
    `sql/emit/spark/worker_functions.py`).
    """

    name: str
    function: WorkerFunction

    def __call__(self, *arrays: _Array) -> _Array:
        """The answers for the rows of a batch (P2)."""
        try:
            return self._answers(arrays)
        except MemoryError:
            # What the rows had taken is free again.
            count = len(arrays[0])
            return self._structs([None] * count, [encode_error(_out_of_memory())] * count)

    def _answers(self, arrays: Sequence[_Array]) -> _Array:
        evaluate = self._evaluate()
        values: list[Any] = []
        errors: list[str | None] = []
        for row in self._rows(arrays):
            try:
                value, error = evaluate(row), None
            except SqlError as found:
                value, error = None, encode_error(found)
            except RecursionError:
                value, error = None, encode_error(statement_too_complex())
            values.append(value)
            errors.append(error)
        return self._structs(values, errors)

    def _structs(self, values: Sequence[Any], errors: Sequence[str | None]) -> _Array:
        type_ = self.function.expr.type
        answers = _lists(values, type_) if self.function.makes_list else to_array(values, type_)
        parts = [answers, pa.array(errors, pa.string())]
        return pa.StructArray.from_arrays(parts, names=["v", "e"])

    def _rows(self, arrays: Sequence[_Array]) -> Iterable[object]:
        types = self.function.columns
        if self.function.of_frames:
            return float_frames(_items(arrays[0]).flatten(), arrays[0])
        if self.function.makes_list:
            return _groups(arrays[0], types)
        if isinstance(self.function.expr, Aggregate):
            of_floats = _float_fold(self.function.expr) is not None
            return _float_lists(arrays[0]) if of_floats else _groups(arrays[0], types)
        return _tuples(arrays, types, len(arrays[0]))

    def _evaluate(self) -> _Evaluate:
        found = _compiled.pop(self.name, None) or _evaluator(self.function)
        _compiled[self.name] = found
        while len(_compiled) > _COMPILED_MAX:
            _compiled.popitem(last=False)
        return found


def _lists(lists: Sequence[Sequence[Value] | None], element: SqlType) -> _Array:
    """Lists of values of this type, which may be lists themselves."""
    offsets, items = [0], list[Value]()
    for found in lists:
        items += found or ()
        offsets.append(len(items))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), to_array(items, element))


def _out_of_memory() -> SqlError:
    return SqlError(
        "53200", "out of memory", detail="A worker of Spark needs more than it may take."
    )


def spark_type_of_json(text: str) -> object:
    """Spark's type for this JSON."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(text))


def _evaluator(function: WorkerFunction) -> _Evaluate:
    columns = {ColumnId(index): index for index in range(len(function.columns))}
    frame = Frame(columns, (), _no_subplan)
    try:
        if isinstance(function.expr, WindowCall):
            call = function.expr
            return _of_frames(call) if function.of_frames else compile_window_call(call, frame)
        if isinstance(function.expr, Aggregate):
            return _float_fold(function.expr) or compile_aggregate(function.expr, frame)
        return compile_expression(function.expr, frame)
    except SqlError as error:
        return _failing(error)


def _of_frames(call: WindowCall) -> _Evaluate:
    fold = float_fold(call)
    assert fold is not None, "there are frames for floats only"
    return lambda frames: fold_frames(fold, frames)


def _float_fold(call: Aggregate) -> _Evaluate | None:
    """An implementation that takes the column of a group instead of its rows."""
    return None if call.distinct or call.order else float_fold(call)


def _failing(error: SqlError) -> _Evaluate:
    """A function that cannot be compiled fails for every row, but not if there is no row."""

    def fail(_row: object) -> Value:
        raise error

    return fail


def _tuples(arrays: Sequence[_Array], types: Sequence[SqlType], count: int) -> Iterable[Row]:
    if not types:
        return repeat((), count)
    pairs = zip(arrays, types, strict=True)
    return zip(*[to_values(array, type_) for array, type_ in pairs], strict=True)


def _items(array: _Array) -> pa.StructArray:
    assert isinstance(array, pa.ListArray), "an aggregate takes a list of rows"
    items = array.flatten()
    assert isinstance(items, pa.StructArray), "a row is a struct"
    return items


def _float_lists(array: _Array) -> Iterator[Floats]:
    return float_groups(_items(array).flatten()[0], array)


def _groups(array: _Array, types: Sequence[SqlType]) -> Iterator[Sequence[Row]]:
    assert isinstance(array, pa.ListArray), "an aggregate takes a list of rows"
    items = _items(array)
    rows = list(_tuples(items.flatten(), types, len(items)))
    first = 0
    for length in array.value_lengths().to_pylist():
        # NULL is the list of no rows.
        yield rows[first : first + (length or 0)]
        first += length or 0


def _no_subplan(_plan: Plan, _frame: Frame) -> Source:
    raise AssertionError(
        "O1 of `sql/emit/spark/worker_functions.py`: a subquery's value is an argument"
    )
