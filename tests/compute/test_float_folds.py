"""Numpy and the evaluator agree bit by bit (L1 of `compute/float_folds.py`)."""

import random

import numpy as np
import pyarrow as pa
import pytest

from compute.float_folds import float_fold, float_groups
from compute.reference_aggregates import folder
from sql.errors import SqlError
from sql.functions import function_by_id
from sql.plan import Aggregate, ColumnId, ColumnRef
from sql.types import FLOAT4, FLOAT8, SqlType

_VARIANCES = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")


def _call(name: str, source: SqlType, target: SqlType) -> Aggregate:
    function = function_by_id(f"{name}({source.name})")
    return Aggregate(function, (ColumnRef(ColumnId(0), source),), False, None, (), target)


_CALLS = [
    _call("sum", FLOAT4, FLOAT4),
    *[_call(name, source, FLOAT8) for name in _VARIANCES for source in (FLOAT4, FLOAT8)],
]


@pytest.mark.parametrize("call", _CALLS, ids=lambda call: call.function.id)
def test_numpy_answers_as_the_evaluator(call: Aggregate) -> None:
    chance = random.Random(7)
    quick, slow = float_fold(call), folder(call)
    assert quick is not None
    assert slow is not None
    width = np.float32 if call.args[0].type is FLOAT4 else np.float64
    for length in (0, 1, 2, 31, 32, 33, 1000):
        for scale in (1.0, 1e-3, 1e9):
            values = np.array([chance.gauss(5.0, scale) for _ in range(length)], width)
            assert quick(values) == slow([(value,) for value in values.tolist()])


def test_overflow_is_the_evaluators() -> None:
    fold = float_fold(_call("var_pop", FLOAT8, FLOAT8))
    assert fold is not None
    with pytest.raises(SqlError, match="overflow"):
        fold(np.array([1e300, -1e300] * 50))
    assert str(fold(np.array([1.0, np.inf] * 50))) == "nan"


def test_lists_are_cut_and_have_no_nulls() -> None:
    lists = pa.array([[1.0, None], None, [], [None], [2.0, 3.0]], pa.list_(pa.float64()))
    found = [group.tolist() for group in float_groups(lists.flatten(), lists)]
    assert found == [[1.0], [], [], [], [2.0, 3.0]]
