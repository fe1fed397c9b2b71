r"""The values that calls are made of: for each type its edges, NULL among them.

INVARIANTS
  V1  no two values of `APART[type]` are equal but look different, so that DISTINCT, min, mode
      and percentiles have one answer; `TWINS` are the values that are, and come after them.
  V2  the table of a type holds its values under their positions in `VALUES[type]`.
"""

from collections.abc import Iterable, Iterator

_NULL = "null"

_WORDS: dict[str, str] = {
    "int2": "0 1 -1 2 3 7 -7 10 32767 -32768 100 null",
    "int4": "0 1 -1 2 3 5 -5 7 10 16 31 32 33 63 64 100 -100 1000 65535 2147483647"
    " -2147483648 null",
    "int8": "0 1 -1 2 3 -5 10 63 64 1000 4294967296 9007199254740993 9223372036854775807"
    " -9223372036854775808 123456789012345678 null",
    "float4": "0 1 -1 0.5 1.5 2.5 -2.5 3.4e38 1e-45 0.1 16777217 NaN Infinity -Infinity 1e10"
    " 123456.789 null",
    "float8": "0 1 -1 0.5 1.5 2.5 -2.5 0.1 0.3 1e308 -1e308 5e-324 1e-10 NaN Infinity -Infinity"
    " 9007199254740993 1e15 1e16 123456789.123456789 3.14159265358979 100 null",
    "numeric": "0 1 -1 0.5 1.5 2.5 -2.5 0.1 10 100 -3.7 3 7 2 0.001 123456789.123456789"
    " 99999999999999999999 1e10 0.00000001 12.5 -0.0001 null",
    "bool": "t f null",
    "bytea": r"\x \x00 \x41 \xff00 \x616263 \xdeadbeef0102030405 null",
    "date": "2024-02-29 2000-01-01 1970-01-01 1999-12-31 0001-01-01 9999-12-31 1582-10-15"
    " 2024-12-30 2023-01-01 1900-02-28 null",
    "time": "00:00 12:00 23:59:59.999999 24:00 01:02:03.456 null",
    "timetz": "00:00+00 12:00-05 23:59:59.999999+14 01:02:03.456+05:30 null",
    "uuid": "00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff"
    " 019535d9-3df7-79fb-b466-fa907fa17f9e a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 null",
    "oid": "0 1 23 25 4294967295 16384 null",
    "_int4": "{} {1} {1,2,3} {3,2,1,2} {NULL,1} {2147483647} null",
    "_int8": "{} {9223372036854775807,1} {1,2,3} null",
    "_numeric": "{} {1.5,2} {0.10,NULL} null",
    "_float4": "{} {1.1,NaN,-0} null",
    "_float8": "{} {1.5,NaN} {-0,Infinity} null",
    "_bool": "{} {t,f,NULL} null",
    "_date": "{2024-01-01} {} null",
    "_time": "{12:00,NULL} {} null",
    "_timestamp": "{} {2024-01-01,NULL} null",
    "_uuid": "{00000000-0000-0000-0000-000000000000} {} null",
}
"""Of types whose values have no blanks."""

