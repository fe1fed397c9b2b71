"""Expressions for every row of the function table: sample values of each type, combined by rule.

Nothing here knows an answer: PostgreSQL gives them (`recorded.py`). Combinations are chosen by
arithmetic, so that the same table always yields the same expressions.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sql.functions import FILES, Function, FunctionKind, rows_of

_FIRST = ("operators.txt", "functions.txt", "aggregates.txt", "casts.txt")
ELSEWHERE = (
    "aliases.txt",
    "arrays.txt",
    "json.txt",
    "times.txt",
    "sets.txt",
    "windows.txt",
    "catalog_functions.txt",
    "registered.txt",
    "session.txt",
    "enums.txt",
    "variadic.txt",
)
"""Their cases are statements, in `tests/types` and `tests/sqldiff`."""
FAMILIES = {
    "postgresql": _FIRST,
    **{name.removesuffix(".txt"): (name,) for name in FILES if name not in _FIRST + ELSEWHERE},
}
"""Cases and answers are kept by family: the data files of the function table that it covers. What
stands in `cases/<family>.txt`, an expression a line, is asked besides.
"""
_CASES = Path(__file__).parent / "cases"
CASES_PER_ROW = 6
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
}  # fmt: skip

# Arguments of functions that take a word, a pattern or a small number where the type alone says
# less.
_WORDS = {
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
_WORDS["extract"] = _WORDS["date_part"]
_TEXTS = {
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
}  # fmt: skip
_CAST_TEXTS = {
    "bool": "to_bool", "int2": "to_int", "int4": "to_int", "int8": "to_int", "float4": "to_float",
    "float8": "to_float", "numeric": "to_numeric", "date": "to_date", "timestamp": "to_timestamp",
    "timestamptz": "to_timestamp", "uuid": "to_uuid", "bytea": "to_bytea",
    "interval": "to_interval",
    "oid": "to_oid",
}  # fmt: skip
_REGEXES = (
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
_TIME_TEMPLATES = (
    "YYYY-MM-DD HH24:MI:SS.US",
    "Day, DD Mon YYYY",
    "FMHH12:MI am",
    NULL,
    "",
    "Q WW J CC",
    "DDDth",
)
_NUMBER_TEMPLATES = ("999.99", "FM0,000.9", "S9999", NULL, "", "999PR", "9.99EEEE", "RN", "L99MI")
_PLACED: dict[str, dict[int, Sequence[str | None]]] = {
    "regexp_replace": {1: _REGEXES, 2: ("X", "[\\1]", "", NULL, "\\&\\\\-\\2", "$1"), 5: _FLAGS},
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
    "regexp_like": {1: _REGEXES, 2: _FLAGS},
    "regexp_match": {1: _REGEXES, 2: _FLAGS},
    "regexp_split_to_array": {1: _REGEXES, 2: _FLAGS},
    "regexp_count": {1: _REGEXES, 3: _FLAGS},
    "regexp_instr": {1: _REGEXES, 4: ("0", "1", NULL, "2"), 5: _FLAGS, 6: ("0", "1", "2", NULL)},
    "regexp_substr": {1: _REGEXES, 4: _FLAGS, 5: ("0", "1", "2", NULL)},
}
"""Values of an argument by its place in a function."""
_SMALL = ("1", "2", "0", "-1", "3", NULL, "-2", "5", "100")
_PATTERNS = {
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
_CONCRETE = {"any": "text", "anyelement": "int4"}
_SKIPPED = frozenset({"random()"})


def literal(type_: str, value: str | None) -> str:
    """A typed literal."""
    if value is None:
        return f"null::{type_}"
    doubled = value.replace("'", "''")
    return f"'{doubled}'::{type_}"


def expressions(family: str) -> list[str]:
    """Expressions for every row of a family that SQL can reach, each once."""
    found: list[str] = []
    for row in (row for file in FAMILIES[family] for row in rows_of(file)):
        if not row.internal and row.id not in _SKIPPED and row.volatility != "volatile":
            found += _cases(row)
    path = _CASES / f"{family}.txt"
    written = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return list(dict.fromkeys([*found, *(line for line in written if line[:2] not in ("", "--"))]))


def _cases(row: Function) -> Iterator[str]:
    match row.kind:
        case FunctionKind.CAST:
            yield from _casts(row)
        case FunctionKind.OPERATOR:
            yield from _operators(row)
        case FunctionKind.AGGREGATE:
            yield from _aggregates(row)
        case FunctionKind.FUNCTION:
            yield from _functions(row)


def _casts(row: Function) -> Iterator[str]:
    source, target = row.args[0], row.result
    from_text = source in ("text", "varchar", "bpchar") and target in _CAST_TEXTS
    if from_text:
        values = _TEXTS[_CAST_TEXTS[target]]
        values = values if source == "text" else values[:3]
    else:
        values = SAMPLES[source]
    shown = {"varchar": "varchar(3)", "bpchar": "char(4)", "numeric": "numeric(12,3)"}
    for index, value in enumerate(values):
        name = target
        # A modifier every other time; char is char(1) without one, so bpchar keeps its name.
        if index % 2 and target in shown:
            name = shown[target]
        # Over a column: the binder computes casts of constants itself.
        yield f"(select cast(x as {name}) from (values ({literal(source, value)})) v(x))"


def _operators(row: Function) -> Iterator[str]:
    pattern = next(
        (
            p
            for p in ("~~", "~")
            if p == row.name.lstrip("!").rstrip("*") or (p == "~~" and "~~" in row.name)
        ),
        None,
    )
    if pattern is not None and len(row.args) == 2:
        column = SAMPLES[row.args[0]]
        for index, value in enumerate(_PATTERNS[pattern]):
            right = literal(row.args[1], value)
            yield f"({literal(row.args[0], column[index % len(column)])} {row.name} {right})"
            other = column[(index * 3 + 1) % len(column)]
            yield f"({literal(row.args[0], other)} {row.name} {right})"
        return
    if len(row.args) == 1:
        for value in SAMPLES[row.args[0]]:
            yield f"({row.name} {literal(row.args[0], value)})"
        return
    left, right = (SAMPLES["text" if t == "anynonarray" else t] for t in row.args)
    types = ["int4" if t == "anynonarray" else t for t in row.args]
    if "anynonarray" in row.args:
        for other in ("int4", "bool", "float8", "numeric", "date", "bytea", "bpchar"):
            value = literal(other, SAMPLES[other][0])
            parts = [value if t == "anynonarray" else "'<'::text" for t in row.args]
            yield f"({parts[0]} {row.name} {parts[1]})"
        return
    if row.name in ("<<", ">>"):
        right = ("1", "33", "0", NULL, "5")
    count = max(len(left), len(right))
    for index in range(count):
        a, b = left[index % len(left)], right[index % len(right)]
        yield f"({literal(types[0], a)} {row.name} {literal(types[1], b)})"
        a, b = left[(index + 1) % len(left)], right[(index * 3 + 2) % len(right)]
        if index < CASES_PER_ROW:
            yield f"({literal(types[0], a)} {row.name} {literal(types[1], b)})"


def _within(row: Function) -> Iterator[str]:
    type_ = {"anyelement": "text"}.get(row.args[0], row.args[0])
    values = SAMPLES[type_]
    direct = ("0.5", "0", "1", "0.3", "null::float8", "1.5") if len(row.args) == 2 else ("",)
    for index, argument in enumerate(direct):
        chosen = [values[(index + at) % len(values)] for at in range(5 - index % 3)]
        rows = ", ".join(f"({literal(type_, value)})" for value in [*chosen, chosen[0]])
        for order in ("x", "x desc"):
            call = f"{row.name}({argument}) within group (order by {order})"
            yield f"(select {call} from (values {rows}) v(x))"
        yield f"(select {call} filter (where x is null) from (values {rows}) v(x))"


def _two_floats(row: Function) -> Iterator[str]:
    values = [value for value in SAMPLES["float8"] if value not in ("1e308", "1e-310")]
    for index, size in enumerate((4, 3, 2, 1, 0, 5)):
        chosen = [
            (values[(index + at) % len(values)], values[(index * 2 + at * 3 + 1) % len(values)])
            for at in range(size)
        ]
        rows = ", ".join(
            f"({literal('float8', y)}, {literal('float8', x)})" for y, x in [*chosen, (NULL, "1")]
        )
        yield f"(select {row.name}(y, x) from (values {rows}) v(y, x))"
        yield f"(select {row.name}(y, x) filter (where y < 3) from (values {rows}) v(y, x))"


def _aggregates(row: Function) -> Iterator[str]:
    if row.within:
        yield from _within(row)
        return
    if row.args == ("float8", "float8"):
        yield from _two_floats(row)
        return
    if not row.args:
        yield "(select count(*) from (values (1), (null)) v(x))"
        yield "(select count(*) from (values (1), (null)) v(x) where x > 5)"
        yield "(select count(*) filter (where x is null) from (values (1), (null)) v(x))"
        return
    type_ = "int4" if row.args[0].startswith("any") else row.args[0]
    # PostgreSQL's avg(float8) fails when the squares overflow that only stddev needs; ours does
    # not.
    values = [value for value in SAMPLES[type_] if value not in ("1e308", "3e38")]
    second = (
        ", ','::text" if row.args[1:] == ("text",) else ", '\\x2c'::bytea" if row.args[1:] else ""
    )
    order = " order by x" if second else ""
    for index, size in enumerate((3, 4, 2, 1, 0)):
        chosen = [values[(index * 2 + at) % len(values)] for at in range(size)] or [None]
        rows = ", ".join(f"({literal(type_, value)})" for value in [*chosen, None])
        yield f"(select {row.name}(x{second}{order}) from (values {rows}) v(x))"
        if index == 1:
            call, twice = f"(x{second}{order})", f"(values {rows}, {rows}) v(x)"
            yield f"(select {row.name}(distinct {call[1:]} from {twice})"
            yield f"(select {row.name}{call} filter (where x is null) from (values {rows}) v(x))"


def _functions(row: Function) -> Iterator[str]:
    arguments: list[Sequence[str | None]] = []
    for position, type_ in enumerate(row.args):
        words = _WORDS.get(row.name)
        placed = _placed(row, position)
        if placed is not None:
            arguments.append(placed)
        elif words is not None and type_ == "text" and position == 0:
            arguments.append(words)
        elif row.name == "date_trunc" and position == 2:
            arguments.append(_WORDS["timezone"])
        elif position and type_ == "int4":
            arguments.append(_SMALL)
        elif position and type_ == "text":
            arguments.append(("l", "b_", "", "lo", NULL, "-", "b", "xyz", "€"))
        else:
            arguments.append(SAMPLES[_CONCRETE.get(type_, type_)])
    yield from _calls(row, arguments)


def _placed(row: Function, position: int) -> Sequence[str | None] | None:
    """The values that are special for this place, if the row has such a place."""
    if row.name == "to_char" and position:
        dated = row.args[0] in ("timestamp", "timestamptz", "interval")
        return _TIME_TEMPLATES if dated else _NUMBER_TEMPLATES
    if row.name == "to_timestamp" and len(row.args) == 1:
        return None
    if row.name == "timezone" and row.args[0] != "interval":
        return None
    return _PLACED.get(row.name, {}).get(position)


def _calls(row: Function, arguments: Sequence[Sequence[str | None]]) -> Iterator[str]:
    if row.name == "make_date" or row.name == "make_timestamp":
        return
    count = max((len(values) for values in arguments), default=1)
    wanted = count if len(arguments) < 2 else max(count, CASES_PER_ROW * 2)
    for index in range(wanted):
        parts = [
            literal(
                _CONCRETE.get(type_, type_),
                values[(index * (2 * at + 1) + at) % len(values)],
            )
            for at, (type_, values) in enumerate(zip(row.args, arguments, strict=True))
        ]
        if row.name == "extract":
            field = parts[0].partition("::")[0]
            yield f"extract({field} from {parts[1]})"
        else:
            yield f"{row.name}({', '.join(parts)})"
