"""Expressions for every row of the function table: sample values of each type, combined by rule.

Nothing here knows an answer: PostgreSQL gives them (`recorded.py`). Combinations are chosen by
arithmetic, so that the same table always yields the same expressions.
"""

from collections.abc import Iterator, Sequence

from sql.functions import Function, FunctionKind, all_functions

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
    "encode": ("hex", "base64", "rot13"),
    "decode": ("hex", "base64"),
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
_SKIPPED = frozenset({"random()", "substring(text,text)"})


def literal(type_: str, value: str | None) -> str:
    """A typed literal."""
    if value is None:
        return f"null::{type_}"
    doubled = value.replace("'", "''")
    return f"'{doubled}'::{type_}"


def expressions() -> Iterator[tuple[str, str]]:
    """(row id, expression) for every row that SQL can reach."""
    for row in all_functions():
        if row.internal or row.id in _SKIPPED:
            continue
        yield from ((row.id, text) for text in dict.fromkeys(_cases(row)))


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


def _aggregates(row: Function) -> Iterator[str]:
    if not row.args:
        yield "(select count(*) from (values (1), (null)) v(x))"
        yield "(select count(*) from (values (1), (null)) v(x) where x > 5)"
        yield "(select count(*) filter (where x is null) from (values (1), (null)) v(x))"
        return
    type_ = "int4" if row.args[0] == "any" else row.args[0]
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
        if (
            words is not None
            and type_ == "text"
            and (position == 0) == (row.name not in ("encode", "decode"))
        ):
            arguments.append(words)
        elif row.name == "date_trunc" and position == 2:
            arguments.append(_WORDS["timezone"])
        elif row.name == "decode" and position == 0:
            arguments.append(("00ff", "YWJj", "zz", "0", NULL, "YWJ"))
        elif position and type_ == "int4":
            arguments.append(_SMALL)
        elif position and type_ == "text":
            arguments.append(("l", "b_", "", "lo", NULL, "-", "b", "xyz", "€"))
        else:
            arguments.append(SAMPLES["text" if type_ == "any" else type_])
    yield from _calls(row, arguments)


def _calls(row: Function, arguments: Sequence[Sequence[str | None]]) -> Iterator[str]:
    if row.name == "make_date" or row.name == "make_timestamp":
        return
    count = max((len(values) for values in arguments), default=1)
    wanted = count if len(arguments) < 2 else max(count, CASES_PER_ROW * 2)
    for index in range(wanted):
        parts = [
            literal(
                "text" if type_ == "any" else type_,
                values[(index * (2 * at + 1) + at) % len(values)],
            )
            for at, (type_, values) in enumerate(zip(row.args, arguments, strict=True))
        ]
        if row.name == "extract":
            field = parts[0].partition("::")[0]
            yield f"extract({field} from {parts[1]})"
        else:
            yield f"{row.name}({', '.join(parts)})"


