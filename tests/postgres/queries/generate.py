# ruff: noqa: E501 -- a statement stands on one line, as it does in the file
"""Write the systematic files (`generated_*.txt`): `python -m tests.postgres.queries.generate`, then record.

Every type against every type, every aggregate over every column, every kind of join with every
kind of condition: combinations that nobody writes down by hand. What the files say counts, not how
it came there; a statement that is already in a file keeps its answer.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

from tests.postgres.queries import generated_rows as rows
from tests.postgres.queries.generated_correlated import correlated
from tests.postgres.queries.generated_dates import dates
from tests.postgres.queries.generated_levels import levels
from tests.postgres.queries.generated_nesting import nesting
from tests.postgres.queries.generated_queries import aggregates, joins, subqueries, windows
from tests.postgres.queries.statement_files import path_of, told_in

VALUES: dict[str, tuple[str, ...]] = {
    "int2": ("1", "-3", "32767", "-32768", "0", "7", "null"),
    "int4": ("1", "-7", "2147483647", "-2147483648", "0", "10", "null"),
    "int8": ("1", "-9", "9223372036854775807", "-9223372036854775808", "0", "12", "null"),
    "float4": ("1", "-1.5", "3e38", "1e-30", "0", "'NaN'", "null"),
    "float8": ("1", "-2.5", "1e300", "'-Infinity'", "-0.0", "'NaN'", "null"),
    "numeric(12,3)": ("1", "-12.345", "999999999.999", "-999999999.999", "0", "2.5", "null"),
    "bool": ("true", "false", "true", "false", "false", "true", "null"),
    "text": ("'1'", "'-7'", "'abc'", "''", "' x '", "'Äb'", "null"),
    "varchar(8)": ("'1'", "'yes'", "'ABC'", "''", "'x'", "'äB '", "null"),
    "date": (
        "'2024-01-31'", "'1969-12-31'", "'9999-12-31'", "'0001-01-01'", "'2024-02-29'",
        "'2000-01-01'", "null",
    ),
    "timestamp": (
        "'2024-01-31 10:20:30'", "'1969-12-31 23:59:59.999999'", "'9999-12-31 23:59:59'",
        "'0001-01-01 00:00:00'", "'2024-02-29 00:00:00'", "'2000-01-01 12:30:00'", "null",
    ),
    "timestamptz": (
        "'2024-01-31 10:20:30+00'", "'1969-12-31 23:59:59.999999+00'", "'9999-12-31 23:59:59+00'",
        "'0001-01-01 00:00:00+00'", "'2024-02-29 12:00:00+00'", "'2000-01-01 12:30:00+02'", "null",
    ),
    "uuid": (
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'",
        "'12345678-1234-1234-1234-123456789abc'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "null",
    ),
    "bytea": (
        r"'\x00'", r"'\xff'", r"'\x'", r"'\x616263'", r"'\x0001'", r"'\xdeadbeef'", "null",
    ),
}  # fmt: skip
COLUMNS = {type_: f"c_{type_.partition('(')[0]}" for type_ in VALUES}
NUMBERS = ("int2", "int4", "int8", "float4", "float8", "numeric(12,3)")
TINY = "id in (1, 2, 5, 6, 7)"
"""Rows whose numbers overflow nothing."""


def table() -> Iterator[str]:
    """A column of every type, a row of every kind of value."""
    columns = ", ".join(f"{column} {type_}" for type_, column in COLUMNS.items())
    yield f"create table v (id int, {columns})"
    for index in range(7):
        row = ", ".join(values[index] for values in VALUES.values())
        yield f"insert into v values ({index + 1}, {row})"


def comparisons() -> Iterator[str]:
    """Every type with every type, and what makes sense within one."""
    yield from table()
    for a, b in product(COLUMNS.values(), repeat=2):
        same = a == b
        shown = f"{a} = {b}, {a} <> {b}, {a} < {b}, {a} <= {b}, {a} > {b}, {a} >= {b}"
        yield f"select id, {shown} from v order by id"
        if not same:
            yield f"select x.id, y.id from v x join v y on x.{a} = y.{b} order by 1, 2"
    for column in COLUMNS.values():
        yield f"select x.id, y.id from v x join v y on x.{column} = y.{column} order by 1, 2"
        yield f"select x.id, y.id from v x join v y on x.{column} < y.{column} order by 1, 2"
        yield f"select id from v where {column} is null or {column} = {column} order by id"
        yield f"select id, {column} is distinct from null, {column} is null from v order by id"
        yield f"select id from v where {column} in (select {column} from v where id < 3) order by id"
        yield (
            f"select id from v where {column} not in (select {column} from v where id in (1, 5))"
            " order by id"
        )
        yield (
            f"select id from v where {column} between (select min({column}) from v where id in (1, 5))"
            f" and {column} order by id"
        )
        yield f"select id, nullif({column}, (select {column} from v where id = 1)) from v order by id"
        yield f"select id, coalesce({column}, (select {column} from v where id = 1)) from v order by id"


def ordering() -> Iterator[str]:
    """Each type sorted, made distinct and grouped."""
    yield from table()
    for column in COLUMNS.values():
        for how in ("", " desc", " nulls first", " desc nulls last"):
            yield f"select id, {column} from v order by {column}{how}, id"
        yield f"select distinct {column} from v order by {column}"
        yield f"select {column} from v union select {column} from v where id < 3 order by 1"
        yield f"select {column}, count(*) from v group by {column} order by {column}"
        yield f"select count({column}), count(distinct {column}) from v"
        yield f"select min({column}), max({column}) from v"
        yield f"select {column} from v order by {column} desc nulls last limit 2"
        yield f"select greatest({column}, (select {column} from v where id = 5)) from v order by id"
        yield f"select least({column}, (select {column} from v where id = 5)) from v order by id"
        yield f"select id, case when id < 3 then {column} end from v order by id"


def casts() -> Iterator[str]:
    """Every type as every type, all rows and tiny ones."""
    yield from table()
    for column, target in product(COLUMNS.values(), VALUES):
        yield f"select id, {column}::{target} from v where {TINY} order by id"
        if target in (*NUMBERS, "date", "timestamp"):
            yield f"select {column}::{target} from v where id = 3"
            yield f"select {column}::{target} from v where id = 4"
    for column in COLUMNS.values():
        yield f"select id, {column}::text, {column} || '' from v order by id"
        yield f"select id, {column}::text::varchar(3), cast({column} as char(4)) from v order by id"
        type_ = next(type_ for type_, name in COLUMNS.items() if name == column)
        yield f"select id, {column}::text::{type_} from v order by id"


def arithmetic() -> Iterator[str]:
    """Every operator between every two numbers: tiny rows, then those at the ends."""
    yield from table()
    names = [COLUMNS[type_] for type_ in NUMBERS]
    for a, b in product(names, repeat=2):
        for sign in ("+", "-", "*"):
            yield f"select id, {a} {sign} {b} from v where {TINY} order by id"
            yield f"select {a} {sign} {b} from v where id = 3"
            yield f"select {a} {sign} {b} from v where id = 4"
        yield f"select id, {a} / {b} from v where id in (1, 2, 6, 7) order by id"
        yield f"select {a} / {b} from v where id = 5"
        yield f"select {a} / {b} from v where id = 3"
        if "float" not in a + b:
            yield f"select id, {a} % {b} from v where id in (1, 2, 6, 7) order by id"
            yield f"select {a} % {b} from v where id = 5"
    for name in names:
        yield f"select id, -{name}, +{name}, abs({name}), sign({name}) from v where id <> 4 order by id"
        yield f"select -{name} from v where id = 4"
        yield f"select abs({name}) from v where id = 4"
        for constant in ("1", "2.5", "'3'", "1e2", "3::float8"):
            yield (
                f"select id, {name} + {constant}, {name} * {constant}, {constant} - {name}"
                f" from v where {TINY} order by id"
            )
        for function in ("round", "ceil", "floor", "trunc", "sqrt", "exp", "ln"):
            yield f"select id, {function}({name}) from v where id in (1, 7) order by id"
            yield f"select {function}({name}) from v where id = 2"
            yield f"select {function}({name}) from v where id = 3"


TEXTS = (
    "'hello'", "''", "'Ünïcode €😀'", "'a%b_c'", r"'back\slash'", "' blanks  '", "'AbC'", "null",
    "'one,two,,three'", "'42'",
)  # fmt: skip
UNARY = (
    "length", "char_length", "octet_length", "bit_length", "upper", "lower", "reverse", "md5",
    "trim", "ltrim", "rtrim", "btrim", "ascii", "quote_literal", "initcap", "to_hex", "quote_ident",
    "quote_nullable",
)  # fmt: skip
BINARY: dict[str, tuple[str, ...]] = {
    "left": ("2", "0", "-2", "100", "null"), "right": ("2", "0", "-2", "100", "null"),
    "repeat": ("2", "0", "-1"), "strpos": ("'l'", "''", "'€'", "null"),
    "starts_with": ("'h'", "''", "null"), "concat": ("'x'", "1", "null", "true", "1.50"),
    "ltrim": ("'h '", "''"), "rtrim": ("'o '", "''"), "btrim": ("'ho '", "'€'"),
    "substr": ("2", "0", "-1", "100", "null"),
}  # fmt: skip
TERNARY: dict[str, tuple[str, ...]] = {
    "substr": ("2, 3", "0, 2", "-1, 3", "2, 0", "2, -1"), "replace": ("'l', 'LL'", "'', 'x'"),
    "lpad": ("8, '*'", "3, 'xy'", "8, ''", "-1, 'x'"), "rpad": ("8, '*'", "3, 'xy'", "0, 'x'"),
    "split_part": ("',', 1", "',', 3", "',', -1", "',', 0", "'', 1"),
    "translate": ("'hlo', 'HL'", "'', 'x'", "'abc', ''"), "concat_ws": ("'-', 'x'", "null, 'x'"),
    "regexp_replace": ("'l+', 'L'", "'[aeiou]', '<\\&>', 'g'", "'(.)(.)', '\\2\\1'"),
    "overlay": (), "lpad ": (),
}  # fmt: skip
PATTERNS = (
    "'h%'", "'%o'", "'%l%'", "'_e%'", "'a\\%b%'", "'a#%b#_c'", "''", "'%'", "'back\\\\%'", "'%€%'",
    "null", "'Ü%'", "'HELLO'",
)  # fmt: skip
REGEXES = (
    "'l+'", "'^h'", "'o$'", "'[A-C]'", "'^.{5}$'", "'a|e'", "'\\d+'", "'(l)\\1'", "'[[:upper:]]'",
    "'^$'", "' +$'", "'€'", "'\\s'", "null", "'('", "'[[:digit:]]{2}'",
)  # fmt: skip


def texts() -> Iterator[str]:
    """Functions of text and patterns over a column."""
    yield "create table s (id int, t text, p text)"
    rows = ", ".join(f"({index + 1}, {text}, '%o%')" for index, text in enumerate(TEXTS))
    yield f"insert into s values {rows}"
    for name in UNARY:
        yield f"select id, {name}(t) from s order by id"
    for name, choices in BINARY.items():
        for choice in choices:
            yield f"select id, {name}(t, {choice}) from s order by id"
    for name, choices in TERNARY.items():
        for choice in choices:
            yield f"select id, {name}(t, {choice}) from s order by id"
    for pattern in PATTERNS:
        for word in ("like", "not like", "ilike"):
            yield f"select id from s where t {word} {pattern} order by id"
        yield f"select id, t like {pattern} escape '#' from s order by id"
        yield f"select id, t similar to {pattern} from s order by id"
    for regex in REGEXES:
        yield f"select id, t ~ {regex}, t !~ {regex} from s order by id"
        yield f"select id, t ~* {regex} from s order by id"
        yield f"select id, substring(t from {regex}) from s order by id"
        yield f"select id, regexp_replace(t, {regex}, '-') from s order by id"
    for start, count in product(("1", "3", "0", "-2"), ("2", "100", "0")):
        yield f"select id, substring(t from {start} for {count}) from s order by id"
    for a in ("leading", "trailing", "both"):
        yield f"select id, trim({a} from t), trim({a} 'h' from t) from s order by id"
    yield "select id, position('l' in t), overlay(t placing 'XX' from 2), t || id from s order by id"
    yield "select id, t like p, t ~ p from s order by id"
    yield "select id, t < 'b', t > 'B', t = 'hello ', t between 'A' and 'a' from s order by id"


FILES: dict[str, Callable[[], Iterator[str]]] = {
    "every_row_catalogs": rows.catalogs,
    "every_row_enums": rows.enums,
    "every_row_privileges": rows.privileges,
    "every_row_reg_types": rows.registered,
    "every_row_session": rows.session,
    "generated_aggregates": aggregates,
    "generated_arithmetic": arithmetic,
    "generated_casts": casts,
    "generated_comparisons": comparisons,
    "generated_correlated": correlated,
    "generated_dates": dates,
    "generated_joins": joins,
    "generated_levels": levels,
    "generated_nesting": nesting,
    "generated_ordering": ordering,
    "generated_subqueries": subqueries,
    "generated_texts": texts,
    "generated_windows": windows,
}


def main() -> None:
    """Write the files."""
    for area, statements in FILES.items():
        path: Path = path_of(area)
        known = told_in(area) if path.exists() else {}
        blocks = [known.get(text, text) for text in dict.fromkeys(statements())]
        head = "# Written by tests/postgres/queries/generate.py.\n"
        path.write_text(head + "\n\n".join(blocks) + "\n", encoding="utf-8")
        print(area, len(blocks))


if __name__ == "__main__":
    main()
