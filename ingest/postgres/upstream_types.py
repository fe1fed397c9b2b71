"""Types of an upstream PostgreSQL as ours: its own are ours; enums and domains by their texts.

    pg_type + atttypmod ─▶ SqlType, or None for a type that we lack

INVARIANTS
  P1  a value that upstream's type has is read whole by the type that stands for it, or it is a
      bad record; no digit, character or microsecond is lost in silence.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ingest.reader import ReaderFailure, UpstreamColumn, UpstreamTable
from sql.types.sql_type import (
    NUMERIC,
    NUMERIC_PRECISION_MAX,
    TEXT,
    SqlType,
    array_of,
    bpchar,
    format_type,
    numeric,
    plain_type,
    varchar,
)

KEY_HINT: Final = (
    "Put the key back upstream, then ALTER SOURCE .. RESNAPSHOT; or drop the table here or "
    "DETACH it, and make it anew."
)
_PLAIN: Final = frozenset(
    {
        *(
            "bool",
            "int2",
            "int4",
            "int8",
            "oid",
            "float4",
            "float8",
            "text",
            "name",
            "uuid",
            "char",
        ),
        *("json", "jsonb", "bytea", "date"),
    }
)
_WITH_DIGITS: Final = frozenset({"time", "timetz", "timestamp", "timestamptz", "interval"})
_NAMES: Final[Mapping[int, str]] = {
    16: "bool", 17: "bytea", 18: "char", 19: "name", 20: "int8", 21: "int2", 23: "int4",
    25: "text", 26: "oid", 114: "json", 700: "float4", 701: "float8", 1042: "bpchar",
    1043: "varchar", 1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz",
    1186: "interval", 1266: "timetz", 1700: "numeric", 2950: "uuid", 3802: "jsonb",
    1000: "_bool", 1001: "_bytea", 1002: "_char", 1003: "_name", 1016: "_int8", 1005: "_int2",
    1007: "_int4", 1009: "_text", 1028: "_oid", 199: "_json", 1021: "_float4", 1022: "_float8",
    1014: "_bpchar", 1015: "_varchar", 1182: "_date", 1183: "_time", 1115: "_timestamp",
    1185: "_timestamptz", 1187: "_interval", 1270: "_timetz", 1231: "_numeric", 2951: "_uuid",
    3807: "_jsonb",
}  # fmt: skip
"""Types of columns by pg_type.oid: the same on every PostgreSQL."""


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A row of pg_type of a type that is not built in. `kind`: typtype."""

    oid: int
    name: str
    kind: str
    base: int
    base_typmod: int


TypeRows = Mapping[int, TypeRow]


def matching_type(oid: int, typmod: int, known: TypeRows) -> SqlType | None:
    """Our type for upstream's; None if we have none (P1)."""
    name = _NAMES.get(oid)
    if name is not None:
        return _with_typmod(name, typmod)
    row = known.get(oid)
    if row is None:
        return None
    if row.kind == "d":
        # The modifier of a domain is its own; a column of it has none.
        return matching_type(row.base, row.base_typmod, known)
    return TEXT if row.kind == "e" else None


def type_name(oid: int, typmod: int, known: TypeRows) -> str:
    """For messages."""
    if oid in _NAMES:
        type_ = _with_typmod(_NAMES[oid], typmod)
        return "numeric" if type_ is None else format_type(type_)
    row = known.get(oid)
    return f"with oid {oid}" if row is None else row.name


def column_type_name(oid: int, typmod: int, known: TypeRows) -> str:
    """Of a column: the name of our type, or that of upstream's if we have none."""
    type_ = matching_type(oid, typmod, known)
    return type_name(oid, typmod, known) if type_ is None else format_type(type_)


def _with_typmod(name: str, typmod: int) -> SqlType | None:
    if name.startswith("_"):
        element = _with_typmod(name[1:], typmod)
        return None if element is None else array_of(element)
    if name in _PLAIN:
        return SqlType(name)
    if name in _WITH_DIGITS:
        return SqlType(name, typmod)
    if name == "numeric":
        return _numeric(typmod)
    length = None if typmod < 4 else typmod - 4
    return varchar(length) if name == "varchar" else bpchar(length)


