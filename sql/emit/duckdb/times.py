"""Write functions of dates, timestamps and intervals as DuckDB SQL.

DuckDB runs in UTC, so an instant cast to `timestamp` is its UTC reading and back. A call that needs
another zone is computed by the reference evaluator, whose time zones are the server's.

INVARIANTS
  I1  a zone or a field that is not known when the expression is emitted goes to the reference
      evaluator; nothing here takes one for another.
"""

from collections.abc import Callable, Sequence
from typing import Final

from sql.emit.duckdb.evaluator_calls import evaluator_call, evaluator_call_over
from sql.emit.duckdb.types import as_duckdb_interval, error, interval_key
from sql.emit.state import Scope
from sql.emit.time_templates import DUCKDB_TO_CHAR, native_to_char
from sql.emit.zones import argument_zone, is_utc
from sql.plan.nodes import Call, Expr
from sql.plan.traverse import expression_nodes
from sql.types.datetime.extract_fields import find_field_name
from sql.types.datetime.typmods import POSTGRESQL_EPOCH_MICROS
from sql.types.sql_type import SECONDS_DIGITS_MAX

_SMALL: Final = 3
"""Of an expression: as many nodes as a cast column has, and one."""


def _known_text(expr: Expr, scope: Scope) -> str | None:
    known = scope.statement.known(expr)
    return known[0] if known is not None and isinstance(known[0], str) else None


def _is_utc(call: Call, place: int, scope: Scope) -> bool:
    name = _known_text(call.args[place], scope)
    return name is not None and is_utc(argument_zone(call, place, name, scope))


def _in_zone(zone: int, value: int, target: str) -> Callable[[Call, Scope], str]:
    """A cast to `target` where the zone, an argument, is UTC."""

    def emit(call: Call, scope: Scope) -> str:
        if not _is_utc(call, zone, scope):
            return evaluator_call(call, scope)
        return f"cast(cast({scope.emit(call.args[value])} as timestamp) as {target})"

    return emit


def _session_cast(call: Call, scope: Scope) -> str:
    return _in_zone(1, 0, call.type.name)(call, scope)


def _zoned_compare(call: Call, scope: Scope) -> str:
    if not _is_utc(call, 2, scope):
        return evaluator_call(call, scope)
    left, right = (f"cast({scope.emit(arg)} as timestamp)" for arg in call.args[:2])
    return f"{left} {call.function.name} {right}"


# --- arithmetic --------------------------------------------------------------------------------


def _date_plus(call: Call, scope: Scope) -> str:
    left, right = call.args
    if left.type.name == "int4":
        left, right = right, left
    epoch = "date '1970-01-01'"
    days = (
        f"(({scope.emit(left)} - {epoch}) {call.function.name} cast({scope.emit(right)} as bigint))"
    )
    failure = error("22008", "date out of range")
    # PostgreSQL's bounds; DuckDB's are elsewhere.
    return (
        f"case when {days} not between -2440588 and 2145042540 then {failure}"
        f" else {epoch} + cast({days} as integer) end"
    )


def _plus_interval(call: Call, scope: Scope) -> str:
    """Months first, then days, then time, as PostgreSQL adds them."""
    args = [scope.emit(arg) for arg in call.args]
    if call.function.zone and not _is_utc(call, 2, scope):
        return evaluator_call(call, scope)
    other = evaluator_call_over(call, args, scope)
    time, interval = args[:2]
    if call.args[0].type.name == "interval":
        time, interval = interval, time
    x = f"cast({time} as timestamp)"
    near = f"year({x}) between 1 and 9999 and {_is_short(interval)}"
    native = f"{x} {call.function.name} {as_duckdb_interval(interval)}"
    return f"case when {near} then {native} else {other} end"


def _is_short(interval: str) -> str:
    """Whether on the way no moment of the years 1 to 9999 gets past PostgreSQL's bounds, of which
    the first is 4713 BC: by at most 4000, 300 and 300 years. DuckDB's bounds are elsewhere.
    """
    bounds = (("months", 48_000), ("days", 109_500), ("micros", 9_460_800_000_000_000))
    return " and ".join(
        f"({interval}).{part} between -{bound} and {bound}" for part, bound in bounds
    )


