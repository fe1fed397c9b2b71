"""Field names of extract() and date_trunc(), with their synonyms and scales."""

from typing import Final

from sql.errors import SqlError
from sql.types.sql_type import SqlType, format_type

_NAMES: Final = {
    "microsecon": "microseconds", "microseconds": "microseconds", "microsecond": "microseconds",
    "us": "microseconds", "usec": "microseconds", "usecs": "microseconds",
    "useconds": "microseconds",
    "usecond": "microseconds", "milliseconds": "milliseconds", "millisecond": "milliseconds",
    "ms": "milliseconds", "msec": "milliseconds", "msecs": "milliseconds",
    "mseconds": "milliseconds",
    "second": "second", "seconds": "second", "sec": "second", "secs": "second", "s": "second",
    "minute": "minute", "minutes": "minute", "min": "minute", "mins": "minute", "m": "minute",
    "hour": "hour", "hours": "hour", "hr": "hour", "hrs": "hour", "h": "hour",
    "day": "day", "days": "day", "d": "day", "week": "week", "weeks": "week", "w": "week",
    "month": "month", "months": "month", "mon": "month", "mons": "month",
    "quarter": "quarter", "qtr": "quarter", "year": "year", "years": "year", "yr": "year",
    "yrs": "year", "y": "year", "decade": "decade", "decades": "decade", "dec": "decade",
    "decs": "decade", "century": "century", "centuries": "century", "cent": "century",
    "c": "century",
    "millennium": "millennium", "millennia": "millennium", "mil": "millennium",
    "mils": "millennium",
    "dow": "dow", "isodow": "isodow", "doy": "doy", "isoyear": "isoyear", "epoch": "epoch",
    "julian": "julian", "timezone": "timezone", "timezone_hour": "timezone_hour",
    "timezone_minute": "timezone_minute", "timezone_h": "timezone_hour",
    "timezone_m": "timezone_minute",
}  # fmt: skip
"""The canonical name of a field by each name that PostgreSQL accepts."""


def find_field_name(field: str) -> str | None:
    """The canonical name of a field; None if there is no such field."""
    return _NAMES.get(field.lower())


def canonical_field(field: str, type_: SqlType) -> str:
    """The canonical name of a field. Raises 22023 for an unknown one."""
    name = find_field_name(field)
    if name is None:
        raise SqlError(
            "22023", f'unit "{field.lower()}" not recognized for type {format_type(type_)}'
        )
    return name


def field_scale(field: str, type_: SqlType) -> int | None:
    """How many decimals extract() prints of a field; None if there is no such field."""
    match find_field_name(field):
        case None:
            return None
        case "second":
            return 6
        case "epoch" | "julian":
            return 0 if type_.name == "date" else 6
        case "milliseconds":
            return 3
        case _:
            return 0
