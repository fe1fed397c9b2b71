"""Sample values of each type, and of arguments that take more than their type says.

Nothing here knows an answer: PostgreSQL gives them (`recorded.py`). How values are combined is told
in `generating.py`.
"""

from collections.abc import Sequence

NULL = None

SAMPLES: dict[str, Sequence[str | None]] = {
    "bool": ("true", "false", NULL, "t"),
    "int2": ("7", "-3", "0", "32767", "-32768", "2", NULL, "1"),
    "int4": ("3", "-7", "2147483647", "0", "-2147483648", NULL, "1", "40"),
    "int8": ("12", "-5", "9223372036854775807", "0", "-9223372036854775808", NULL, "1", "70"),
    "oid": ("1", "4294967295", "0", NULL, "2147483648"),
    "float4": ("1.5", "-0.1", "0", "3e38", "1e-40", "NaN", NULL, "Infinity", "2.5", "16777217"),
    "float8": (
        "2.5", "-0.4", "0", "1e308", "1e-310", "NaN", NULL, "-Infinity", "0.5", "1234567.891",
        "-1", "3"
    ),
    "numeric": (
        "12.345", "-0.5", "0", "99999999.99", "2.5", NULL, "0.000001", "-1234.5678", "1", "100"
    ),
    "text": ("hello", "", "a%b_c\\d", "ÄÖß€😀", NULL, " x y ", "AbC", "l", "123", "İΣς"),
    "varchar": ("hello", "", "Äb ", NULL, "12", "true"),
    "bpchar": ("abc", "", "Äb  ", NULL, "12"),
    "name": ("pg", "A", NULL, "Äb"),
    "char": ("a", "Z", "", NULL),
    "bytea": ("\\x00ff10", "\\x", "\\x61625c", NULL, "\\xdeadbeef"),
    "uuid": (
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000", NULL,
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ),
    "date": ("2024-02-29", "1970-01-01", "1969-12-28", NULL, "2000-12-31", "9999-12-31",
    "0001-01-01"),
    "timestamp": (
        "2024-02-29 23:59:59.999999", "1970-01-01 00:00:00", "1969-12-31 23:59:59.5", NULL,
        "2023-10-29 02:30:00", "0001-01-01 00:00:00", "2024-12-30 12:34:56.789",
    ),
    "timestamptz": (
        "2024-02-29 23:59:59.999999+00", "1970-01-01 00:00:00+00", "1969-12-31 23:59:59.5+00", NULL,
        "2023-10-29 02:30:00+02", "2024-12-30 12:34:56.789+00",
    ),
    "interval": (
        "1 month 1 day 01:02:03.5", "30 days", "1 month", "-1 day", NULL, "00:00:00.000001",
        "13 months -5 days",
    ),
    "time": ("12:34:56.5", "00:00:00", "24:00:00", NULL, "23:59:59.999999"),
    "timetz": (
        "12:34:56.5+05:30", "00:00:00+00", "24:00:00-08", NULL, "23:59:59.999999+00",
        "10:00:00+00", "12:00:00+02",
    ),
    "json": (
        '{"a": 1, "b": [1, {"x": null}, "t"], "": "e", "a": {"b": 2.50}}', "[1, 2.0, null, [3]]",
        "{}", "[]", NULL, '" \\u00e4\\n"', "null", ' {"b" :  {"1": true, "n": null} } ',
        "-1.50e2", '[{"a": null}, "a", true]',
    ),
    "jsonb": (
        '{"a": 1, "b": [1, {"x": null}, "t"], "": "e"}', "[1, 2.0, null, [3], \"a\"]", "{}", "[]",
        NULL, '" \\u00e4\\n"', "null", '{"b": {"1": true, "n": null}, "a": {"b": 2.50}}', "-1.50e2",
        '[{"a": null}, "a", true]', "true", '{"a": 1}',
    ),
    "jsonpath": (
        "$", "$.a", "$[*]", "strict $.b", "$.a ? (@ > 1)", NULL, "$.**", "$.a == 1", "$.a > $x",
        "exists($.b)", "$.a + 1", "$[0 to last].type()", "strict $[1]",
    ),
    "record": ("1, 'a'::text", "2, null::text", "null::int4, 'b'::text", NULL, "1, 'A b'::text"),
    "_int4": ("{1,2,3}", "{}", "{3,NULL,-3}", NULL, "{NULL}", "{3,1,2,1}", "{{1,2},{3,4}}"),
    "_text": (
        '{a,"b c",NULL}', "{}", '{"",A,"a,b","NULL"}', NULL, "{Äöß,a,a}", '{"\\"","\\\\"}',
        "{{a,b},{c,d}}",
    ),
    "_numeric": ("{1.5,2,-0.001}", "{}", "{NULL,1000}", NULL, "{0,0,7}"),
    "_float8": ("{1.5,NaN,-Infinity}", "{}", "{NULL,-0.5}", NULL, "{0,-0,1e300}"),
    "_bool": ("{t,f,NULL}", "{}", NULL, "{f}"),
    "_timestamp": ("{2024-02-29 12:00:00,NULL}", "{}", NULL, '{"1969-12-31 23:59:59.5"}'),
}  # fmt: skip