def _minus_time(call: Call, scope: Scope) -> str:
    """Days and time, as PostgreSQL's timestamp subtraction gives them; never months."""
    left, right = (f"cast({scope.emit(arg)} as timestamp)" for arg in call.args)
    micros = f"(epoch_us({left}) - epoch_us({right}))"
    return (
        f"case when {micros} is not null then struct_pack(months := cast(0 as integer),"
        f" days := cast({micros} // 86400000000 as integer),"
        f" micros := {micros} % 86400000000) end"
    )


def _interval_product(call: Call, scope: Scope) -> str:
    """Each part by itself where the factor is whole; fractions of parts become smaller ones. The
    arguments are written eight times, so they must be small.
    """
    if any(len(list(expression_nodes(arg))) > _SMALL for arg in call.args):
        return evaluator_call(call, scope)
    args = [scope.emit(arg) for arg in call.args]
    other = evaluator_call_over(call, args, scope)
    x, factor = args if call.args[0].type.name == "interval" else args[::-1]
    # Beyond these bounds are infinities, what is out of range, and what a double does not hold.
    whole = (
        f"{factor} = trunc({factor}) and abs({factor} * ({x}).months) < 2147483647"
        f" and abs({factor} * ({x}).days) < 2147483647"
        f" and abs({factor} * ({x}).micros) < 9007199254740992"
    )
    return (
        f"case when {whole} then struct_pack(months := cast({factor} * ({x}).months as integer),"
        f" days := cast({factor} * ({x}).days as integer),"
        f" micros := cast({factor} * ({x}).micros as bigint)) else {other} end"
    )


def _interval_compare(call: Call, scope: Scope) -> str:
    left, right = (interval_key(scope.emit(arg)) for arg in call.args)
    return f"{left} {call.function.name} {right}"


# --- fields ------------------------------------------------------------------------------------

_TRUNCATED: Final = frozenset(
    {
        "microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month",
        "quarter", "year",
    }
)  # fmt: skip


def _date_trunc(call: Call, scope: Scope) -> str:
    field = _known_text(call.args[0], scope)
    zoned = call.type.name == "timestamptz"
    if field is None or (zoned and not _is_utc(call, 2, scope)):
        return evaluator_call(call, scope)
    name = find_field_name(field)
    if name not in _TRUNCATED:
        return evaluator_call(call, scope)
    args = [scope.emit(arg) for arg in call.args]
    x = f"cast({args[1]} as timestamp)"
    other = evaluator_call_over(call, args, scope)
    return f"case when year({x}) between 1 and 9999 then date_trunc('{name}', {x}) else {other} end"


_DATE_FIELDS: Final = frozenset(
    {"day", "month", "quarter", "year", "week", "isoyear", "dow", "isodow", "doy"}
)
_TIME_FIELDS: Final = {
    "hour": "hour({0})",
    "minute": "minute({0})",
    # The seconds of DuckDB's fields come with those of the minute in smaller units.
    "second": "cast(microsecond({0}) as decimal(20,0)) * cast('0.000001' as decimal(7,6))",
    "milliseconds": "cast(microsecond({0}) as decimal(20,0)) * cast('0.001' as decimal(4,3))",
    "microseconds": "microsecond({0})",
}
_FLOAT_FIELDS: Final = {
    "epoch": "cast(epoch_us({0}) as double) / 1000000",
    "second": "second({0}) + cast(microsecond({0}) % 1000000 as double) / 1000000",
    "milliseconds": "second({0}) * 1000 + cast(microsecond({0}) % 1000000 as double) / 1000",
}
"""Of date_part(), added up as PostgreSQL does."""


