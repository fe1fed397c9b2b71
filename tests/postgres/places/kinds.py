"""The types, each with the values at its edges.

INVARIANTS
  K1  `values` are distinct for `=` and for the eye; `tied` holds values that are equal to one of
      them and look otherwise. A place that shows one of several equal values takes none of `tied`.
      `beyond` is stored where it can be, and written nowhere else.
  K2  a value is written as an untyped literal would be, without its quotes; None is NULL.
"""

from dataclasses import dataclass

Value = str | None


@dataclass(frozen=True, slots=True)
class Kind:
    """A type under test."""

    name: str
    """Of its tables."""
    type: str
    values: tuple[Value, ...]
    tied: tuple[Value, ...] = ()
    beyond: tuple[Value, ...] = ()
    """What PostgreSQL holds and Meridian may refuse."""
    stored: str = ""
    """What a column is declared as, where that is not the type itself."""

    @property
    def is_user(self) -> bool:
        """It is, or is made of, a type whose oid differs from server to server."""
        return self.type.removesuffix("[]") in _USERS

    @property
    def is_array(self) -> bool:
        """It is the type of an array."""
        return self.type.endswith("[]")


_USERS = frozenset({"mood", "posint", "word", "price", "code"})

DEFINITIONS = (
    "create type mood as enum ('sad', 'ok', 'happy', 'a b')",
    "create domain posint as int4 check (value > -100)",
    "create domain word as text check (value <> 'bad')",
    "create domain price as numeric(8, 2) check (value < 100000)",
    "create domain code as varchar(4) check (length(value) > 0)",
)

_TEXTS = (
    "",
    " ",
    "a",
    "A",
    "ab ",
    "ab",
    "é",
    "it's",
    "NULL",
    r"\N",
    'q"\\',
    "1",
    "{1}",
    "a\nb",
    None,
)

SCALARS = (
    Kind("bool", "boolean", ("true", "false", None)),
    Kind("i2", "int2", ("0", "-32768", "32767", "7", None)),
    Kind("i4", "int4", ("0", "-2147483648", "2147483647", "7", "-1", None)),
    Kind("i8", "int8", ("0", "-9223372036854775808", "9223372036854775807", "7", None)),
    Kind(
        "f4",
        "float4",
        ("0", "1.5", "NaN", "Infinity", "-Infinity", "3.4e38", "1e-45", "0.1", None),
        ("-0",),
    ),
    Kind(
        "f8",
        "float8",
        (
            "0",
            "1.5",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e308",
            "5e-324",
            "0.1",
            "1e15",
            "123456789012345680",
            None,
        ),
        ("-0",),
    ),
    Kind(
        "num",
        "numeric",
        ("0", "1.5", "-1.25", "12345678901234567890", "0.000000000000000001", "100", None),
    ),
    Kind(
        "num2", "numeric(10,2)", ("0", "1.5", "-1.25", "99999999.99", "-99999999.99", "100", None)
    ),
    Kind("txt", "text", _TEXTS),
    Kind("vc", "varchar", _TEXTS),
    Kind("vc5", "varchar(5)", ("", " ", "a", "ab ", "ab", "éé", "it's", "12345", "1", None)),
    Kind("c5", "char(5)", ("", "a", "A", "ab", "éé", "it's", "12345", "1", None)),
    Kind("ch", '"char"', ("a", "b", "", "1", " ", "'", None)),
    Kind("nam", "name", ("", "a", "B c", "é", "pg_class", "1", None)),
    Kind("byt", "bytea", (r"\x", r"\x00", r"\xdeadbeef", r"\x61", r"\x6100", None)),
    Kind(
        "dat",
        "date",
        (
            "2024-02-29",
            "0001-01-01",
            "9999-12-31",
            "1999-12-31",
            "5874897-12-31",
            None,
        ),
        beyond=(
            "infinity",
            "-infinity",
            "0044-03-15 BC",
        ),
    ),
    Kind("tim", "time", ("00:00:00", "24:00:00", "12:34:56.789012", "23:59:59.999999", None)),
    Kind("tim2", "time(2)", ("00:00:00", "24:00:00", "12:34:56.79", "23:59:59.99", None)),
    Kind(
        "ttz",
        "timetz",
        (
            "00:00:00+00",
            "24:00:00+00",
            "12:34:56.789012+05:30",
            "12:00:00-12",
            "12:00:00+00",
            "11:00:00-01",
            None,
        ),
    ),
    Kind(
        "ts",
        "timestamp",
        (
            "2024-02-29 12:34:56.789012",
            "0001-01-01 00:00:00",
            "9999-12-31 23:59:59.999999",
            "1969-12-31 23:59:59.5",
            "2000-01-01",
            None,
        ),
        beyond=(
            "infinity",
            "-infinity",
            "0044-03-15 01:02:03 BC",
        ),
    ),
    Kind(
        "ts3",
        "timestamp(3)",
        (
            "2024-02-29 12:34:56.789",
            "0001-01-01 00:00:00",
            "1969-12-31 23:59:59.5",
            "2000-01-01",
            None,
        ),
    ),
    Kind(
        "tstz",
        "timestamptz",
        (
            "2024-02-29 12:34:56.789012+00",
            "0001-01-01 00:00:00+00",
            "9999-12-31 23:59:59.999999+00",
            "2024-03-31 02:30:00+01",
            "2000-01-01 00:00:00+00",
            None,
        ),
        beyond=(
            "infinity",
            "-infinity",
        ),
    ),
    Kind(
        "itv",
        "interval",
        (
            "0",
            "1 mon",
            "1 day",
            "-1 day",
            "1 year 2 mons 3 days 04:05:06.789",
            "-1 mon 1 day",
            "100 years",
            "00:00:00.000001",
            None,
        ),
        ("30 days", "24:00:00", "720:00:00", "1 mon -30 days"),
    ),
    Kind(
        "itv1",
        "interval(1)",
        ("0", "1 mon", "1 day", "1.6 seconds", "-1 day", None),
        ("30 days", "24:00:00"),
    ),
    Kind(
        "uid",
        "uuid",
        (
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            None,
        ),
    ),
    Kind("js", "json", ('{"a": 1, "a": 2}', "[1, 2.0]", "null", '"x"', "1", " 1.0 ", "true", None)),
    Kind(
        "jsb",
        "jsonb",
        (
            '{"a": 1, "b": [1, null]}',
            "[]",
            "{}",
            "[1, 2.50]",
            "null",
            '"x"',
            '""',
            "1",
            "true",
            '{"v": "1", "id": 5}',
            None,
        ),
        ("1.0", "[1.0, 2.5]"),
    ),
    Kind("oid", "oid", ("0", "1", "4294967295", "1259", "2147483648", None)),
    Kind("rcl", "regclass", ("pg_class", "0", "pg_type", "4294967295", "-", None), stored="oid"),
    Kind(
        "rty",
        "regtype",
        ("int4", "0", "text", "character varying", "4294967295", None),
        stored="oid",
    ),
    Kind("enu", "mood", ("sad", "ok", "happy", "a b", None)),
    Kind("dint", "posint", ("0", "-99", "2147483647", "7", None)),
    Kind("dtxt", "word", ("", " ", "a", "ab ", "it's", "1", None)),
    Kind("dnum", "price", ("0", "1.5", "-1.25", "99999.99", None)),
    Kind("dvc", "code", ("a", "ab ", " ", "1234", "1", None)),
)

