# ruff: noqa: E501 -- a statement stands on one line, as it does in the file
"""Systematic statements about dates, times and intervals."""

import re
from collections.abc import Iterator
from itertools import product

_ROWS = (
    ("2024-01-31", "2024-01-31 10:20:30.123456", "2024-01-31 10:20:30.5+00", "1 day"),
    ("2024-02-29", "2024-02-29 00:00:00", "2024-02-29 23:59:59.999999+00", "1 month"),
    ("1969-12-28", "1969-12-31 23:59:59.5", "1969-12-31 23:00:00+00", "-1 month 2 days 03:04:05"),
    ("2000-12-31", "2000-12-31 12:00:00", "2000-12-31 12:00:00+05:30", "1 year 00:00:00.000001"),
    ("9999-12-31", "9999-12-31 00:00:00", "9999-12-31 00:00:00+00", "100 hours"),
    ("0001-01-01", "0001-01-01 00:00:00", "0001-01-01 00:00:00+00", "-00:00:01"),
    ("2023-03-26", "2023-03-26 02:30:00", "2023-03-26 01:30:00+00", "0"),
    ("2020-12-28", "2020-12-28 06:07:08", "2020-12-28 06:07:08+00", "30 days"),
)
_WITH_INTERVAL = "(select id, d, ts, tz, t::interval as i from stored)"
_FIELDS = (
    "year", "month", "day", "hour", "minute", "second", "epoch", "dow", "isodow", "doy", "week",
    "quarter", "isoyear", "milliseconds", "microseconds", "decade", "century", "millennium",
    "timezone", "julian", "nosuch",
)  # fmt: skip
_UNITS = (
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter",
    "year", "decade", "century", "millennium", "nosuch",
)  # fmt: skip
_STEPS = ("1 day", "1 month", "-1 month", "1 year", "36 hours", "1 month -1 day", "00:00:00.5")
_FORMATS = (
    "YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS", "DD.MM.YYYY", "YYYY-MM", "Mon DD, YYYY", "Day", "HH12:MI AM",
    "IYYY-IW", "Q", "DDD", "FMMonth FMDD", "MS US", "YYYYMMDD", "D ID", "TZ", "YY", "HH24",
)  # fmt: skip


def dates() -> Iterator[str]:
    """All of them, over the stored table where no interval is needed."""
    for text in _dates():
        without = text.replace(_WITH_INTERVAL, "stored")
        yield text if re.search(r"\bi\b", without) else without


def _dates() -> Iterator[str]:
    """Fields, truncation, arithmetic, zones, formats."""
    yield "create table stored (id int, d date, ts timestamp, tz timestamptz, t text)"
    rows = ", ".join(
        f"({index + 1}, {', '.join(repr(value) for value in row)})"
        for index, row in enumerate(_ROWS)
    )
    yield f"insert into stored values {rows}, (9, null, null, null, null)"
    for field, column in product(_FIELDS, ("d", "ts", "tz", "i")):
        yield f"select id, extract({field} from {column}) from {_WITH_INTERVAL} w order by id"
        if column != "i":
            yield f"select id, date_part('{field}', {column}) from {_WITH_INTERVAL} w order by id"
    for unit, column in product(_UNITS, ("d", "ts", "tz", "i")):
        yield f"select id, date_trunc('{unit}', {column}) from {_WITH_INTERVAL} w order by id"
    for step, column in product(_STEPS, ("d", "ts", "tz", "i")):
        small = "where id not in (5, 6)"
        yield f"select id, {column} + interval '{step}' from {_WITH_INTERVAL} w {small} order by id"
        yield f"select id, {column} - interval '{step}' from {_WITH_INTERVAL} w {small} order by id"
    for a, b in product(("d", "ts", "tz", "i"), repeat=2):
        yield f"select id, {a} - {b} from {_WITH_INTERVAL} w where id not in (5, 6) order by id"
        yield f"select id, {a} + {b} from {_WITH_INTERVAL} w where id not in (5, 6) order by id"
        yield f"select x.id, y.id from {_WITH_INTERVAL} x join {_WITH_INTERVAL} y on x.{a} < y.{b} where y.id in (1, 4) order by 1, 2"
    for number in ("1", "-30", "0", "365"):
        yield f"select id, d + {number}, d - {number} from {_WITH_INTERVAL} w where id not in (5, 6) order by id"
    for number in ("2", "0.5", "-1", "1.5"):
        yield f"select id, i * {number}, {number} * i from {_WITH_INTERVAL} w order by id"
        yield f"select id, i / {number} from {_WITH_INTERVAL} w order by id"
    yield f"select id, -i, i = interval '1 month', i > interval '29 days' from {_WITH_INTERVAL} w order by id"
    for zone in ("UTC", "Europe/Berlin", "America/New_York", "+02", "Nowhere/None"):
        yield f"select id, ts at time zone '{zone}' from {_WITH_INTERVAL} w where id not in (5, 6) order by id"
        yield f"select id, tz at time zone '{zone}' from {_WITH_INTERVAL} w where id not in (5, 6) order by id"
    for zone in ("Europe/Berlin", "America/New_York", "UTC"):
        yield f"set timezone = '{zone}'"
        yield f"select id, tz, tz::date, tz::timestamp, d::timestamptz from {_WITH_INTERVAL} w where id <> 6 order by id"
        yield f"select id, date_trunc('day', tz), extract(hour from tz), tz + '1 day' from {_WITH_INTERVAL} w where id not in (5, 6) order by id"
        yield f"select id, tz::text, ts::timestamptz from {_WITH_INTERVAL} w where id not in (5, 6) order by id"
    for format_, column in product(_FORMATS, ("d", "ts", "tz")):
        yield f"select id, to_char({column}, '{format_}') from {_WITH_INTERVAL} w order by id"
    for text, format_ in (
        ("2024-02-29", "YYYY-MM-DD"), ("29.02.2024", "DD.MM.YYYY"), ("20240229", "YYYYMMDD"),
        ("Feb 29 2024", "Mon DD YYYY"), ("2024-13-01", "YYYY-MM-DD"), ("x", "YYYY"),
    ):  # fmt: skip
        yield f"select to_date('{text}', '{format_}')"
        yield f"select to_timestamp('{text}', '{format_}')"
    for word in ("make_date(2024, 2, 29)", "make_date(2023, 2, 29)", "make_timestamp(2024, 1, 2, 3, 4, 5.6)",
        "make_interval(days => 3)", "make_interval(1, 2, 3, 4, 5, 6, 7.5)", "to_timestamp(0)", "to_timestamp(1e9)",
        "age(timestamp '2024-03-01', timestamp '2024-02-01')", "age(date '2024-03-31', date '2024-02-29')",
        "justify_days(interval '45 days')", "justify_hours(interval '50 hours')", "justify_interval(interval '1 mon -1 hour')",
        "isfinite(date '2024-01-01')", "date 'infinity'", "timestamp '-infinity'", "date_bin('15 minutes', timestamp '2024-01-01 10:20', timestamp '2001-01-01')",
        "(date '2024-01-01', date '2024-02-01') overlaps (date '2024-01-15', date '2024-03-01')",
        "current_date = now()::date", "localtimestamp = now()::timestamp", "current_timestamp = now()"):  # fmt: skip
        yield f"select {word}"
