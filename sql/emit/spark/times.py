"""Write functions of dates, times, timestamps and intervals as Spark SQL.

The session of Spark runs in UTC, so `timestamp` (an instant) cast to `timestamp_ntz` is its UTC
reading and back. Other zones appear as explicit arguments only (sql/functions/table.py, F3).

INVARIANTS
  I1  an interval is a struct of months, days and micros inside of expressions; it never leaves a
      query.
  I2  the zone and the field of an expression are known when it is emitted, or the expression is
      refused.
"""

from datetime import tzinfo
from typing import Final

from sql.emit.error_tag import ERROR_TAG
from sql.emit.spark.types import error, interval_key, unsupported
from sql.emit.state import Scope
from sql.emit.time_templates import SPARK_TO_CHAR, native_to_char
from sql.emit.zones import argument_zone, has_java_rules, is_utc
from sql.errors import SqlError
from sql.plan.nodes import Call, Expr
from sql.types.datetime.extract_fields import find_field_name
from sql.types.datetime.typmods import (
    POSTGRESQL_EPOCH_MICROS,
    UNIT_MICROS,
    seconds_precision,
    smallest_field,
)
from sql.types.sql_type import SECONDS_DIGITS_MAX, TIMESTAMP, SqlType

_NTZ: Final = "timestamp_ntz"
_RANGE: Final = error("22008", "timestamp out of range")


def _known_text(expr: Expr, scope: Scope, what: str) -> str | None:
    known = scope.statement.known(expr)
    if known is None:
        raise unsupported(f"a computed {what}")
    assert known[0] is None or isinstance(known[0], str), f"a {what} is text"
    return known[0]


# --- zones -------------------------------------------------------------------------------------


def _zone(call: Call, place: int, scope: Scope) -> tzinfo | None:
    """What an argument names; None for NULL."""
    name = _known_text(call.args[place], scope, "time zone")
    if name is None:
        return None
    zone = argument_zone(call, place, name, scope)
    if zone is None:
        raise SqlError("22023", f'time zone "{name}" not recognized')
    return zone


def _local(x: str, zone: tzinfo | None, scope: Scope) -> str:
    """The reading of an instant on a clock in the zone."""
    if zone is None:
        return f"cast(null as {_NTZ})"
    reading = f"cast({x} as {_NTZ})"
    if is_utc(zone):
        return reading
    if not has_java_rules(zone):
        raise unsupported(f'time zone "{zone}"')
    return f"convert_timezone('UTC', {scope.statement.string(str(zone))}, {reading})"


def _instant(x: str, zone: tzinfo | None) -> str:
    """The instant when a clock in the zone reads x; in a repeated hour Java takes the other one."""
    if zone is None:
        return "cast(null as timestamp_ltz)"
    if not is_utc(zone):
        raise unsupported("local time to instants in other time zones than UTC")
    return f"cast({x} as timestamp_ltz)"


def _to_instant(call: Call, scope: Scope) -> str:
    return _instant(scope.emit(call.args[1]), _zone(call, 0, scope))


def _to_local(call: Call, scope: Scope) -> str:
    return _local(scope.emit(call.args[1]), _zone(call, 0, scope), scope)


def _to_instant_session(call: Call, scope: Scope) -> str:
    return _instant(f"cast({scope.emit(call.args[0])} as {_NTZ})", _zone(call, 1, scope))


def _to_local_session(call: Call, scope: Scope) -> str:
    local = _local(scope.emit(call.args[0]), _zone(call, 1, scope), scope)
    return f"cast({local} as date)" if call.type.name == "date" else local


def _zoned_compare(call: Call, scope: Scope) -> str:
    zone = _zone(call, 2, scope)
    left, right = (
        scope.emit(arg)
        if arg.type.name == "timestamptz"
        else _instant(f"cast({scope.emit(arg)} as {_NTZ})", zone)
        for arg in call.args[:2]
    )
    return f"{left} {call.function.name} {right}"


