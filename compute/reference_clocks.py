"""Functions of time: microseconds since midnight. The modifiers of all types of time."""

from decimal import Decimal
from typing import Final

from compute.reference_numbers import Function, Maker
from compute.reference_times import to_local
from sql.dates import MICROS_PER_DAY, MICROS_PER_SECOND
from sql.errors import SqlError
from sql.fields import canonical_field
from sql.plan import Call
from sql.time_modifiers import fitted_time
from sql.types import TIMED, Interval, SqlType, Value, display

_TIME: Final = SqlType("time")
_MINUTE: Final = 60 * MICROS_PER_SECOND
_HOUR: Final = 60 * _MINUTE


def _plain(function: Function) -> Maker:
    return lambda _call: function


def _fitted(call: Call) -> Function:
    """With the digits and the fields of the call's modifier."""
    return lambda value: fitted_time(value, call.type)


def _plus(time: int, span: Interval) -> int:
    return (time + span.micros) % MICROS_PER_DAY


def _minus(time: int, span: Interval) -> int:
    return (time - span.micros) % MICROS_PER_DAY


def _on_day(days: int, time: int) -> int:
    return days * MICROS_PER_DAY + time


def _make_time(hour: int, minute: int, second: float) -> int:
    exact = Decimal(repr(second))
    value = (hour * 60 + minute) * _MINUTE + int((exact * MICROS_PER_SECOND).to_integral_value())
    if not (0 <= minute <= 59 and 0 <= exact <= 60 and hour >= 0 and value <= MICROS_PER_DAY):
        message = f"time field value out of range: {hour}:{minute:02d}:{_seconds(second)}"
        raise SqlError("22008", message)
    return value


def _seconds(second: float) -> str:
    """As C's %02g."""
    return f"{second:g}".rjust(2, "0")


def _extract(call: Call) -> Function:
    numeric = call.type.name == "numeric"

    def run(text: str, time: int) -> Value:
        found = _field(text, time)
        return found if numeric else float(found)

    return run


def _field(text: str, time: int) -> Decimal:
    field = canonical_field(text, _TIME)
    match field:
        case "hour":
            return Decimal(time // _HOUR)
        case "minute":
            return Decimal(time // _MINUTE % 60)
        case "second":
            return Decimal(time % _MINUTE).scaleb(-6)
        case "milliseconds":
            return Decimal(time % _MINUTE).scaleb(-3)
        case "microseconds":
            return Decimal(time % _MINUTE)
        case "epoch":
            return Decimal(time).scaleb(-6)
        case _:
            message = f'unit "{text.lower()}" not supported for type {display(_TIME)}'
            raise SqlError("0A000", message)


CLOCK_FUNCTIONS: Final[dict[str, Maker]] = {
    "time + interval": _plain(_plus),
    "time - interval": _plain(_minus),
    "interval + time": _plain(lambda span, time: _plus(time, span)),
    "time - time": _plain(lambda a, b: Interval(micros=a - b)),
    "date + time": _plain(_on_day),
    "time + date": _plain(lambda time, days: _on_day(days, time)),
    "extract(text,time)": _extract,
    "date_part(text,time)": _extract,
    "make_time(int4,int4,float8)": _plain(_make_time),
    "time::interval": _plain(lambda time: Interval(micros=time)),
    **{f"{name}::{name}": _fitted for name in TIMED},
    "interval::time": _plain(lambda span: span.micros % MICROS_PER_DAY),
    "timestamp::time": _plain(lambda micros: micros % MICROS_PER_DAY),
    "timestamptz::time": _plain(lambda micros, zone: to_local(micros, zone) % MICROS_PER_DAY),
}
