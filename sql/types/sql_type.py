"""PostgreSQL types with their modifiers, and how their values look in Python and in Arrow.

    type                  Python value                           Arrow
    bool                  bool                                   bool
    int2 int4 int8 oid    int                                    int16 int32 int64 int64
    float4 float8         float (float4: rounded to 32 bits)     float32 float64
    numeric               decimal.Decimal (finite)               decimal128(precision, scale)
    text varchar bpchar   str (bpchar: see Y5)                   string
    name unknown          str                                    string
    char                  str, one ASCII character; '' for 0     string
    bytea                 bytes                                  binary
    uuid                  str, canonical lower case              string
    json                  str, as it was written                 string
    enums                 str, the label (`enums.py`)            string
    jsonb                 str, canonical (`json/parser.py`)      string
    jsonpath              str, canonical (`json/path_parser.py`) string
    record                str (`records.py`)                     string
    date                  int, days since 1970-01-01             date32
    time                  int, microseconds since midnight       int64
    timetz                int (`datetime/timetz.py`)             int64
    timestamp             int, microseconds since 1970-01-01     timestamp[us]
    timestamptz           int, microseconds since 1970-01-01 UTC timestamp[us, UTC]
    interval              Interval                               struct months, days, micros
    array of any of them  tuple                                  list of the element's type
    NULL of any type      None                                   null

Dates are integers because PostgreSQL's range is wider than Python's. The name of an array type is
that of its elements behind an underscore, `_int4`, as in pg_type. An array has one dimension and
begins at 1; other arrays are refused where they would arise.

INVARIANTS
  Y1  `typmod` is the modifier that PostgreSQL would report; `precision` and `scale` are those that
      the value is computed and stored with. Every numeric expression has both; of others see Y5.
  Y2  `trim` of a numeric is true when the scale is not PostgreSQL's display scale (unconstrained
      numeric, quotients): the value is printed without trailing zeros. False for others but bpchar.
  Y3  an array type carries the modifier, precision, scale and `trim` of its elements.
  Y4  a value of a reg type is an oid everywhere; only a result shows its name.
  Y5  a value of bpchar is held without trailing blanks, and shown `length` characters wide. The
      width is the modifier's; it is `precision` where PostgreSQL loses the modifier but keeps the
      blanks (`max(c)`). With `trim` every value has its own trailing blanks, and code that compares
      such values trims them first (`sql/plan/bpchar_calls.py`); such a type has no width.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, TypeAlias

from pglast.keywords import COL_NAME_KEYWORDS, RESERVED_KEYWORDS, TYPE_FUNC_NAME_KEYWORDS

from sql.types.catalog_types import HELD_AS, catalog_types, is_catalog_type
from sql.types.enums import enum_of, is_enum

_KEYWORDS: Final = COL_NAME_KEYWORDS | RESERVED_KEYWORDS | TYPE_FUNC_NAME_KEYWORDS

NUMERIC_PRECISION_MAX: Final = 38
NUMERIC_SCALE_DEFAULT: Final = 18


@dataclass(frozen=True, slots=True)
class Interval:
    """PostgreSQL's interval: three fields that do not mix."""

    months: int = 0
    days: int = 0
    micros: int = 0


Value: TypeAlias = (
    "bool | int | float | Decimal | str | bytes | Interval | tuple[Value, ...] | None"
)


