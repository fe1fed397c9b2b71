"""Generated values of every type, for properties over the wire."""

from decimal import Decimal

from hypothesis import strategies as st

from sql.types.datetime.calendar import MICROS_PER_DAY, days_from_civil
from sql.types.datetime.date_input import DATE_DAYS_MAX, TIMESTAMP_MICROS_END
from sql.types.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Interval,
    SqlType,
    Value,
    bpchar,
    numeric,
    varchar,
)

TYPES = (
    BOOL, INT2, INT4, INT8, OID, FLOAT4, FLOAT8, NUMERIC, numeric(5, 2), numeric(38, 10),
    numeric(10, 0), numeric(9, 9), TEXT, varchar(), varchar(5), bpchar(4), NAME, BYTEA, UUID, DATE,
    TIMESTAMP, TIMESTAMPTZ, INTERVAL,
)  # fmt: skip

_DAYS_MIN = days_from_civil(1, 1, 1)
_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_STAMPS = st.one_of(
    st.integers(_DAYS_MIN * MICROS_PER_DAY, TIMESTAMP_MICROS_END - 1),
    st.integers(0, 4 * 10**9).map(lambda seconds: seconds * 10**6),
    st.integers(-(10**15), 4 * 10**15),
)


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _numerics(type_: SqlType) -> st.SearchStrategy[Decimal]:
    assert type_.precision is not None
    assert type_.scale is not None
    scale = type_.scale
    bound = 10**type_.precision - 1
    unscaled = st.one_of(st.integers(-bound, bound), st.integers(-1000, 1000))
    return unscaled.map(lambda number: Decimal(f"{number}E-{scale}"))


def _texts(type_: SqlType) -> st.SearchStrategy[str]:
    texts = st.text(_CHARACTERS, max_size=type_.length or 12)
    if type_.name == "name":
        return texts.filter(lambda text: len(text.encode()) <= 63)
    return texts.map(lambda text: text.rstrip(" ")) if type_.name == "bpchar" else texts


def values(type_: SqlType) -> st.SearchStrategy[Value]:
    """Values of the type, without NULL."""
    match type_.name:
        case "bool":
            return st.booleans()
        case "int2" | "int4" | "int8":
            return _integers(type_.size * 8)
        case "oid":
            return st.integers(0, 2**32 - 1)
        case "float4" | "float8":
            return st.floats(width=32 if type_.name == "float4" else 64)
        case "numeric":
            return _numerics(type_)
        case "bytea":
            return st.binary(max_size=12)
        case "uuid":
            return st.uuids().map(str)
        case "date":
            return st.one_of(st.integers(_DAYS_MIN, DATE_DAYS_MAX), st.integers(-40_000, 40_000))
        case "timestamp" | "timestamptz":
            return _STAMPS
        case "interval":
            return st.builds(Interval, _integers(32), _integers(32), _integers(53))
        case _:
            return _texts(type_)