# Arguments of functions that take a word, a pattern or a small number where the type alone says
# less.
WORDS = {
    "date_trunc": (
        "day", "month", "hour", "week", "quarter", "year", "second", "milliseconds", "decade",
        "century",
        "minute", "millennium", "microseconds", "bogus",
    ),
    "date_part": (
        "year", "month", "day", "hour", "minute", "second", "epoch", "dow", "isodow", "doy",
        "week", "quarter",
        "isoyear", "milliseconds", "microseconds", "decade", "century", "millennium", "timezone",
        "julian", "x",
    ),
    "timezone": ("UTC", "Europe/Berlin", "America/New_York", "Nowhere/None"),
}  # fmt: skip
WORDS["extract"] = WORDS["date_part"]
TEXTS = {
    "to_bool": ("true", " YES ", "of", "0", "maybe", NULL, "", "f", "on"),
    "to_int": ("12", " -7 ", "0x1F", "1_000", "1.5", "", NULL, "99999999999999999999", "+5",
    "\t3\n", "1e3", "12a"),
    "to_float": (
        "1.5", " 1e10 ", "1d", "NaN", "-inf", "1e400", "0x1p3", NULL, "", ".5", "5.", "1e-400",
        "x", "1f",
    ),
    "to_numeric": ("1.50", " 7 ", "1e3", "NaN", "1_0.5", "", NULL, ".5", "5.", "x",
    "0.1234567890123456789"),
    "to_date": (
        "2024-01-31", "2024-02-30", "20240105", "Jan 5 2024", "2024", NULL, "", " 2024-01-01 ",
        "0000-01-01",
        "infinity", "2024-1-5",
    ),
    "to_timestamp": (
        "2024-01-31 10:20:30.123456", "2024-01-31", "2024-01-31T24:00:00", "2024-01-01 10:00+02",
        NULL,
        "2024-01-01 10:00:60", "2024-01-01 25:00:00", "2024-01-01 10:20",
        "2024-01-01 10:20:30.1234567",
    ),
    "to_uuid": (
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", "xyz", NULL,
        "",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "a0eebc99-9c0b4ef8bb6d6bb9bd380a1",
    ),
    "to_bytea": ("\\x00ff", "a\\\\b", "\\x0", NULL, "abc\\001", "\\xzz"),
    "to_interval": ("1 day", "1:02:03", "1 mon -2 days", NULL, "bogus"),
    "to_oid": ("1", "4294967295", "-1", NULL, "x"),
    "to_time": (
        "12:34", "24:00", "25:00", "12:34:56.1234567", NULL, "allballs", "10:00 PM", "", "x",
        "2024-01-01 10:00", "23:59:60", "10:00+02", " 1:2 ",
    ),
    "to_json": (
        '{"a": 1, "a": 2}', " [1, 2.50, 1e3]", "nul", NULL, "", '{"a":}', '"x\\u00e4"',
        '"\\u0000"', "[1,", "-0", "01", "true", '{"b": 1, "aa": 2, "a": 3}', "1e400",
    ),
    "to_scalar": (
        "true", "1.5", '"x"', "null", "[]", "99999999999", NULL, "-0.5", "32768", "2.5", "-7",
        "false", "1e30", "{}",
    ),
    "to_jsonpath": (
        "$", "$.a[*] ? (@.b > 1)", "x", NULL, "", "strict $", "$.", '$."a b"[0 to last]', "1 + 2",
    ),
    "to__int4": ("{1,2}", " { 1 , NULL } ", "{", NULL, "{}", "{a}", "{{1},{2}}", "[2:3]={5,6}", ""),
    "to__text": ('{a,"b c",NULL}', '{"NULL"}', "{a,}", NULL, "{}", "{{a},{b}}", "x", '{"\\""}'),
    "to__numeric": ("{1.5,NULL}", "{NaN}", NULL, "{1e3}", "{x}"),
    "to__float8": ("{1.5,NaN}", "{Infinity}", NULL, "{1e400}", "{}"),
    "to__bool": ("{t,yes,NULL}", "{maybe}", NULL, "{}"),
}  # fmt: skip
CAST_TEXTS = {
    "bool": "to_bool", "int2": "to_int", "int4": "to_int", "int8": "to_int", "float4": "to_float",
    "float8": "to_float", "numeric": "to_numeric", "date": "to_date", "timestamp": "to_timestamp",
    "timestamptz": "to_timestamp", "uuid": "to_uuid", "bytea": "to_bytea",
    "interval": "to_interval",
    "oid": "to_oid", "time": "to_time", "timetz": "to_time", "json": "to_json",
    "jsonb": "to_json", "jsonpath": "to_jsonpath",
    **{f"_{name}": f"to__{name}" for name in ("int4", "text", "numeric", "float8", "bool")},
}  # fmt: skip
REGEXES = (
    "l+",
    "b_",
    "",
    "(a|h)(e)?",
    NULL,
    "^.",
    "[[:alpha:]]+",
    "(.)$",
    "x",
    "\\w",
    "(",
    "[^a-z ]",
)
_FLAGS = ("", "i", "g", "n", NULL, "x", "z", "ig")
_ENCODINGS = ("UTF8", "latin1", NULL, "WIN1252", "nonsense", "utf-8", "SQL_ASCII")
_FORMS = ("NFC", "NFD", NULL, "nfkc", "NFKD", "x")
TIME_TEMPLATES = (
    "YYYY-MM-DD HH24:MI:SS.US",
    "Day, DD Mon YYYY",
    "FMHH12:MI am",
    NULL,
    "",
    "Q WW J CC",
    "DDDth",
)
NUMBER_TEMPLATES = ("999.99", "FM0,000.9", "S9999", NULL, "", "999PR", "9.99EEEE", "RN", "L99MI")
PLACED: dict[str, dict[int, Sequence[str | None]]] = {
    "regexp_replace": {1: REGEXES, 2: ("X", "[\\1]", "", NULL, "\\&\\\\-\\2", "$1"), 5: _FLAGS},
    "convert_from": {1: _ENCODINGS},
    "convert_to": {1: _ENCODINGS},
    "convert": {1: _ENCODINGS, 2: _ENCODINGS},
    "normalize": {1: _FORMS},
    "is_normalized": {1: _FORMS},
    "encode": {1: ("hex", "base64", "rot13", "escape", NULL)},
    "decode": {
        0: ("00ff", "YWJj", "zz", "0", NULL, "YWJ", "a\\\\b", "\\001x", "\\x01", " 0 0 "),
        1: ("hex", "base64", "escape", NULL),
    },
    "set_bit": {1: ("0", "7", "23", NULL, "99"), 2: ("0", "1", NULL, "2")},
    "get_bit": {1: ("0", "7", "23", NULL, "-1", "99")},
    "set_byte": {1: ("0", "1", "-1", NULL, "9"), 2: ("0", "255", NULL, "-1", "300")},
    "to_date": {
        0: ("2024-02-29", "29.02.24", NULL, "x", "2023-02-29", "Feb 5 1999"),
        1: ("YYYY-MM-DD", "DD.MM.YY", NULL, "Mon DD YYYY"),
    },
    "to_timestamp": {
        0: ("2024-02-29 10:20:30", "29.02.24", NULL, "x", "2023-02-29 25:00:00"),
        1: ("YYYY-MM-DD HH24:MI:SS", "DD.MM.YY", NULL, "YYYY-MM-DD"),
    },
    "to_number": {
        0: ("12,345.6-", "$12", NULL, "x", "-0.5", " 7 "),
        1: ("99,999.9S", "L99", NULL, "9.9", "999"),
    },
    "timezone": {0: ("02:00:00", "-05:30:00", "1 day", NULL)},
    "date_bin": {0: ("15 minutes", "1 day 2 hours", "1 month", NULL, "0", "7 days")},
    "regexp_like": {1: REGEXES, 2: _FLAGS},
    "regexp_match": {1: REGEXES, 2: _FLAGS},
    "regexp_split_to_array": {1: REGEXES, 2: _FLAGS},
    "regexp_count": {1: REGEXES, 3: _FLAGS},
    "regexp_instr": {1: REGEXES, 4: ("0", "1", NULL, "2"), 5: _FLAGS, 6: ("0", "1", "2", NULL)},
    "regexp_substr": {1: REGEXES, 4: _FLAGS, 5: ("0", "1", "2", NULL)},
    "make_time": {
        0: ("8", "24", "0", "-1", NULL, "23"),
        1: ("15", "0", "60", "59", NULL),
        2: ("23.5", "0", "60", "59.9999999", NULL, "-1"),
    },
    "textregexeq": {1: REGEXES},
    "textregexne": {1: REGEXES},
    "texticregexeq": {1: REGEXES},
    "texticregexne": {1: REGEXES},
    "array_to_string": {1: (",", "", NULL, " - ", "NULL"), 2: ("*", NULL, "")},
    "string_to_array": {
        0: ("a,b,,c", "", "abc", NULL, ",", "a, b"),
        1: (",", "", NULL, ", ", "x"),
        2: ("b", "", NULL, "a"),
    },
    "array_fill": {
        1: ("{3}", "{0}", "{}", "{2,2}", NULL, "{-1}", "{NULL}"),
        2: ("{2}", "{1}", "{1,1}", NULL, "{-1}"),
    },
    "width_bucket": {1: ("{1,3,5}", "{-1}", "{}", NULL, "{NULL}", "{0,0}")},
    "jsonb_set_lax": {
        4: (
            "use_json_null",
            "raise_exception",
            "delete_key",
            "return_target",
            NULL,
            "x",
            "delete_key",
        ),
    },
    "json_object": {
        0: ("{a,1,b,NULL}", "{}", "{a}", NULL, "{{a,1},{b,2}}", "{NULL,1}", "{a,b}"),
        1: ("{1,NULL}", "{}", "{x}", NULL, "{1,2,3,4}"),
    },
}
PLACED["jsonb_object"] = PLACED["json_object"]
"""Values of an argument by its place in a function."""
IN_DOCUMENTS: dict[str, Sequence[str | None]] = {
    "text": ("a", "b", "", "1", NULL, "x", "n", "0"),
    "int4": ("0", "1", "-1", "2", NULL, "-5", "2147483647", "-2147483648"),
    "_text": ("{a}", "{b,1,x}", "{}", "{0}", NULL, "{a,-1}", "{NULL}", "{b,0}", "{1,new}"),
    "jsonb": ('{"x": 1}', "5", "{}", '["t"]', NULL, '"a"', '{"a": 1}', "[]"),
    "bool": ("true", "false", NULL),
}
"""What stands behind a document."""
SMALL = ("1", "2", "0", "-1", "3", NULL, "-2", "5", "100")
PATTERNS = {
    "~~": ("h%", "_b%", "a\\%b\\_c\\\\d", "%€%", NULL, "", "%l", "\\", "%"),
    "~": (
        "l+",
        "^h.*o$",
        "[a-c]",
        "(a|b)%",
        NULL,
        "",
        "o$",
        "a{1,2}",
        "\\d",
        "^",
        "x|y",
        "[^ ]",
        "(",
        "*a",
    ),
}


def spelled(type_: str) -> str:
    """The type as a statement names it: the word char means another one."""
    return '"char"' if type_ == "char" else type_


def literal(type_: str, value: str | None) -> str:
    """A typed literal."""
    if value is None:
        return f"null::{spelled(type_)}"
    if type_ == "record":
        return f"row({value})"
    doubled = value.replace("'", "''")
    return f"'{doubled}'::{spelled(type_)}"