@dataclass(frozen=True, slots=True)
class RowType:
    """The name of a row type: that of its table or view. `array`: the oid of arrays of rows."""

    oid: int
    array: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type with its modifier. `name` is pg_type.typname, e.g. `int4`, `varchar`."""

    name: str
    typmod: int = -1
    precision: int | None = None
    scale: int | None = None
    trim: bool = False
    fields: "tuple[SqlType, ...] | None" = field(default=None, repr=False)
    """The types of a record's fields, if they are known."""
    names: tuple[str, ...] | None = field(default=None, repr=False)
    """The names of these fields; None: `f1`, `f2` .."""
    row: RowType | None = field(default=None, repr=False)
    """The row type of a record, or of an array's elements; None for `record` itself."""

    @property
    def oid(self) -> int:
        """pg_type.oid."""
        if self.row is not None:
            return self.row.oid if self.element is None else self.row.array
        known = TYPE_OIDS.get(self.name)
        if known is not None:
            return known
        if is_catalog_type(self.name):
            return catalog_types()[self.name].oid
        element = self.element
        return enum_of(self.name).oid if element is None else enum_of(element.name).array

    @property
    def size(self) -> int:
        """pg_type.typlen; -1 for variable length."""
        if is_catalog_type(self.name):
            return catalog_types()[self.name].size
        return _ENUM_SIZE if is_enum(self.name) else TYPE_SIZES.get(self.name, -1)

    @property
    def category(self) -> str:
        """pg_type.typcategory."""
        return type_category(self.name)

    @property
    def length(self) -> int | None:
        """N of varchar(n) and char(n); the width of a bpchar (Y5)."""
        if self.name not in ("varchar", "bpchar"):
            return None
        return self.typmod - 4 if self.typmod >= 4 else self.precision

    @property
    def has_blanks(self) -> bool:
        """Whether values of a bpchar, or of an array of it, carry their own blanks (Y5)."""
        return self.trim and self.name in ("bpchar", "_bpchar")

    @property
    def element(self) -> "SqlType | None":
        """The type of an array's elements (Y3); None for other types."""
        if self.name in VECTOR_TYPE_OIDS:
            return SqlType(self.name.removesuffix("vector"))
        return replace(self, name=self.name[1:]) if self.name.startswith("_") else None

    def bare(self) -> "SqlType":
        """The same type without modifier (numeric keeps its computed precision and scale, bpchar
        its width).
        """
        if self.typmod >= 4 and self.name in ("bpchar", "_bpchar"):
            return replace(self, typmod=-1, precision=self.typmod - 4)
        return replace(self, typmod=-1)


TYPE_OIDS: Final[dict[str, int]] = {
    "bool": 16, "bytea": 17, "char": 18, "name": 19, "int8": 20, "int2": 21, "int4": 23,
    "text": 25, "oid": 26,
    "float4": 700, "float8": 701, "unknown": 705, "bpchar": 1042, "varchar": 1043, "date": 1082,
    "timestamp": 1114, "timestamptz": 1184, "interval": 1186, "numeric": 1700, "uuid": 2950,
    "void": 2278, "record": 2249, "_record": 2287,
    "regproc": 24, "regclass": 2205, "regtype": 2206, "regnamespace": 4089,
    "regrole": 4096,
    "regprocedure": 2202,
    "_bool": 1000, "_bytea": 1001, "_char": 1002, "_name": 1003, "_int8": 1016, "_int2": 1005,
    "_int4": 1007,
    "_text": 1009, "_oid": 1028, "_float4": 1021, "_float8": 1022, "_bpchar": 1014,
    "_varchar": 1015, "_date": 1182, "_timestamp": 1115, "_timestamptz": 1185, "_interval": 1187,
    "_numeric": 1231, "_uuid": 2951, "json": 114, "jsonb": 3802,
    "jsonpath": 4072, "_jsonpath": 4073, "_json": 199, "_jsonb": 3807,
    "time": 1083, "_time": 1183, "timetz": 1266, "_timetz": 1270,
    "_regproc": 1008, "_regprocedure": 2207, "_regclass": 2210, "_regtype": 2211,
    "_regnamespace": 4090, "_regrole": 4097,
}  # fmt: skip
TYPE_NAMES_BY_OID: Final[dict[int, str]] = {oid: name for name, oid in TYPE_OIDS.items()}

VECTOR_TYPE_OIDS: Final[dict[str, int]] = {"int2vector": 22, "oidvector": 30}
"""Arrays of catalogs that a result shows without braces; everywhere else they are `_int2`, `_oid`.
"""

TYPE_SIZES: Final[dict[str, int]] = {
    "bool": 1, "int8": 8, "int2": 2, "int4": 4, "oid": 4, "float4": 4, "float8": 8, "date": 4,
    "timestamp": 8, "timestamptz": 8, "time": 8, "timetz": 12, "interval": 16, "uuid": 16,
    "name": 64, "unknown": -2, "char": 1,
    "void": 4,
}  # fmt: skip