EXTRA = tuple(
    line
    for line in r"""
1/0
2147483647 + 1
(-2147483648)::int4 / -1
9223372036854775807 * 2
1.5 + 1
7 / 2
-7 / 2
-7 % 3
7 % -3
-7.5 % 2
10.00 / 3.00
0.3 / 0.1
1.0 / 3 * 3
1::float8 / 3
0.1::float8 + 0.2::float8
1e308::float8 * 10
1.1::float4 * 1.1::float4
round(2.5)
round(-2.5)
round(2.345, 2)
round(1234.5, -2)
trunc(-2.345, 2)
round(2.5::float8)
round(-0.4::float8)
ceil(-0.5::float8)
power(2, 10)
2 ^ 0.5
(-8) ^ (1.0/3)
power(0, -1)
power(1, 'NaN'::float8)
sqrt(2)
|/ 25.0
||/ 27.0
-|/ 16.0
log(100)
ln(0)
exp(1)
degrees(pi())
atan2(1, -1)
make_date(2024, 2, 29)
make_date(2023, 2, 29)
make_date(0, 1, 1)
make_date(2024, 13, 1)
make_date(null, 1, 1)
make_timestamp(2024, 2, 29, 12, 34, 56.789)
make_timestamp(2024, 2, 30, 0, 0, 0)
make_timestamp(2024, 2, 29, 24, 0, 0)
make_timestamp(2024, 2, 29, 1, 60, 0)
make_timestamp(2024, 2, null, 1, 60, 0)
to_timestamp(1700000000.123456)
date '2024-03-31' - date '2024-03-01'
date '2024-01-31' + interval '1 month'
timestamp '2024-01-31 10:00' + interval '1 month -1 day'
timestamp '2024-03-01' - timestamp '2024-02-28 12:00'
timestamptz '2024-03-31 00:30+00' at time zone 'Europe/Berlin'
timestamp '2024-03-31 02:30' at time zone 'Europe/Berlin'
timestamp '2023-10-29 02:30' at time zone 'Europe/Berlin'
extract(epoch from interval '1 year 2 months 3 days 4:05:06')
extract(epoch from timestamp '2024-03-01 00:00:00' - timestamp '2024-02-28 12:00')
extract(second from timestamp '2024-01-01 00:00:01.5')
concat('a', null, true, 2::float8, 'x'::char(3), 'y')
concat_ws('-', 'a', null, 3)
concat_ws(null, 'a')
'a' || 5
5 || 'a'
'a' || true
'a' || null
'x'::char(3) || 'y'
'a'::char(3) = 'a'
length('a  '::char(5))
octet_length('a'::char(5))
'abc' like 'a\bc'
'a' like 'a\'
'a\' like 'a\\'
'abc' ilike 'A%'
substring('hello' from 2 for 3)
substring('hello' from 0 for 2)
substring('hello' from -2)
substring('hello' from 2 for -1)
position('l' in 'hello')
position('' in 'hello')
position('€' in null)
pi() * 2
pi() / 2 > 1
trim(both 'xy' from 'xyhix')
overlay('abcdef' placing 'ZZ' from 2 for 3)
overlay('abcdef' placing 'ZZ' from 0)
repeat('ab', 3)
repeat('ab', 100000000)
split_part('a,b,c', ',', -1)
split_part('a,b,c', ',', 0)
translate('abcabc', 'aab', 'xyz')
chr(8364)
chr(0)
chr(128512)
greatest(1, null, 3)
least(2.5, 1)
greatest('NaN'::float8, 1)
coalesce(null, 1.5)
nullif(1, 1)
nullif(1, 2)
case when 1 = 0 then 1/0 else 5 end
case 3 when 1 then 'a' when 3 then 'b' end
1 in (1, 2, null)
3 in (1, 2, null)
3 not in (1, null)
null = 1
null is distinct from 1
1 is not distinct from null
true and null
false and null
true or null
not null::boolean
null::boolean is not true
'NaN'::float8 = 'NaN'::float8
'NaN'::float8 > 'Infinity'::float8
-0.0::float8 = 0.0::float8
(1, 2) = (1, 2)
exists (select 1 where false)
(select 1 where false)
(select x from (values (1), (2)) v(x))
1 in (select x from (values (1), (null)) v(x))
2 in (select x from (values (1), (null)) v(x))
3 > all (select x from (values (1), (2)) v(x))
(select sum(x) from (values (9223372036854775807), (1)) v(x))
(select avg(x) from (values (1), (2), (2)) v(x))
(select sum(x)::float8 / count(*) from (values (1), (2)) v(x))
(select string_agg(x, ',' order by x desc) from (values ('b'), ('a'), (null)) v(x))
(select string_agg(distinct x, ',') from (values ('b'), ('a'), ('b')) v(x))
(select count(distinct x) from (values (1), (1), (null)) v(x))
(select max(x) from (values ('NaN'::float8), (1)) v(x))
'2024-01-01'::date < '2024-01-01 00:00:01'::timestamp
'2024-01-01'::timestamptz = '2024-01-01'::date
""".strip().splitlines()
)