# --- arithmetic --------------------------------------------------------------------------------


def _micros(x: str) -> str:
    """Microseconds since 1970 of a timestamp of either kind, or of a date."""
    return f"unix_micros(cast({x} as timestamp_ltz))"


def _date_plus(call: Call, scope: Scope) -> str:
    left, right = call.args
    if left.type.name == "int4":
        left, right = right, left
    sign = "-" if call.function.name == "-" else "+"
    days = f"unix_date({scope.emit(left)}) {sign} cast({scope.emit(right)} as bigint)"
    failure = error("22008", "date out of range")
    # Spark's dates end long after PostgreSQL's; these are PostgreSQL's bounds.
    return (
        f"case when {days} < -2440588L or {days} > 2145042540L then {failure}"
        f" else date_from_unix_date(cast({days} as int)) end"
    )


def _plus_interval(call: Call, scope: Scope) -> str:
    """Months first, then days, then time, as PostgreSQL adds them."""
    time, interval = call.args[:2]
    if time.type.name == "interval":
        time, interval = interval, time
    if call.function.zone and not is_utc(_zone(call, 2, scope)):
        raise unsupported("timestamp with time zone and interval outside of UTC")
    sign = "-" if call.function.name == "-" else ""
    span = scope.emit(interval)
    x = f"cast({scope.emit(time)} as {_NTZ})"
    months = f"make_ym_interval(0, {sign}{span}.months)"
    days = f"make_dt_interval({sign}{span}.days)"
    micros = f"make_dt_interval(0, 0, 0, cast({sign}{span}.micros as decimal(20,0)) * 0.000001BD)"
    total = f"({x} + {months} + {days} + {micros})"
    # The smallest and the largest timestamp that PostgreSQL has.
    year = f"year({total})"
    result = f"cast({total} as timestamp_ltz)" if call.type.name == "timestamptz" else total
    return f"case when {year} < -4712 or {year} > 294276 then {_RANGE} else {result} end"


def _minus_time(call: Call, scope: Scope) -> str:
    """Days and time, as PostgreSQL's timestamp subtraction gives them; never months."""
    left, right = (scope.emit(arg) for arg in call.args)
    micros = f"({_micros(left)} - {_micros(right)})"
    return (
        f"if({left} is null or {right} is null, null, named_struct('months', 0,"
        f" 'days', cast({micros} div 86400000000L as int),"
        f" 'micros', {micros} % 86400000000L))"
    )


def _interval_compare(call: Call, scope: Scope) -> str:
    left, right = (interval_key(scope.emit(arg)) for arg in call.args)
    return f"{left} {call.function.name} {right}"


# --- fields ------------------------------------------------------------------------------------

_TRUNCATED: Final = {
    "microseconds": "MICROSECOND", "milliseconds": "MILLISECOND", "second": "SECOND",
    "minute": "MINUTE", "hour": "HOUR", "day": "DAY", "week": "WEEK", "month": "MONTH",
    "quarter": "QUARTER", "year": "YEAR",
}  # fmt: skip


def _date_trunc(call: Call, scope: Scope) -> str:
    field = _known_text(call.args[0], scope, "field")
    if field is None:
        return "null"
    x = scope.emit(call.args[1])
    if call.type.name == "timestamptz":
        zone = _zone(call, 2, scope)
        if zone is None:
            return "null"
        if not is_utc(zone):
            raise unsupported("date_trunc in other time zones than UTC")
    unit = _TRUNCATED.get(find_field_name(field) or "")
    if unit is None:
        raise unsupported(f'date_trunc to "{field}"')
    return f"date_trunc('{unit}', cast({x} as timestamp_ltz))"