TYPE_CATEGORIES: Final[dict[str, str]] = {
    "bool": "B", "bytea": "U", "name": "S", "int8": "N", "int2": "N", "int4": "N", "text": "S",
    "oid": "N", "float4": "N", "float8": "N", "unknown": "X", "bpchar": "S", "varchar": "S",
    "date": "D", "timestamp": "D", "timestamptz": "D", "interval": "T", "numeric": "N", "uuid": "U",
    "void": "P", "record": "P", "json": "U", "jsonb": "U", "jsonpath": "U", "time": "D",
    "timetz": "D", "char": "Z",
} | {name: "A" for name in TYPE_OIDS if name.startswith("_")}  # fmt: skip
_ENUM_SIZE: Final = 4


def type_category(name: str) -> str:
    """pg_type.typcategory of the type of that name."""
    known = TYPE_CATEGORIES.get(name)
    if known is not None:
        return known
    if is_catalog_type(name):
        return catalog_types()[name].category
    return "A" if name.startswith("_") else "E"


def is_type(name: str) -> bool:
    """Whether a type of that name exists; array types begin with an underscore."""
    return name in TYPE_OIDS or is_enum(name.removeprefix("_"))


REG_TYPES: Final = (
    "regclass", "regtype", "regnamespace", "regrole", "regproc", "regprocedure",
)  # fmt: skip
"""Oids that are shown as the names of what they are (Y4)."""
TYPE_SIZES.update(dict.fromkeys(REG_TYPES, 4))
TYPE_CATEGORIES.update(dict.fromkeys(REG_TYPES, "N"))
PREFERRED_TYPES: Final = frozenset({"bool", "text", "oid", "float8", "timestamptz", "interval"})

BOOL: Final = SqlType("bool")
INT2: Final = SqlType("int2")
INT4: Final = SqlType("int4")
INT8: Final = SqlType("int8")
OID: Final = SqlType("oid")
FLOAT4: Final = SqlType("float4")
FLOAT8: Final = SqlType("float8")
TEXT: Final = SqlType("text")
NAME: Final = SqlType("name")
BYTEA: Final = SqlType("bytea")
UUID: Final = SqlType("uuid")
JSON: Final = SqlType("json")
JSONB: Final = SqlType("jsonb")
DATE: Final = SqlType("date")
TIME: Final = SqlType("time")
TIMETZ: Final = SqlType("timetz")
TIMESTAMP: Final = SqlType("timestamp")
TIMESTAMPTZ: Final = SqlType("timestamptz")
INTERVAL: Final = SqlType("interval")
UNTRIMMED_BPCHAR: Final = SqlType("bpchar", trim=True)
"""Of values that have their blanks (Y5)."""
UNKNOWN: Final = SqlType("unknown")
VOID: Final = SqlType("void")
NUMERIC: Final = SqlType("numeric", -1, NUMERIC_PRECISION_MAX, NUMERIC_SCALE_DEFAULT, trim=True)


def plain_type(name: str) -> SqlType:
    """The type of that name without modifier; numeric, and its array, as wide as it gets (Y1)."""
    return (
        array_of(NUMERIC) if name == "_numeric" else NUMERIC if name == "numeric" else SqlType(name)
    )


def array_of(element: SqlType) -> SqlType:
    """The array type of these elements (Y3)."""
    return replace(element, name=f"_{element.name}")


def numeric(precision: int, scale: int) -> SqlType:
    """`numeric(precision, scale)` as declared by a user."""
    return SqlType("numeric", ((precision << 16) | scale) + 4, precision, scale)


def computed_numeric(precision: int, scale: int, *, trim: bool) -> SqlType:
    """The type of a numeric expression: no modifier, but what to compute with (Y1)."""
    return SqlType("numeric", -1, precision, scale, trim)


def varchar(length: int | None = None) -> SqlType:
    """`varchar(length)`, or `varchar`."""
    return SqlType("varchar", -1 if length is None else length + 4)


def bpchar(length: int | None = None) -> SqlType:
    """`char(length)`; PostgreSQL's name of the type is bpchar."""
    return SqlType("bpchar", -1 if length is None else length + 4)


DISPLAY_NAMES: Final[dict[str,
str]] = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
    "float8": "double precision", "char": '"char"', "varchar": "character varying",
    "bpchar": "character",
    "time": "time without time zone", "timetz": "time with time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}  # fmt: skip


