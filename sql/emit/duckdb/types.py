"""Write PostgreSQL's types and values as DuckDB types and literals.

INVARIANTS
  L1  a literal's text consists of digits, letters of ours and signs; a string never becomes text:
      it is bound as an argument, as are the values of parameters.
  L2  a literal has exactly the DuckDB type of its SqlType, by an explicit cast.
  L3  an interval is a struct of months, days and micros, as it is stored: DuckDB's own interval
      overflows on its way through Arrow. An instant is the engine's TIMESTAMPTZ, and the engine's
      time zone is UTC.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from sql.errors import SqlError, not_supported
from sql.types.enums import storage_type_name
from sql.types.sql_type import REG_TYPES, Interval, SqlType, Value

ERROR_TAG: Final = "MERIDIAN:"
"""Messages of `error` in our templates are `MERIDIAN:<sqlstate>:<message>`."""

ENGINE: Final = "local"

_NAMES: Final[dict[str, str]] = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "oid": "bigint",
    **dict.fromkeys(REG_TYPES, "bigint"),
    "float4": "float", "float8": "double", "text": "varchar", "varchar": "varchar",
    "bpchar": "varchar", "name": "varchar", "char": "varchar", "unknown": "varchar",
    "uuid": "varchar",
    "json": "varchar", "jsonb": "varchar", "jsonpath": "varchar", "record": "varchar",
    "bytea": "blob", "date": "date", "time": "bigint", "timetz": "bigint",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "interval": "struct(months integer, days integer, micros bigint)", "void": "varchar",
}  # fmt: skip


def duckdb_type(type_: SqlType) -> str:
    """The type that an expression of this type has in DuckDB."""
    if type_.name == "numeric":
        return f"decimal({type_.precision},{type_.scale})"
    if (element := type_.element) is not None:
        return f"{duckdb_type(element)}[]"
    return _NAMES[storage_type_name(type_.name)]


def literal(value: Value, type_: SqlType) -> str:
    """A value other than a string as SQL text (L1, L2)."""
    name = duckdb_type(type_)
    match value:
        case None:
            return f"cast(null as {name})"
        case bool():
            return "true" if value else "false"
        case int():
            return _integer(value, type_, name)
        case float():
            return _float(value, name)
        case Decimal():
            return f"cast('{value:f}' as {name})"
        case bytes():
            return f"from_hex('{value.hex()}')"
        case Interval():
            months, days = _as(value.months, "integer"), _as(value.days, "integer")
            micros = _as(value.micros, "bigint")
            return f"struct_pack(months := {months}, days := {days}, micros := {micros})"
        case _:
            raise AssertionError("L1: a string is bound, not written")


def argument(value: Value, type_: SqlType, reference: str) -> tuple[str, str] | None:
    """The expression of `literal` with the value in an argument instead, and the argument; None for
    a value that is written. The text depends on the value's class alone.
    """
    name = duckdb_type(type_)
    match value:
        case bool():
            return f"cast({reference} as boolean)", "true" if value else "false"
        case int():
            return _integer(reference, type_, name), str(value)
        case float():
            return f"cast({reference} as {name})", repr(value)
        case Decimal():
            return f"cast({reference} as {name})", f"{value:f}"
        case bytes():
            return f"from_hex({reference})", value.hex()
        case str():
            return reference, value
        case _:
            return None


def _as(value: int | str, name: str) -> str:
    return f"cast({value} as {name})"


def _integer(value: int | str, type_: SqlType, name: str) -> str:
    match type_.name:
        case "date":
            return f"(date '1970-01-01' + {_as(value, 'integer')})"
        case "timestamp":
            return f"make_timestamp({_as(value, 'bigint')})"
        case "timestamptz":
            return f"make_timestamptz({_as(value, 'bigint')})"
        case _:
            return _as(value, name)


def _float(value: float, name: str) -> str:
    if math.isnan(value):
        return f"cast('nan' as {name})"
    if math.isinf(value):
        return f"cast('{'-' if value < 0 else ''}inf' as {name})"
    return f"cast('{value!r}' as {name})"


def array(items: Sequence[str], type_: SqlType) -> str:
    """An array of these texts."""
    return f"cast(list_value({', '.join(items)}) as {duckdb_type(type_)})"


def as_duckdb_interval(text: str) -> str:
    """An interval as DuckDB adds it."""
    x = f"({text})"
    return f"(to_months({x}.months) + to_days({x}.days) + to_microseconds({x}.micros))"


def interval_key(text: str) -> str:
    """The length of an interval, by which PostgreSQL compares: a month has 30 days."""
    x = f"({text})"
    days = f"(cast({x}.months as hugeint) * 30 + {x}.days)"
    return f"({days} * 86400000000 + {x}.micros)"


def error(sqlstate: str, message: str) -> str:
    """An expression that fails with this error when it is evaluated."""
    assert "'" not in message, "messages of templates are plain text"
    return f"error('{ERROR_TAG}{sqlstate}:{message}')"


def unsupported(what: str) -> SqlError:
    """0A000: a feature that this engine cannot provide as PostgreSQL does."""
    return not_supported(f"{what} on the {ENGINE} engine")


def bind_variable(variable: str, value: str, text: str) -> str:
    """A text over a variable, whose value is computed once."""
    return f"list_transform([{value}], lambda {variable}: {text})[1]"


def bind_field_variables(variable: str, fields: Sequence[str], text: str) -> str:
    """The same over a struct of the fields `f0`, `f1` .. (`Scope.fields`)."""
    given = ", ".join(f"'f{at}': {field}" for at, field in enumerate(fields))
    return bind_variable(variable, f"{{{given}}}", text)
