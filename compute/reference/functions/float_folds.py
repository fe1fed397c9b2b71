"""Sums, averages and variances of float columns by numpy, equal to PostgreSQL bit by bit.

    list of a group's floats ─▶ running sums by numpy ─▶ one value, or one for each frame, a
                                                         hundredth of the time that the evaluator's
                                                         loop takes

INVARIANTS
  L1  an answer equals that of `float_sums.py` bit by bit: numpy's running sums add one value after
      another, as that module does (its plain sum() does not). If a sum is not finite, and perhaps
      an error, that module computes it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compute.reference.functions.float_sums import (
    DEVIATIONS,
    Deviation,
    RunningFold,
    final_value,
    running_fold,
)
from sql.plan.nodes import Aggregate, ColumnRef, WindowCall
from sql.types.sql_type import Value

Floats: TypeAlias = "npt.NDArray[np.floating[Any]]"
ValuePositions: TypeAlias = "npt.NDArray[np.int64]"
_Array: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"

_MANY: Final = 32
"""Values from which numpy is faster."""


@dataclass(frozen=True, slots=True)
class FloatFold:
    """An aggregate of floats. The caller handles DISTINCT, FILTER, order and NULLs."""

    name: str
    running: RunningFold

    def __call__(self, values: Floats) -> Value:
        """The aggregate of a group's values."""
        if not len(values):
            return None
        if len(values) >= _MANY:
            found = self._prefixes(values)[-1]
            if np.isfinite(found):
                return float(found)
        return final_value(self.running, values.tolist())

    def of_prefixes(self, values: Floats) -> list[Value]:
        """The aggregate of the first value, of the first two, and so on."""
        if len(values) >= _MANY:
            found = self._prefixes(values)
            if np.isfinite(found[-1]):
                of_one = next(self.running(values[:1].tolist()))
                return [of_one, *found[1:].tolist()]
        return list(self.running(values.tolist()))

    def _prefixes(self, values: Floats) -> Floats:
        """The last value is not finite if a sum is not; the first one may be no answer."""
        with np.errstate(all="ignore"):
            if self.name == "sum":
                return np.add.accumulate(values)
            doubles = values.astype(np.float64)
            counts, totals = _counts(doubles), np.add.accumulate(doubles)
            spreads = _spreads(doubles, counts, totals)
            if not (np.isfinite(totals[-1]) and np.isfinite(spreads[-1])):
                return np.array([np.nan])
            kind = DEVIATIONS.get(self.name)
            return totals / counts + 0.0 if kind is None else _deviations(spreads, counts, kind)


def _counts(values: Floats) -> "npt.NDArray[np.float64]":
    return np.arange(1.0, len(values) + 1.0)


def _spreads(values: Floats, counts: Floats, totals: Floats) -> Floats:
    distances = (values * counts - totals)[1:]
    terms = distances * distances / (counts[1:] * counts[:-1])
    return np.concatenate(([0.0], np.add.accumulate(terms)))


def _deviations(spreads: Floats, counts: Floats, kind: Deviation) -> Floats:
    variances = spreads / (counts - kind.sample)
    return np.sqrt(variances) if kind.root else variances


def float_fold(call: Aggregate | WindowCall) -> FloatFold | None:
    """The implementation of this aggregate over a column; None if it is not one of these."""
    if not call.args or not isinstance(call.args[0], ColumnRef):
        return None
    running = running_fold(call.function.name, call.args[0].type.name)
    return None if running is None else FloatFold(call.function.name, running)


# --- groups and frames -------------------------------------------------------------------------


def float_groups(items: _Array, lists: _Array) -> Iterator[Floats]:
    """The values of each list without NULLs. `items`: the items of all lists; a list may be
    NULL.
    """
    for values, known in _cut(items, lists):
        yield values if known is None else values[known]


@dataclass(frozen=True, slots=True)
class FloatFrames:
    """A partition's values in order, which of them are not NULL (None: all), and the frame of each
    row: the position of its last value, counted from 1, and its size. Without sizes all frames
    begin at the first value.
    """

    values: Floats
    known: "npt.NDArray[np.bool_] | None"
    ends: ValuePositions
    sizes: "ValuePositions | None"


def float_frames(columns: Sequence[_Array], lists: _Array) -> Iterator[FloatFrames]:
    """The partition of each list. `columns`: the columns of the rows of all lists."""
    values, ends, *sizes = [_cut(column, lists) for column in columns]
    sized = (size for size, _ in sizes[0]) if sizes else repeat(None)
    for (found, known), (end, _), size in zip(values, ends, sized):  # noqa: B905 -- repeats
        yield FloatFrames(found, known, _places(end), None if size is None else _places(size))


def fold_frames(fold: FloatFold, frames: FloatFrames) -> list[Value]:
    """The aggregate of each frame. If all frames begin at the first value, running sums give them
    all.
    """
    values, ends = frames.values, frames.ends
    starts = None if frames.sizes is None else ends - frames.sizes
    if frames.known is not None:
        before = np.concatenate(([0], np.cumsum(frames.known)))
        values, ends = values[frames.known], before[ends]
        starts = None if starts is None else before[starts]
    if starts is None:
        prefixes = [None, *fold.of_prefixes(values)]
        return [prefixes[end] for end in ends.tolist()]
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [fold(values[start:end]) for start, end in pairs]


def _places(found: Floats) -> ValuePositions:
    return found.astype(np.int64)


def _cut(items: _Array, lists: _Array) -> "Iterator[tuple[Floats, npt.NDArray[np.bool_] | None]]":
    assert isinstance(lists, pa.ListArray), "an aggregate takes lists"
    values: Floats = items.to_numpy(zero_copy_only=False)
    known = items.is_valid().to_numpy(zero_copy_only=False) if items.null_count else None
    first = 0
    for length in lists.value_lengths().to_pylist():
        end = first + (length or 0)
        yield values[first:end], None if known is None else known[first:end]
        first = end