_TEXTS: dict[str, tuple[str | None, ...]] = {
    "text": (
        "", "a", "A", "abc", "ABC", "aBc def", "  x ", "ß", "éÀ", "日本語", "a%b_c", "100", "-5",
        "1.5e3", "2024-01-02", "true", "{1,2}", r"\x41", "a,b,c", "'", '"q"', r"a\b", "x\ty\nz",
        "0", "abcabc", "🎉", ".", "^a.*", "(a|b)+", "NaN", "UTC", "day", "hex", "YYYY-MM-DD", None,
    ),
    "timestamp": (
        "2024-02-29 12:34:56.789", "2000-01-01", "1970-01-01", "1969-12-31 23:59:59.999999",
        "0001-01-01", "9999-12-31 23:59:59.999999", "1582-10-04 12:00",
        "2024-12-31 00:00:00.000001", "1883-11-18 12:00", "2025-03-30 02:30", None,
    ),
    "timestamptz": (
        "2024-02-29 12:34:56.789+00", "2000-01-01+00", "1970-01-01+00",
        "1969-12-31 23:59:59.999999+00", "0001-01-01+00", "9999-12-30 23:59:59.999999+00",
        "2024-11-03 05:30+00", "2024-11-03 06:30+00", "1883-11-18 12:00+00",
        "2025-03-30 01:30+00", None,
    ),
    "interval": (
        "0", "1 day", "-1 day", "1 mon", "1 year 2 mons 3 days 04:05:06.789",
        "-1 mons +5 days -00:00:01", "23:59:59.999999", "1000 years", "0.000001 s", "-13 mons",
        "100 hours", None,
    ),
    "json": (
        "{}", "[]", "null", "1", '"a"', '{"a":1,"b":[1,2,{"c":null}]}', '[1,"a",null,true]',
        '{"a":1,"a":2}', " [1 , 2] ", r'{"é":"\u00e9"}', "1.50", None,
    ),
    "jsonb": (
        "{}", "[]", "null", "1", '"a"', '{"a":1,"b":[1,2,{"c":null}]}', '[1,"a",null,true]',
        '{"a":{"b":2},"c":"x"}', "1.50", "-0", "1e3", "[[1],[2,3]]", '{"1":"one"}', None,
    ),
    "jsonpath": (
        "$", "$.a", "$.b[*]", "$[*]", "$.*", "$.b[1 to last]", "$ ? (@.a > 0)", "$.a.type()",
        "strict $.zz", "$[0].double()", "$.**", "$.b[2].c", "$ ? (@ == 1)", None,
    ),
    "name": ("a", "Abc", "pg_class", "x y", None),
    "char": ("a", "", "Z", "0", None),
    "bpchar": ("", "a", "abc  ", "ß", None),
    "varchar": ("", "a", "abc  ", None),
    "_text": ("{}", "{a}", "{a,b,c}", '{NULL,"","x y"}', r'{"a\"b","{}"}', "{a,1}", "{b}", None),
    "_timestamptz": ("{}", "{2024-01-01 00:00+00,NULL}", None),
    "_interval": ("{}", "{1 mon 2 days 03:04:05,NULL,0}", None),
    "_bytea": ("{}", r'{"\\x00ff",NULL,"\\x41"}', None),
    "_jsonb": ("{}", r'{"{\"a\": 1}",NULL}', None),
}  # fmt: skip

TWINS: dict[str, tuple[str, ...]] = {
    "float4": ("-0",),
    "float8": ("-0",),
    "numeric": ("12.50", "100.00"),
    "interval": ("24:00:00", "30 days", "1 mon -30 days"),
}
"""Values that are equal to another one of their type and look different (V1)."""

APART: dict[str, tuple[str | None, ...]] = {
    type_: tuple(None if word == _NULL else word for word in words.split())
    for type_, words in _WORDS.items()
} | _TEXTS
"""The values of a type of which no two are twins, by pg_type.typname."""

VALUES = {type_: values + TWINS.get(type_, ()) for type_, values in APART.items()}
"""All values."""

NOT_STORED = frozenset({"jsonpath"})
"""Types that no column of ours has: their values stand in statements as constants."""


def declared(type_: str) -> str:
    """A type as SQL writes it."""
    if type_.startswith("_"):
        return f"{declared(type_[1:])}[]"
    # Without quotes it is character(1).
    return '"char"' if type_ == "char" else type_


def literal(type_: str, at: int) -> str:
    """A value as an expression that has its type whatever stands around it."""
    value = VALUES[type_][at]
    if value is None:
        return f"(null::{declared(type_)})"
    return f"({quoted(value)}::{declared(type_)})"


def quoted(text: str) -> str:
    """A string constant."""
    return "'" + text.replace("'", "''") + "'"


def table(type_: str) -> str:
    """The table of a type's values: i, v (V2)."""
    return f"values_{type_}"


def definitions(types: Iterable[str]) -> Iterator[str]:
    """Statements that make the tables of these types and fill them."""
    for type_ in types:
        rows = ", ".join(f"({at}, {literal(type_, at)})" for at in range(len(VALUES[type_])))
        yield f"create table {table(type_)} (i int, v {declared(type_)})"
        yield f"insert into {table(type_)} values {rows}"
