"""Write generate_series() where an engine does not add as PostgreSQL: as constants, or in Python.

    generate_series(a, b, i)  ─▶  unnest(listed_series(a, b, i))

A short series of constants is written out; another one is computed row by row in Python.
"""

from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from decimal import Context, Decimal
from typing import Final

from sql.emit.state import Scope
from sql.emit.zones import argument_zone, is_utc
from sql.errors import SqlError
from sql.functions.table import function_by_id
from sql.plan.nodes import Call, SetCall, SetScan
from sql.types.sql_type import Interval, array_of

SERIES_VALUES_MAX: Final = 1_000
"""Larger: statements of which the engines' parsers take seconds."""
ZERO_STEP_MESSAGE: Final = "step size cannot equal zero"
DAY_MICROS: Final = 86_400_000_000
_EXACT: Final = Context(prec=80)


def with_listed_series(
    plan: SetScan, scope: Scope, adds_up: Callable[[SetCall, Interval, Scope], bool]
) -> SetScan:
    """The sets, whose series are lists computed in Python, unless the engine computes them itself.
    `adds_up`: whether it adds a step to times as PostgreSQL does.
    """

    def made(call: SetCall) -> SetCall:
        return call if _is_native(call, scope, adds_up) else _listed(call)

    return replace(plan, calls=tuple(map(made, plan.calls)))


def _is_native(
    call: SetCall, scope: Scope, adds_up: Callable[[SetCall, Interval, Scope], bool]
) -> bool:
    if call.function.name != "generate_series":
        return True
    match call.type.name:
        case "numeric":
            return decimal_series(call, scope) is not None
        case "timestamp" | "timestamptz":
            step = constant_step(call, scope)
            # Without a direction it is an error, but not of a bound that is NULL.
            return step is not None and _direction(step) != 0 and adds_up(call, step, scope)
        case _:
            return True


def _listed(call: SetCall) -> SetCall:
    row = function_by_id(f"listed_series({','.join(call.function.args)})")
    made = Call(row, call.args, array_of(call.type))
    return SetCall(function_by_id("unnest(anyarray)"), (made,), call.type)


def decimal_series(call: SetCall, scope: Scope) -> Sequence[Decimal] | None:
    """The values of a short series of constants; None for any other series."""
    known = [scope.statement.known(arg) for arg in call.args]
    values = [value[0] for value in known if value is not None]
    if len(values) < len(known):
        return None
    if any(value is None for value in values):
        return ()
    start, stop, *rest = (Decimal(str(value)) for value in values)
    step = rest[0] if rest else Decimal(1)
    if not step:
        raise SqlError("22023", ZERO_STEP_MESSAGE)
    found: list[Decimal] = []
    value = start
    while value <= stop if step > 0 else value >= stop:
        found.append(value)
        if len(found) > SERIES_VALUES_MAX:
            return None
        value = _EXACT.add(value, step)
    return found


def series_constants(values: Sequence[Decimal], call: SetCall, scope: Scope) -> list[str]:
    """The values as texts."""
    return [scope.statement.constant(value, call.type) for value in values]


_EPOCH: Final = datetime(1970, 1, 1)


def monthly_series(call: SetCall, scope: Scope) -> Sequence[int] | None:
    """The microseconds of a short series of constants, where each value is the one before it plus
    the step; None for any other series.
    """
    known = [scope.statement.known(arg) for arg in call.args[:3]]
    start, stop, step = [value[0] if value is not None else None for value in known]
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, Interval)):
        return None
    direction = _direction(step)
    found: list[int] = []
    value = start
    while value <= stop if direction > 0 else value >= stop:
        found.append(value)
        later = _added(value, step)
        if later is None or len(found) > SERIES_VALUES_MAX:
            return None
        value = later
    return found


def constant_step(call: SetCall, scope: Scope) -> Interval | None:
    """The step of a series of times, if it is constant and adds the same on the series' own clock
    and in UTC; None otherwise, for NULL and in an unknown zone.
    """
    step = scope.statement.known(call.args[2])
    if step is None or not isinstance(step[0], Interval):
        return None
    if call.type.name == "timestamp":
        return step[0]
    zone = _zone(call, scope)
    if zone is None or ((step[0].months or step[0].days) and not is_utc(zone)):
        return None
    return step[0]


def _direction(step: Interval) -> int:
    return (step.months * 30 + step.days) * DAY_MICROS + step.micros


def _zone(call: SetCall, scope: Scope) -> tzinfo | None:
    """The zone in which a series of instants takes its days, if it is known."""
    known = scope.statement.known(call.args[3])
    return None if known is None else argument_zone(call, 3, str(known[0]), scope)


def _added(micros: int, step: Interval) -> int | None:
    """A time and an interval: months, then days, then the rest."""
    try:
        then = _EPOCH + timedelta(microseconds=micros)
        month = then.year * 12 + then.month - 1 + step.months
        year, month = divmod(month, 12)
        day = min(then.day, monthrange(year, month + 1)[1])
        then = then.replace(year=year, month=month + 1, day=day)
        then += timedelta(days=step.days, microseconds=step.micros)
    except (OverflowError, ValueError):
        return None
    return (then - _EPOCH) // timedelta(microseconds=1)