ARRAYS = (
    Kind("bool_a", "boolean[]", ("{}", "{t}", "{f,NULL}", "{t,t}", None)),
    Kind("i2_a", "int2[]", ("{}", "{1}", "{NULL}", "{32767,-32768}", "{1,2}", None)),
    Kind(
        "i4_a",
        "int4[]",
        (
            "{}",
            "{1}",
            "{NULL}",
            "{2147483647}",
            "{1,2}",
            "{1,NULL}",
            None,
        ),
        beyond=(
            "[0:1]={1,2}",
            "{{1,2}}",
        ),
    ),
    Kind("i8_a", "int8[]", ("{}", "{1}", "{NULL}", "{9223372036854775807,1}", None)),
    Kind("f8_a", "float8[]", ("{}", "{1.5}", "{NaN}", "{Infinity,NULL}", "{0}", None), ("{-0}",)),
    Kind("f4_a", "float4[]", ("{}", "{1.5}", "{NaN}", "{0.1,NULL}", None)),
    Kind("num_a", "numeric[]", ("{}", "{1.5}", "{1,NULL}", "{100}", None)),
    Kind("num2_a", "numeric(10,2)[]", ("{}", "{1.50}", "{1,NULL}", "{-99999999.99}", None)),
    Kind(
        "txt_a",
        "text[]",
        (
            "{}",
            '{""}',
            "{a,NULL}",
            '{"NULL"}',
            '{"a b","c,d","e\\"f","g\\\\h"}',
            "{é,it's}",
            '{" "}',
            None,
        ),
    ),
    Kind("vc5_a", "varchar(5)[]", ("{}", '{""}', '{"ab "}', "{a,NULL}", None)),
    Kind("c5_a", "char(5)[]", ("{}", '{""}', "{ab}", "{a,NULL}", "{12345}", None)),
    Kind("byt_a", "bytea[]", ("{}", '{"\\\\x00"}', '{"\\\\xdead",NULL}', None)),
    Kind("dat_a", "date[]", ("{}", "{2024-02-29}", "{0001-01-01,NULL}", None)),
    Kind("tim_a", "time[]", ("{}", "{24:00:00}", "{12:34:56.789,NULL}", None)),
    Kind(
        "ts_a",
        "timestamp[]",
        ("{}", '{"2024-02-29 12:34:56.7"}', '{"0001-01-01 00:00:00",NULL}', None),
    ),
    Kind(
        "tstz_a",
        "timestamptz[]",
        ("{}", '{"2024-02-29 12:34:56.7+00"}', '{"0001-01-01 00:00:00+00",NULL}', None),
    ),
    Kind("itv_a", "interval[]", ("{}", '{"1 mon"}', '{"1 day",NULL}', None), ('{"30 days"}',)),
    Kind("uid_a", "uuid[]", ("{}", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}", None)),
    Kind(
        "jsb_a",
        "jsonb[]",
        ("{}", '{"1","{\\"a\\": 2}"}', '{"null",NULL}', '{"2"}', None),
        ('{"2.0"}',),
    ),
    Kind("js_a", "json[]", ("{}", '{" 1","{\\"a\\": 2}"}', '{"null",NULL}', None)),
    Kind("enu_a", "mood[]", ("{}", "{sad,NULL}", '{"a b"}', None)),
    Kind("nam_a", "name[]", ("{}", '{""}', "{a,NULL}", None)),
    Kind("oid_a", "oid[]", ("{}", "{4294967295,NULL}", "{0}", None)),
)

KINDS = SCALARS + ARRAYS
