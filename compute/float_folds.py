"""Aggregates whose last digits hang on the order of addition, over whole columns of floats.

    list of a group's floats ─▶ running sums by numpy ─▶ one value, a hundredth of the time that the
                                                         evaluator's loop takes

INVARIANTS
  L1  an answer is bit by bit that of `reference_aggregates.folder`: numpy adds up running sums one
      after another, as that does (its plain sum() does not). What is not finite, and may be an
      error, is left to it.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compute.reference_aggregates import folder
from sql.plan import Aggregate, ColumnRef
from sql.types import Value

Floats: TypeAlias = "npt.NDArray[np.floating[Any]]"
_Array: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"

_MANY: Final = 32
"""Values from which numpy is faster."""
_FLOATS: Final = frozenset({"float4", "float8"})


def float_fold(call: Aggregate) -> Callable[[Floats], Value] | None:
    """What computes this aggregate of a column's values, or None if it is not one of these.
    DISTINCT and order are the caller's.
    """
    found = _FOLDS.get(call.function.name)
    if found is None or not isinstance(call.args[0], ColumnRef):
        return None
    if call.args[0].type.name not in _FLOATS:
        return None
    fold = folder(call)
    assert fold is not None, "the reference evaluator has every aggregate"

    def run(values: Floats) -> Value:
        if len(values) >= _MANY:
            with np.errstate(all="ignore"):
                value = found(values)
            if math.isfinite(value):
                return value
        return fold([(value,) for value in values.tolist()])

    return run


def float_groups(items: _Array, lists: _Array) -> Iterator[Floats]:
    """The values of each list but NULLs. `items`: those of all lists; a list may be NULL."""
    assert isinstance(lists, pa.ListArray), "an aggregate takes lists"
    values: Floats = items.to_numpy(zero_copy_only=False)
    known = items.is_valid().to_numpy(zero_copy_only=False) if items.null_count else None
    first = 0
    for length in lists.value_lengths().to_pylist():
        end = first + (length or 0)
        group = values[first:end]
        yield group if known is None else group[known[first:end]]
        first = end


def _sum(values: Floats) -> float:
    return float(np.add.accumulate(values)[-1])


def _deviation(*, sample: bool, root: bool) -> Callable[[Floats], float]:
    def run(values: Floats) -> float:
        spread = _spread(values.astype(np.float64)) / (len(values) - sample)
        return math.sqrt(spread) if root else spread

    return run


def _spread(values: "npt.NDArray[np.float64]") -> float:
    """As in `reference_aggregates.py`; not finite if the sum is not."""
    count = np.arange(1.0, len(values) + 1.0)
    total = np.add.accumulate(values)
    distance = (values * count - total)[1:]
    terms = distance * distance / (count[1:] * count[:-1])
    return float(np.add.accumulate(terms)[-1]) if math.isfinite(total[-1]) else math.nan


_FOLDS: Final[dict[str, Callable[[Floats], float]]] = {
    "sum": _sum,
    "stddev": _deviation(sample=True, root=True),
    "stddev_samp": _deviation(sample=True, root=True),
    "stddev_pop": _deviation(sample=False, root=True),
    "variance": _deviation(sample=True, root=False),
    "var_samp": _deviation(sample=True, root=False),
    "var_pop": _deviation(sample=False, root=False),
}
