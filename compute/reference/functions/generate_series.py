"""generate_series(): each value is the previous one plus the step, in PostgreSQL's arithmetic.

    times(plus_interval, start, stop, step)  ─▶  the values, one after the other
    listed_series(timestamp,timestamp,interval)  ─▶  all of them, as an array

INVARIANTS
  E1  arrays are for engines whose addition differs from PostgreSQL's. They hold at most LISTED_MAX
      values: more is 54000. The caller bounds their total size in a batch of rows.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import islice
from typing import Final, TypeAlias

from compute.reference.decimals import EXACT
from compute.reference.functions.datetime import (
    day_counting_zone,
    interval_length,
    plus_interval,
    plus_interval_zoned,
)
from compute.reference.functions.intervals import date_add
from compute.reference.registry import Function, implements
from sql.emit.series import ZERO_STEP_MESSAGE
from sql.errors import SqlError
from sql.types.sql_type import Interval, Value

Series: TypeAlias = Callable[..., Iterator[Value]]

LISTED_SERIES_MAX: Final = 1_000_000
"""More: memory, some 100 bytes each. Fewer: long series are refused where they are no constants."""


def number_series(
    start: int | Decimal, stop: int | Decimal, step: int | Decimal = 1
) -> Iterator[int] | Iterator[Decimal]:
    """The numbers from `start` on, not beyond `stop`. Raises 22023 for a step of zero."""
    if not step:
        raise _no_step()
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return iter(range(start, stop + (1 if step > 0 else -1), step))
    return _decimals(Decimal(start), Decimal(stop), Decimal(step))


def _decimals(start: Decimal, stop: Decimal, step: Decimal) -> Iterator[Decimal]:
    value = start
    while value <= stop if step > 0 else value >= stop:
        yield value
        value = EXACT.add(value, step)


def _no_step() -> SqlError:
    return SqlError("22023", ZERO_STEP_MESSAGE)


def _times(
    add: Callable[..., int], start: int, stop: int, step: Interval, *zone: str
) -> Iterator[int]:
    direction = interval_length(step)
    if not direction:
        raise _no_step()
    value = start
    while value <= stop if direction > 0 else value >= stop:
        yield value
        value = add(value, step, *zone)


def _timestamps(start: int, stop: int, step: Interval) -> Iterator[int]:
    return _times(plus_interval, start, stop, step)


def _in_session(start: int, stop: int, step: Interval, session: str) -> Iterator[int]:
    return _times(plus_interval_zoned, start, stop, step, session)


def _in_zone(start: int, stop: int, step: Interval, name: str, session: str) -> Iterator[int]:
    # A name that nobody knows is an error, whatever the step is.
    day_counting_zone(name, session)
    return _times(date_add, start, stop, step, name, session)


SERIES: Final[dict[str, Series]] = {
    "timestamp,timestamp,interval": _timestamps,
    "timestamptz,timestamptz,interval": _in_session,
    "timestamptz,timestamptz,interval,text": _in_zone,
}
"""By the types of arguments; the session's zone is one more. `number_series` makes all others."""


def _listed(series: Series) -> Function:
    def run(*args: Value) -> tuple[Value, ...]:
        found = tuple(islice(series(*args), LISTED_SERIES_MAX + 1))
        if len(found) > LISTED_SERIES_MAX:
            raise SqlError("54000", f"a series of more than {LISTED_SERIES_MAX} values is too long")
        return found

    return run


for _types in (*SERIES, "numeric,numeric", "numeric,numeric,numeric"):
    implements(f"listed_series({_types})")(_listed(SERIES.get(_types, number_series)))