_DATE_FIELDS: Final = {
    "day": "day({0})",
    "month": "month({0})",
    "quarter": "quarter({0})",
    "year": "year({0})",
    "week": "weekofyear({0})",
    "isoyear": "extract(yearofweek from {0})",
    "dow": "dayofweek({0}) - 1",
    "isodow": "weekday({0}) + 1",
    "doy": "dayofyear({0})",
    "decade": "floor(year({0}) / 10BD)",
    "century": "(year({0}) + 99) div 100",
    "millennium": "(year({0}) + 999) div 1000",
}
_TIME_FIELDS: Final = {
    "hour": "hour({0})",
    "minute": "minute({0})",
    "second": "extract(second from {0})",
    "milliseconds": "extract(second from {0}) * 1000",
    "microseconds": "extract(second from {0}) * 1000000",
}
_MICROS: Final = "cast(extract(second from {0}) * 1000000 as int) % 1000000"
_FLOAT_FIELDS: Final = {
    "second": f"(second({{0}}) + {_MICROS} / 1000000D)",
    "milliseconds": f"(second({{0}}) * 1000 + {_MICROS} / 1000D)",
}
"""Of date_part(), added up as PostgreSQL does."""


def _extract(call: Call, scope: Scope) -> str:
    field_text = _known_text(call.args[0], scope, "field")
    if field_text is None:
        return "null"
    type_, x = call.args[1].type, scope.emit(call.args[1])
    if type_.name == "date" and call.type.name == "float8":
        # date_part() of a date is that of its midnight; extract() knows dates.
        type_, x = TIMESTAMP, f"cast({x} as {_NTZ})"
    field = find_field_name(field_text)
    if field is None:
        # An error where there is a time to take it of.
        raise unsupported(f'extract of "{field_text}"')
    exact = call.type.name == "numeric"
    if field == "epoch":
        return _epoch(x, type_) if exact else _float_epoch(x, type_)
    if type_.name == "interval":
        raise unsupported(f'extract of "{field}" from an interval')
    if type_.name == "timestamptz":
        x = _local(x, _zone(call, 2, scope), scope)
    template = _DATE_FIELDS.get(field)
    if template is None and type_.name == "date" and field in _TIME_FIELDS:
        raise SqlError("0A000", f'unit "{field_text.lower()}" not supported for type date')
    template = template or (None if exact else _FLOAT_FIELDS.get(field)) or _TIME_FIELDS.get(field)
    if template is None:
        raise unsupported(f'extract of "{field}"')
    before = error("0A000", "fields of dates before the common era are not supported")
    return f"case when year({x}) < 1 then {before} else {template.format(x)} end"


def _epoch(x: str, type_: SqlType) -> str:
    if type_.name != "interval":
        return f"cast({_micros(x)} as decimal(20,0)) * 0.000001BD"
    # A year of 365.25 days, the remaining months of 30 days.
    days = f"({x}.months div 12) * 365.25BD + ({x}.months % 12) * 30 + {x}.days"
    return f"({days}) * 86400 + cast({x}.micros as decimal(20,0)) * 0.000001BD"


def _float_epoch(x: str, type_: SqlType) -> str:
    """As date_part() adds it up."""
    if type_.name != "interval":
        return f"{_micros(x)} / 1000000D"
    return (
        f"({x}.micros / 1000000D + 31557600D * ({x}.months div 12)"
        f" + 2592000D * ({x}.months % 12) + 86400D * {x}.days)"
    )


def _make_date(call: Call, scope: Scope) -> str:
    year, month, day = (scope.emit(arg) for arg in call.args)
    values = f"{year}, '-', lpad({month}, 2, '0'), '-', lpad({day}, 2, '0')"
    failure = f"raise_error(concat('{ERROR_TAG}22008:date field value out of range: ', {values}))"
    era = error("0A000", "dates outside of the years 1 to 9999 are not supported")
    first = f"make_date({year}, {month}, 1)"
    return (
        f"case when {year} is null or {month} is null or {day} is null then null"
        f" when {year} < 0 or {year} > 9999 then {era}"
        f" when {year} = 0 or {month} not between 1 and 12 then {failure}"
        f" when {day} < 1 or {day} > day(last_day({first})) then {failure}"
        f" else make_date({year}, {month}, {day}) end"
    )