def _extract(call: Call, scope: Scope) -> str:
    field_text = _known_text(call.args[0], scope)
    type_, args = call.args[1].type, [scope.emit(arg) for arg in call.args]
    other = evaluator_call_over(call, args, scope)
    if field_text is None or type_.name == "interval":
        return other
    if type_.name == "timestamptz" and not _is_utc(call, 2, scope):
        return other
    field = find_field_name(field_text)
    if field is None:
        # An error where there is a time to take it of.
        return other
    native = _field(field, args, type_.name, exact=call.type.name == "numeric")
    if native is None:
        return other
    return f"case when year({args[1]}) between 1 and 9999 then {native} else {other} end"


def _field(field: str, args: Sequence[str], type_name: str, *, exact: bool) -> str | None:
    x = f"cast({args[1]} as timestamp)"
    if field in _DATE_FIELDS:
        return f"datepart('{field}', {x})"
    if type_name == "date":
        return None
    if not exact and field in _FLOAT_FIELDS:
        return _FLOAT_FIELDS[field].format(x)
    if field == "epoch":
        return f"cast(epoch_us({x}) as decimal(20,0)) * cast('0.000001' as decimal(7,6))"
    template = _TIME_FIELDS.get(field)
    return None if template is None else template.format(x)


def _to_timestamp(call: Call, scope: Scope) -> str:
    """Seconds are rounded as PostgreSQL does: counted from 2000, half to even."""
    x = scope.emit(call.args[0])
    micros = (
        f"cast(({x} - cast('946684800' as double)) * cast('1000000' as double) as bigint)"
        " + 946684800000000"
    )
    other = evaluator_call_over(call, [x], scope)
    # The years 1 to 9999, about.
    usual = f"{x} between -60000000000 and 250000000000"
    return f"case when {usual} then make_timestamptz({micros}) else {other} end"


def _to_char(call: Call, scope: Scope) -> str:
    template = _known_text(call.args[1], scope)
    if template is None or (len(call.args) > 2 and not _is_utc(call, 2, scope)):
        return evaluator_call(call, scope)
    args = [scope.emit(arg) for arg in call.args]
    x = f"cast({args[0]} as timestamp)"
    native = native_to_char(template, x, DUCKDB_TO_CHAR, scope.statement.string)
    if native is None:
        return evaluator_call(call, scope)
    other = evaluator_call_over(call, args, scope)
    return f"case when year({x}) between 1 and 9999 then {native} else {other} end"


# --- modifiers ---------------------------------------------------------------------------------


def _fit_time(call: Call, scope: Scope) -> str:
    """Fewer digits of a second, rounded half away from the zero of the type."""
    x, scale = scope.emit(call.args[0]), 10 ** (SECONDS_DIGITS_MAX - call.type.typmod)
    if scale == 1:
        return x
    if call.type.name == "timetz":
        return evaluator_call(call, scope)
    name, half = call.type.name, scale // 2
    if name == "time":
        return f"({x} + {half}) // {scale} * {scale}"
    micros = f"(epoch_us({x}) - {POSTGRESQL_EPOCH_MICROS})"
    later = f"({micros} + {half}) // {scale} * {scale}"
    earlier = f"({half} - {micros}) // {scale} * {scale}"
    rounded = (
        f"{POSTGRESQL_EPOCH_MICROS} + case when {micros} >= 0 then {later} else -({earlier}) end"
    )
    return f"make_{name}({rounded})"


SPECIALS: Final = {
    "fit_time": _fit_time,
    "fit_interval": evaluator_call,
    "to_char": _to_char,
    "to_instant": _in_zone(0, 1, "timestamptz"),
    "to_local": _in_zone(0, 1, "timestamp"),
    "session_cast": _session_cast,
    "zoned_compare": _zoned_compare,
    "date_plus": _date_plus,
    "interval_compare": _interval_compare,
    "interval_product": _interval_product,
    "plus_interval": _plus_interval,
    "minus_time": _minus_time,
    "date_trunc": _date_trunc,
    "extract": _extract,
    "to_timestamp": _to_timestamp,
}