WHOLE_NUMBER_TYPES: Final = frozenset({"int2", "int4", "int8", "oid"})
"""Types whose `=`, also of two of them, is that of Python's numbers."""

SECONDS_PRECISION_TYPES: Final = frozenset(
    {"time", "timetz", "timestamp", "timestamptz", "interval"}
)
"""Types whose modifier says how many digits a second has."""

SECONDS_DIGITS_MAX: Final = 6
NO_PRECISION: Final = 0xFFFF
"""In place of digits in the modifier of an interval: all of them."""

_YEAR, _MONTH, _DAY = 1 << 2, 1 << 1, 1 << 3
_HOUR, _MINUTE, _SECOND = 1 << 10, 1 << 11, 1 << 12
INTERVAL_FIELDS: Final = {
    0x7FFF: "",
    _YEAR: "year", _MONTH: "month", _DAY: "day", _HOUR: "hour", _MINUTE: "minute",
    _SECOND: "second", _YEAR | _MONTH: "year to month", _DAY | _HOUR: "day to hour",
    _DAY | _HOUR | _MINUTE: "day to minute", _DAY | _HOUR | _MINUTE | _SECOND: "day to second",
    _HOUR | _MINUTE: "hour to minute", _HOUR | _MINUTE | _SECOND: "hour to second",
    _MINUTE | _SECOND: "minute to second",
}  # fmt: skip
"""The fields in the modifier of an interval, as a declaration says them."""


def is_reg_array(type_: SqlType) -> bool:
    """Whether it is an array of a reg type."""
    return type_.name.startswith("_reg") and type_.name[1:] in REG_TYPES


def held_type(type_: SqlType) -> SqlType:
    """What values of a type are held as: another one, if only catalogs have it."""
    return plain_type(HELD_AS[type_.name]) if type_.name in HELD_AS else type_


def parameter_type(type_: SqlType) -> SqlType:
    """The type that a parameter is sent as: text for a reg type, resolved at run time."""
    if is_reg_array(type_):
        return array_of(TEXT)
    return TEXT if type_.name in REG_TYPES else type_


def format_type(type_: SqlType, user_name: Callable[[str, str], str] | None = None) -> str:
    """The type as PostgreSQL writes it, e.g. `character varying(10)`; used in messages.

    `user_name`: the name of a user's type by its schema and name; None: `user_type_name`.
    """
    if type_.name in VECTOR_TYPE_OIDS:
        return type_.name
    if (element := type_.element) is not None:
        return f"{format_type(element, user_name)}[]"
    named = type_.row or (enum_of(type_.name) if is_enum(type_.name) else None)
    if named is not None:
        return (user_name or user_type_name)(named.schema, named.name)
    name = DISPLAY_NAMES.get(type_.name, type_.name)
    if type_.length is not None and type_.typmod >= 4:
        return f"{name}({type_.length})"
    if type_.name == "numeric" and type_.typmod >= 4:
        return f"{name}({type_.precision},{type_.scale})"
    return name if type_.typmod < 0 else _with_time_modifier(type_, name)


def type_declaration(type_: SqlType) -> str:
    """The type as a declaration writes it: `character` alone would mean char(1)."""
    plain = type_.name in ("bpchar", "_bpchar") and type_.typmod < 0
    return type_.name.lstrip("_") + "[]" * (type_.name[0] == "_") if plain else format_type(type_)


def _with_time_modifier(type_: SqlType, name: str) -> str:
    if type_.name == "interval":
        fields = INTERVAL_FIELDS[type_.typmod >> 16]
        name = f"{name} {fields}" if fields else name
        digits = type_.typmod & NO_PRECISION
        return name if digits == NO_PRECISION else f"{name}({digits})"
    if type_.name.removesuffix("tz") in ("time", "timestamp"):
        word, _, zone = name.partition(" ")
        return f"{word}({type_.typmod}) {zone}"
    return name


def user_type_name(schema: str, name: str) -> str:
    """The name as format_type() shows it with the default search path."""
    return quoted_name(name) if schema == "public" else f"{quoted_name(schema)}.{quoted_name(name)}"


def quoted_name(name: str) -> str:
    """In double quotes if it needs them (quote_identifier)."""
    plain = re.fullmatch("[a-z_][a-z0-9_]*", name) is not None and name not in _KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'
