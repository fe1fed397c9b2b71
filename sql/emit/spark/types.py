"""Write PostgreSQL's types and values as Spark SQL types and literals.

INVARIANTS
  L1  a literal's text consists of digits, letters of ours and signs; a string never becomes text:
      it is bound as an argument.
  L2  a literal has exactly the Spark type of its SqlType, by an explicit cast or suffix.

The session of Spark runs in UTC, so that a count of microseconds has one meaning for both
timestamp types.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from sql.emit.error_tag import ERROR_TAG
from sql.errors import not_supported
from sql.types.enums import storage_type_name
from sql.types.sql_type import REG_TYPES, Interval, SqlType, Value

HINT: Final = "The local engine may run it: SET engine = auto."

_NAMES: Final[dict[str, str]] = {
    "bool": "boolean", "int2": "smallint", "int4": "int", "int8": "bigint", "oid": "bigint",
    **dict.fromkeys(REG_TYPES, "bigint"),
    "float4": "float", "float8": "double", "text": "string", "varchar": "string",
    "bpchar": "string", "name": "string", "char": "string", "unknown": "string", "uuid": "string",
    "json": "string", "jsonb": "string", "jsonpath": "string",
    "record": "string", "bytea": "binary",
    "date": "date", "time": "bigint", "timetz": "bigint", "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp_ltz", "void": "string",
    # Spark has two interval types that do not mix; ours has three fields.
    "interval": "struct<months:int,days:int,micros:bigint>",
}  # fmt: skip


def spark_type(type_: SqlType) -> str:
    """The type that an expression of this type has in Spark SQL."""
    if type_.name == "numeric":
        return f"decimal({type_.precision},{type_.scale})"
    if (element := type_.element) is not None:
        return f"array<{spark_type(element)}>"
    return _NAMES[storage_type_name(type_.name)]


def literal(value: Value, type_: SqlType) -> str:
    """A value other than a string as SQL text (L1, L2)."""
    name = spark_type(type_)
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
            return f"cast({value:f}BD as {name})"
        case bytes():
            return f"X'{value.hex()}'"
        case Interval():
            return (
                f"named_struct('months', {value.months}, 'days', {value.days},"
                f" 'micros', cast({value.micros} as bigint))"
            )
        case _:
            raise AssertionError("L1: a string is bound, not written")


def _integer(value: int, type_: SqlType, name: str) -> str:
    match type_.name:
        case "date":
            return f"date_from_unix_date({value})"
        case "timestamp":
            return f"cast(timestamp_micros({value}L) as timestamp_ntz)"
        case "timestamptz":
            return f"timestamp_micros({value}L)"
        case _:
            return f"cast({value} as {name})"


def _float(value: float, name: str) -> str:
    if math.isnan(value):
        return f"{name}('NaN')"
    if math.isinf(value):
        return f"{name}('{'-' if value < 0 else ''}Infinity')"
    return f"cast({value!r}D as {name})"


def array(items: Sequence[str], type_: SqlType) -> str:
    """An array of these texts."""
    return f"cast(array({', '.join(items)}) as {spark_type(type_)})"


def interval_key(text: str) -> str:
    """The length of an interval, by which PostgreSQL compares: a month has 30 days."""
    x = f"({text})"
    days = f"cast(({x}.months * 30L + {x}.days) as decimal(20,0))"
    return f"({days} * 86400000000BD + {x}.micros)"


def error(sqlstate: str, message: str) -> str:
    """An expression that fails with this error when it is evaluated."""
    assert "'" not in message, "messages of templates are plain text"
    assert "\\" not in message, "messages of templates are plain text"
    return f"raise_error('{ERROR_TAG}{sqlstate}:{message}')"


def unsupported(what: str) -> Exception:
    """0A000: a feature that this engine cannot provide as PostgreSQL does."""
    return not_supported(f"{what} on the spark engine", hint=HINT)


def bind_variable(variable: str, value: str, text: str) -> str:
    """A text over a variable, whose value is computed once."""
    return f"get(transform(array({value}), {variable} -> {text}), 0)"
