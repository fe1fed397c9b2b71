"""Numpy and the evaluator agree bit by bit (L1 of `compute/reference/functions/float_folds.py`)."""

import random

import numpy as np
import pyarrow as pa
import pytest

from compute.reference.aggregates import aggregate_fold
from compute.reference.functions.float_folds import (
    FloatFold,
    float_fold,
    float_frames,
    float_groups,
    fold_frames,
)
from sql.errors import SqlError
from sql.functions.table import function_by_id
from sql.plan.nodes import Aggregate, ColumnId, ColumnRef
from sql.types.sql_type import FLOAT4, FLOAT8, SqlType

_VARIANCES = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")


def _call(name: str, source: SqlType, target: SqlType) -> Aggregate:
    function = function_by_id(f"{name}({source.name})")
    return Aggregate(function, (ColumnRef(ColumnId(0), source),), False, None, (), target)


_CALLS = [
    _call("sum", FLOAT4, FLOAT4),
    _call("sum", FLOAT8, FLOAT8),
    _call("avg", FLOAT4, FLOAT8),
    _call("avg", FLOAT8, FLOAT8),
    *[_call(name, source, FLOAT8) for name in _VARIANCES for source in (FLOAT4, FLOAT8)],
]


@pytest.mark.parametrize("call", _CALLS, ids=lambda call: call.function.id)
def test_numpy_answers_as_the_evaluator(call: Aggregate) -> None:
    chance = random.Random(7)
    quick, slow = _fold(call), aggregate_fold(call)
    assert slow is not None
    width = np.float32 if call.args[0].type is FLOAT4 else np.float64
    for length in (0, 1, 2, 31, 32, 33, 1000):
        for scale in (1.0, 1e-3, 1e9):
            values = np.array([chance.gauss(5.0, scale) for _ in range(length)], width)
            assert quick(values) == slow([(value,) for value in values.tolist()])


def _fold(call: Aggregate) -> FloatFold:
    fold = float_fold(call)
    assert fold is not None
    return fold


@pytest.mark.parametrize("call", _CALLS, ids=lambda call: call.function.id)
@pytest.mark.parametrize("odd", [None, float("inf"), float("nan")])
def test_each_frame_is_the_fold_of_its_values(call: Aggregate, odd: float | None) -> None:
    """`odd`: a value among them, which is left to the evaluator."""
    chance, fold = random.Random(8), _fold(call)
    width = pa.float32() if call.args[0].type is FLOAT4 else pa.float64()
    for length in (0, 1, 3, 40, 200):
        values: list[float | None] = [chance.gauss(5.0, 2.0) for _ in range(length)]
        for place in range(0, length, 7):
            values[place] = None if place % 2 else odd
        ends = [chance.randint(0, length) for _ in values]
        sizes = [chance.randint(0, end) for end in ends]
        taken = [pa.array(values, width), pa.array(ends, pa.int64()), pa.array(sizes, pa.int64())]
        lists = pa.ListArray.from_arrays(pa.array([0, length], pa.int32()), taken[0])
        [sized] = float_frames(taken, lists)
        [running] = float_frames(taken[:2], lists)
        known = [value.as_py() for value in taken[0]]

        def of(start: int, end: int, known: list[float | None] = known) -> object:
            kept = [value for value in known[start:end] if value is not None]
            return fold(np.array(kept, np.dtype(width.to_pandas_dtype())))

        assert repr(fold_frames(fold, running)) == repr([of(0, end) for end in ends])
        pairs = zip(ends, sizes, strict=True)
        assert repr(fold_frames(fold, sized)) == repr([of(end - size, end) for end, size in pairs])


def test_overflow_is_the_evaluators() -> None:
    fold = _fold(_call("var_pop", FLOAT8, FLOAT8))
    with pytest.raises(SqlError, match="overflow"):
        fold(np.array([1e300, -1e300] * 50))
    assert str(fold(np.array([1.0, np.inf] * 50))) == "nan"


def test_lists_are_cut_and_have_no_nulls() -> None:
    lists = pa.array([[1.0, None], None, [], [None], [2.0, 3.0]], pa.list_(pa.float64()))
    found = [group.tolist() for group in float_groups(lists.flatten(), lists)]
    assert found == [[1.0], [], [], [], [2.0, 3.0]]
