"""Statistical and ordered-set aggregates: corr(), percentile_cont() .. (float.c, orderedsetaggs.c).

NULLs of the first argument are gone before a group comes here.

INVARIANTS
  Q1  sums grow value by value in the order of the input, as in PostgreSQL (Youngs and
      Cramer).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from compute.reference.functions.datetime import interval_add, interval_subtract
from compute.reference.functions.intervals import interval_divide, interval_multiply
from compute.reference.functions.ordering import ordering_key
from compute.reference.registry import AggregateFold, FolderMaker, Rows, folds
from sql.errors import SqlError
from sql.plan.nodes import Aggregate
from sql.types.sql_type import Interval, Value

# --- pairs of floats -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Sums:
    """Over the pairs (y, x) so far."""

    count: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0

    def add(self, y: float, x: float) -> None:
        before, x_before, y_before = self.count, self.x, self.y
        self.count += 1.0
        self.x += x
        self.y += y
        if not before:
            if not math.isfinite(x):
                self.xx = self.xy = math.nan
            if not math.isfinite(y):
                self.yy = self.xy = math.nan
            return
        dx, dy = x * self.count - self.x, y * self.count - self.y
        scale = 1.0 / (self.count * before)
        self.xx += dx * dx * scale
        self.yy += dy * dy * scale
        self.xy += dx * dy * scale
        self._check(x, y, x_before, y_before)

    def _check(self, x: float, y: float, x_before: float, y_before: float) -> None:
        of_x = math.isinf(self.x) or math.isinf(self.xx)
        of_y = math.isinf(self.y) or math.isinf(self.yy)
        x_finite = not math.isinf(x_before) and not math.isinf(x)
        y_finite = not math.isinf(y_before) and not math.isinf(y)
        both = math.isinf(self.xy) and x_finite and y_finite
        if (of_x and x_finite) or (of_y and y_finite) or both:
            raise SqlError("22003", "value out of range: overflow")
        self.xx, self.yy, self.xy = (
            math.nan if math.isinf(sum_) else sum_ for sum_ in (self.xx, self.yy, self.xy)
        )


def _pairs(final: Callable[[_Sums], float | None]) -> FolderMaker:
    def run(rows: Rows) -> Value:
        sums = _Sums()
        for y, x in rows:
            if isinstance(y, float) and isinstance(x, float):
                sums.add(y, x)
        return final(sums) if sums.count else None

    return lambda _call: run


def _correlation(sums: _Sums) -> float | None:
    if sums.xx == 0 or sums.yy == 0:
        return None
    return sums.xy / math.sqrt(sums.xx * sums.yy)


def _r2(sums: _Sums) -> float | None:
    if sums.xx == 0:
        return None
    return 1.0 if sums.yy == 0 else sums.xy * sums.xy / (sums.xx * sums.yy)


@folds("regr_count(float8,float8)")
def _count(_call: Aggregate) -> AggregateFold:
    return lambda rows: sum(1 for row in rows if None not in row)


# --- ordered sets --------------------------------------------------------------------------------


def _percentiles(place: Callable[[Rows, float], Value]) -> FolderMaker:
    """One value for a fraction, an array for an array of them; NULL for NULL."""

    def one(rows: Rows, fraction: Value) -> Value:
        if fraction is None:
            return None
        assert isinstance(fraction, float), "a fraction is a float"
        if not 0 <= fraction <= 1:
            raise SqlError("22003", f"percentile value {fraction:g} is not between 0 and 1")
        return place(rows, fraction)

    def run(rows: Rows) -> Value:
        if not rows:
            return None
        fractions = rows[0][1]
        if isinstance(fractions, tuple):
            return tuple([one(rows, fraction) for fraction in fractions])
        return one(rows, fractions)

    return lambda _call: run


def _continuous(rows: Rows, fraction: float) -> Value:
    """Between the two rows that the fraction falls between."""
    place = fraction * (len(rows) - 1)
    first, second = math.floor(place), math.ceil(place)
    low, high = rows[first][0], rows[second][0]
    if first == second:
        return low
    share = place - first
    if isinstance(low, Interval) and isinstance(high, Interval):
        return interval_add(low, interval_multiply(interval_subtract(high, low), share))
    assert isinstance(low, float), "floats or intervals"
    assert isinstance(high, float), "floats or intervals"
    return low + share * (high - low)


def _discrete(rows: Rows, fraction: float) -> Value:
    """The first row that so large a share is not behind."""
    return rows[max(math.ceil(fraction * len(rows)), 1) - 1][0]


@folds("mode(anyelement)")
def _mode(call: Aggregate) -> AggregateFold:
    """The most frequent, the first of several."""
    key = ordering_key(call.args[0].type)

    def run(rows: Rows) -> Value:
        best: Value = None
        most = count = 0
        before: object = None
        for value, *_ in rows:
            count = count + 1 if count and key(value) == before else 1
            before = key(value)
            if count > most:
                best, most = value, count
        return best

    return run


# --- others --------------------------------------------------------------------------------------


@folds("any_value(anyelement)")
def _any_value(_call: Aggregate) -> AggregateFold:
    return lambda rows: rows[0][0] if rows else None


def _interval_total(rows: Rows) -> Interval:
    total = Interval()
    for value, *_ in rows:
        assert isinstance(value, Interval), "intervals"
        total = interval_add(total, value)
    return total


@folds("sum(interval)", "avg(interval)")
def _intervals(call: Aggregate) -> AggregateFold:
    def run(rows: Rows) -> Value:
        if not rows:
            return None
        total = _interval_total(rows)
        return total if call.function.name == "sum" else interval_divide(total, float(len(rows)))

    return run


folds("corr(float8,float8)")(_pairs(_correlation))
folds("covar_pop(float8,float8)")(_pairs(lambda s: s.xy / s.count))
folds("covar_samp(float8,float8)")(_pairs(lambda s: s.xy / (s.count - 1) if s.count > 1 else None))
folds("regr_avgx(float8,float8)")(_pairs(lambda s: s.x / s.count))
folds("regr_avgy(float8,float8)")(_pairs(lambda s: s.y / s.count))
folds("regr_intercept(float8,float8)")(
    _pairs(lambda s: (s.y - s.x * s.xy / s.xx) / s.count if s.xx != 0 else None)
)
folds("regr_r2(float8,float8)")(_pairs(_r2))
folds("regr_slope(float8,float8)")(_pairs(lambda s: s.xy / s.xx if s.xx != 0 else None))
folds("regr_sxx(float8,float8)")(_pairs(lambda s: s.xx))
folds("regr_sxy(float8,float8)")(_pairs(lambda s: s.xy))
folds("regr_syy(float8,float8)")(_pairs(lambda s: s.yy))
folds(
    *[
        f"percentile_cont({type_},{fraction})"
        for type_ in ("float8", "interval")
        for fraction in ("float8", "_float8")
    ]
)(_percentiles(_continuous))
folds("percentile_disc(anyelement,float8)", "percentile_disc(anyelement,_float8)")(
    _percentiles(_discrete)
)
