"""Running sums, averages and variances of floats, rounded as in float4pl, float8pl, float8_accum.

INVARIANTS
  S1  values are added one after another in the order of the input, a float4 is rounded at each
      step: the last digits are PostgreSQL's.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute.reference.functions.floats import float_overflow
from compute.reference.functions.floats import round_to_float32 as nearest_single

RunningFold: TypeAlias = Callable[[Iterable[float]], Iterator[float | None]]
"""The aggregate's value over the first value, over the first two, and so on."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A variance, or its square root (`root`). Of a `sample` it has one degree of freedom less, and
    is NULL for one value.
    """

    sample: bool
    root: bool


DEVIATIONS: Final = {
    "stddev": Deviation(sample=True, root=True),
    "stddev_samp": Deviation(sample=True, root=True),
    "stddev_pop": Deviation(sample=False, root=True),
    "variance": Deviation(sample=True, root=False),
    "var_samp": Deviation(sample=True, root=False),
    "var_pop": Deviation(sample=False, root=False),
}
_FLOATS: Final = ("float4", "float8")


def running_fold(name: str, source: str) -> RunningFold | None:
    """The running aggregate of this name over floats of a type; None if it is not one of these.
    Raises 22003 where PostgreSQL's state overflows.
    """
    if source not in _FLOATS:
        return None
    if name == "sum":
        return lambda values: _sums(values, single=source == "float4")
    if name == "avg":
        # PostgreSQL keeps one state for averages and variances, and fails where it overflows.
        return lambda values: (
            total / count + 0.0 for count, (total, _) in enumerate(_spreads(values), 1)
        )
    kind = DEVIATIONS.get(name)
    return None if kind is None else _deviations(kind)


def final_value(running: RunningFold, values: Iterable[float]) -> float | None:
    """The aggregate's value over all values; there must be at least one."""
    return deque(running(values), maxlen=1).pop()


def _deviations(kind: Deviation) -> RunningFold:
    def run(values: Iterable[float]) -> Iterator[float | None]:
        for count, (_, spread) in enumerate(_spreads(values), 1):
            if kind.sample and count == 1:
                yield None
                continue
            variance = spread / (count - kind.sample)
            yield math.sqrt(variance) if kind.root else variance

    return run


def _sums(values: Iterable[float], *, single: bool) -> Iterator[float]:
    total = -0.0  # of nothing but -0 the sum is that
    for value in values:
        before = total
        total = nearest_single(total + value) if single else total + value
        if math.isinf(total) and not math.isinf(before) and not math.isinf(value):
            raise float_overflow()
        yield total


def _spreads(values: Iterable[float]) -> Iterator[tuple[float, float]]:
    """The sum, and that of squared distances from the mean, by Youngs and Cramer."""
    total = spread = 0.0
    for count, value in enumerate(values, 1):
        before = total
        total += value
        if count > 1:
            distance = value * count - total
            spread += distance * distance / (count * (count - 1))
            if math.isinf(total) or math.isinf(spread):
                if not math.isinf(before) and not math.isinf(value):
                    raise float_overflow()
                spread = math.nan
        elif not math.isfinite(value):
            spread = math.nan
        yield total, spread