def _to_timestamp(call: Call, scope: Scope) -> str:
    """Seconds are rounded as PostgreSQL does: counted from 2000, half to even."""
    x = scope.emit(call.args[0])
    refusal = error("22008", "timestamp out of range")
    micros = f"cast(rint(({x} - 946684800D) * 1000000D) as bigint) + 946684800000000L"
    return (
        f"case when isnan({x}) then {error('22008', 'timestamp cannot be NaN')}"
        f" when abs({x}) = double('Infinity') then {refusal}"
        f" when {x} < -210866803200D or {x} >= 9224318016000D then {_RANGE}"
        f" else timestamp_micros({micros}) end"
    )


def _to_char(call: Call, scope: Scope) -> str:
    template = _known_text(call.args[1], scope, "template")
    if template is None:
        return "cast(null as string)"
    x = scope.emit(call.args[0])
    if len(call.args) > 2:
        x = _local(x, _zone(call, 2, scope), scope)
    native = native_to_char(template, x, SPARK_TO_CHAR, scope.statement.string)
    if native is None:
        raise unsupported("to_char() with this template")
    failure = error("0A000", "to_char of such a year on the spark engine is not supported")
    return f"if({x} is null, null, if(year({x}) between 1 and 9999, {native}, {failure}))"


# --- modifiers ---------------------------------------------------------------------------------


def _fit_time(call: Call, scope: Scope) -> str:
    """Fewer digits of a second, rounded half away from the zero of the type."""
    x, scale = scope.emit(call.args[0]), 10 ** (SECONDS_DIGITS_MAX - call.type.typmod)
    if scale == 1:
        return x
    if call.type.name == "timetz":
        raise unsupported("fewer digits of a time with time zone")
    if call.type.name == "time":
        return _rounded(x, scale)
    micros = f"({_micros(x)} - {POSTGRESQL_EPOCH_MICROS}L)"
    rounded = f"timestamp_micros({_rounded(micros, scale)} + {POSTGRESQL_EPOCH_MICROS}L)"
    return f"cast({rounded} as {_NTZ})" if call.type.name == "timestamp" else rounded


def _rounded(micros: str, scale: int) -> str:
    half = scale // 2
    return f"(({micros} + if({micros} >= 0, {half}L, -{half}L)) div {scale}L * {scale}L)"


def _fit_interval(call: Call, scope: Scope) -> str:
    """The fields of the modifier, what is smaller cut off."""
    x, typmod = scope.emit(call.args[0]), call.type.typmod
    unit = smallest_field(typmod)
    months, days, micros = f"{x}.months", f"{x}.days", f"{x}.micros"
    if unit in ("year", "month"):
        months = f"cast({months} div 12 * 12 as int)" if unit == "year" else months
        days, micros = "0", "0L"
    elif unit == "day":
        micros = "0L"
    elif unit in UNIT_MICROS:
        micros = f"({micros} div {UNIT_MICROS[unit]}L * {UNIT_MICROS[unit]}L)"
    elif seconds_precision(call.type) < SECONDS_DIGITS_MAX:
        micros = _rounded(micros, 10 ** (SECONDS_DIGITS_MAX - seconds_precision(call.type)))
    else:
        return x
    made = f"named_struct('months', {months}, 'days', {days}, 'micros', {micros})"
    return f"if({x} is null, null, {made})"


SPECIALS: Final = {
    "fit_time": _fit_time,
    "fit_interval": _fit_interval,
    "to_char": _to_char,
    "to_instant": _to_instant,
    "to_local": _to_local,
    "to_instant_session": _to_instant_session,
    "to_local_session": _to_local_session,
    "zoned_compare": _zoned_compare,
    "date_plus": _date_plus,
    "plus_interval": _plus_interval,
    "minus_time": _minus_time,
    "interval_compare": _interval_compare,
    "date_trunc": _date_trunc,
    "extract": _extract,
    "make_date": _make_date,
    "to_timestamp": _to_timestamp,
}