def _numeric(typmod: int) -> SqlType | None:
    if typmod < 4:
        return NUMERIC
    precision, packed = (typmod - 4) >> 16 & 0xFFFF, (typmod - 4) & 0x7FF
    scale = (packed ^ 1024) - 1024
    if precision > NUMERIC_PRECISION_MAX or not 0 <= scale <= precision:
        return None
    return numeric(precision, scale)


_WIDER: Final[Mapping[str, frozenset[str]]] = {
    "int2": frozenset({"int4", "int8"}),
    "int4": frozenset({"int8"}),
    "float4": frozenset({"float8"}),
    "name": frozenset({"varchar"}),
}
_INTEGER_DIGITS: Final = {"int2": 5, "int4": 10, "int8": 19}


def fits(upstream: SqlType | None, ours: SqlType) -> bool:
    """Whether every value of upstream's type reads as ours without a loss (P1)."""
    if ours == TEXT:
        return True
    if upstream is None:
        return False
    if upstream == ours or replace(upstream, trim=ours.trim) == ours:
        return True
    if (element := ours.element) is not None:
        return upstream.element is not None and fits(upstream.element, element)
    if ours.name == "numeric":
        return _fits_numeric(upstream, ours)
    if ours.name == "varchar":
        return _fits_varchar(upstream, ours)
    if ours.name == upstream.name:
        # A modifier that holds more: none, or for bpchar the width, which pads.
        return ours.typmod < 0 and ours.name in (*_WITH_DIGITS, *_PLAIN)
    return ours.name in _WIDER.get(upstream.name, ())


def _fits_numeric(upstream: SqlType, ours: SqlType) -> bool:
    precision, scale = ours.precision or 0, ours.scale or 0
    whole = precision - scale
    if upstream.name in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[upstream.name] <= whole
    if upstream.name != "numeric" or upstream.typmod < 0:
        return False
    digits = (upstream.precision or 0) - (upstream.scale or 0)
    return (upstream.scale or 0) <= scale and digits <= whole


def _fits_varchar(upstream: SqlType, ours: SqlType) -> bool:
    if upstream.name == "varchar" and upstream.length is not None and ours.length is not None:
        return upstream.length <= ours.length
    return ours.length is None and upstream.name in ("varchar", "text", "name")


def chosen_columns(
    table: UpstreamTable,
    text_columns: Collection[str] = (),
    exclude_columns: Collection[str] = (),
) -> UpstreamTable:
    """The table as one who takes it in will have it. Raises its obstacle, or 0A000, 42703."""
    if table.obstacle is not None:
        raise table.obstacle
    names = {column.name for column in table.columns} | set(table.unsupported)
    for name in (*text_columns, *exclude_columns):
        if name not in names:
            message = f'column "{name}" of upstream table {table.reference} does not exist'
            raise ReaderFailure("42703", message)
    for name, lacking in table.unsupported.items():
        if name not in text_columns and name not in exclude_columns:
            raise ReaderFailure(
                "0A000",
                f'column "{name}" of upstream table {table.reference} has type {lacking}',
                hint=f"Name it in text_columns or exclude_columns: '{name}'.",
            )
    for name in table.key:
        if name in exclude_columns:
            message = f'column "{name}" is in the key of upstream table {table.reference}'
            raise ReaderFailure("0A000", message, hint="A column of the key cannot be left out.")
    columns = tuple(
        replace(column, type=TEXT) if column.name in text_columns else column
        for column in table.columns
        if column.name not in exclude_columns
    )
    added = [UpstreamColumn(name, TEXT) for name in table.unsupported if name in text_columns]
    return replace(table, columns=(*columns, *added), unsupported={})


assert all(plain_type(name).oid == oid for oid, name in _NAMES.items()), "as pg_type has them"
