"""Series that are written out, because an engine does not add them up as PostgreSQL does."""

from calendar import monthrange
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Context, Decimal
from typing import Final

from sql.emit.scope import Scope
from sql.emit.zones import argument_zone
from sql.errors import SqlError
from sql.plan import SetCall
from sql.types import Interval, Value

VALUES_MAX: Final = 1_000
"""Larger: statements of which the engines' parsers take seconds."""
DAY: Final = 86_400_000_000
_EXACT: Final = Context(prec=80)


def decimal_series(call: SetCall, scope: Scope) -> Sequence[Decimal]:
    """The values of a series of constants; 0A000 for another one."""
    known = [scope.statement.known(arg) for arg in call.args]
    values = [value[0] for value in known if value is not None]
    if len(values) < len(known):
        raise scope.statement.dialect.unsupported("generate_series of computed numerics")
    if any(value is None for value in values):
        return ()
    start, stop, *rest = (Decimal(str(value)) for value in values)
    step = rest[0] if rest else Decimal(1)
    if not step:
        raise SqlError("22023", "step size cannot equal zero")
    found: list[Decimal] = []
    value = start
    while value <= stop if step > 0 else value >= stop:
        found.append(value)
        if len(found) > VALUES_MAX:
            raise scope.statement.dialect.unsupported("a long generate_series of numerics")
        value = _EXACT.add(value, step)
    return found


def constants(values: Sequence[Decimal], call: SetCall, scope: Scope) -> list[str]:
    """The values as texts."""
    return [scope.statement.constant(value, call.type) for value in values]


_EPOCH: Final = datetime(1970, 1, 1)


def monthly_series(call: SetCall, scope: Scope) -> Sequence[int]:
    """The microseconds of a series of constants; each value is the one before it and the step."""
    known = [scope.statement.known(arg) for arg in call.args[:3]]
    values: list[Value] = [value[0] for value in known if value is not None]
    if len(values) < len(known):
        raise scope.statement.dialect.unsupported("generate_series of months from a computed time")
    start, stop, step = values
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, Interval)):
        return ()
    direction = (step.months * 30 + step.days) * DAY + step.micros
    found: list[int] = []
    value = start
    while value <= stop if direction > 0 else value >= stop:
        found.append(value)
        if len(found) > VALUES_MAX:
            raise scope.statement.dialect.unsupported("a long generate_series of months")
        later = _added(value, step)
        if later is None or not direction:
            raise scope.statement.dialect.unsupported("generate_series beyond the year 9999")
        value = later
    return found


def series_zone(call: SetCall, scope: Scope) -> tzinfo | None:
    """The zone in which a series of instants takes its days; None if the series is NULL with it."""
    known = scope.statement.known(call.args[3])
    if known is None:
        raise scope.statement.dialect.unsupported("generate_series in a computed time zone")
    if known[0] is None:
        return None
    zone = argument_zone(call, 3, str(known[0]), scope)
    if zone is None:
        raise scope.statement.dialect.unsupported("generate_series in a zone that is not known")
    return zone


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
