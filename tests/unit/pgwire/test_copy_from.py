"""COPY FROM STDIN: answers of a real PostgreSQL, whatever the pieces; both ways give the same."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pgwire import copy_in
from coordinator.pgwire.copy_in import CopyReader
from ingest.copy_text.arrow_types import to_values
from sql.errors import SqlError
from sql.statements.copy_options import CopyOptions
from sql.types.sql_type import (
    FLOAT8,
    INT4,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    SqlType,
    bpchar,
    numeric,
    varchar,
)
from sql.types.text_output import format_text
from tests.support.servers import postgres
from tests.support.transcript import Command, run_transcript

TESTDATA = Path(__file__).parent / "testdata"


# ---------------------------------------------------------------- recorded answers


def _types(command: Command) -> list[SqlType]:
    names = command.options["types"].replace("(5,2)", "(5;2)").split(",")
    return [_type(name.replace(";", ",")) for name in names]


def _type(name: str) -> SqlType:
    known = {
        "numeric": NUMERIC,
        "numeric(5,2)": numeric(5, 2),
        "varchar(3)": varchar(3),
        "bpchar(3)": bpchar(3),
    }
    return known.get(name) or SqlType(name)


def _options(command: Command) -> CopyOptions:
    given = command.options
    is_csv = given["format"] == "csv"
    header = given.get("header", "off")
    quote = given.get("quote", '"')
    return CopyOptions(
        format=given["format"],
        delimiter=given.get("delimiter", "," if is_csv else "\t"),
        null=given.get("null", "" if is_csv else "\\N"),
        header=header != "off",
        header_match=header == "match",
        quote=quote,
        escape=given.get("escape", quote),
    )


def _body(command: Command) -> bytes:
    data = ast.literal_eval("b" + command.body)
    assert isinstance(data, bytes)
    return data


def _error(sqlstate: str, message: str, hint: str | None, context: str | None) -> str:
    parts = [f"{sqlstate} {message}", f"hint: {hint}" if hint else "", context or ""]
    return "\n".join(ascii(part)[1:-1] for part in parts if part)


def _shown(rows: Iterator[tuple[str | None, ...]]) -> str:
    lines = [" | ".join("NULL" if c is None else ascii(c) for c in row) for row in rows]
    return "\n".join(lines) or "nothing"


def _rows(batches: list[pa.RecordBatch], types: list[SqlType]) -> Iterator[tuple[str | None, ...]]:
    for batch in batches:
        columns = [to_values(c, t) for c, t in zip(batch.columns, types, strict=True)]
        for row in zip(*columns, strict=True):
            yield tuple(
                None if value is None else format_text(value, type_)
                for value, type_ in zip(row, types, strict=True)
            )


def _ours(command: Command, chunk_bytes: int) -> str:
    types = _types(command)
    names = [f"c{number}" for number in range(1, len(types) + 1)]
    reader = CopyReader(_options(command), types, names, relation="t")
    data = _body(command)
    batches: list[pa.RecordBatch] = []
    try:
        for start in range(0, len(data), chunk_bytes):
            batches += reader.feed(data[start : start + chunk_bytes])
        batches += reader.finish()
    except SqlError as error:
        return _error(error.sqlstate, error.message, error.hint, error.context)
    return _shown(_rows(batches, types))


def _theirs(connection: psycopg.Connection, command: Command) -> str:
    types = command.options["types"].replace("(5,2)", "(5;2)").split(",")
    columns = ", ".join(
        f"c{number} {name.replace(';', ',')}" for number, name in enumerate(types, 1)
    )
    connection.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t ({columns})")
    words = [
        f"{key} {_literal(key, value)}" for key, value in command.options.items() if key != "types"
    ]
    try:
        with connection.cursor().copy(f"COPY t FROM STDIN ({', '.join(words)})") as copy:
            copy.write(_body(command))
    except psycopg.Error as error:
        diagnostic = error.diag
        return _error(
            diagnostic.sqlstate or "",
            diagnostic.message_primary or "",
            diagnostic.message_hint,
            diagnostic.context,
        )
    outputs = ", ".join(_output(f"c{number}", name) for number, name in enumerate(types, 1))
    return _shown(iter(connection.execute(f"SELECT {outputs} FROM t ORDER BY ctid").fetchall()))


def _literal(key: str, value: str) -> str:
    return value if key in ("format", "header") else "'" + value.replace("'", "''") + "'"


def _output(column: str, type_name: str) -> str:
    # A numeric without scale is shown by us without its trailing zeros; char(n) with its blanks.
    if type_name == "numeric":
        return f"trim_scale({column})::text"
    if type_name == "bool":
        return f"textin(boolout({column}))"
    return f"textin(bpcharout({column}))" if type_name.startswith("bpchar") else f"{column}::text"


def test_answers_are_postgresqls() -> None:
    path = TESTDATA / "copy_from.txt"
    if os.environ.get("REWRITE") == "1":
        with postgres() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SET timezone = 'UTC'; SET client_encoding = 'UTF8'")
            run_transcript(path, lambda command: _theirs(connection, command))
        return
    run_transcript(path, lambda command: _ours(command, chunk_bytes=1 << 20))


@pytest.mark.parametrize("block_bytes", [1, 2, 5, 13])
@pytest.mark.parametrize("chunk_bytes", [1, 3])
def test_pieces_mean_nothing(
    block_bytes: int, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.environ.get("REWRITE") == "1":
        return
    monkeypatch.setattr(copy_in, "BLOCK_BYTES", block_bytes)
    run_transcript(TESTDATA / "copy_from.txt", lambda command: _ours(command, chunk_bytes))


# ---------------------------------------------------------------- both ways are one


FIELDS = {
    "int4": st.sampled_from(["1", "-7", "2147483647", "+4", " 5", "0x1f", "007", ""]),
    "numeric": st.sampled_from(["1.5", "-.5", "2.", "1e2", "0.00", "1.005", "12345.6789", ""]),
    "numeric(5,2)": st.sampled_from(["1.5", "1.005", "-0", "999.99", "0.001", "7", ""]),
    "float8": st.sampled_from(["1.5", "1e10", "-0", "NaN", "1e-320", "0e5", ".5", "1.", ""]),
    "text": st.sampled_from(
        [
            "a",
            "ä",
            "NULL",
            "\\.",
            "x" * 30,
            "\\t",
            "b\\\\c",
            "\\x41",
            "",
            'a"b"c',
            '"a"b',
            '""x',
            ' "q"',
        ]
    ),
    "varchar(3)": st.sampled_from(["abc", "ab  ", "äöü", ""]),
    "bpchar(3)": st.sampled_from(["abc", "a  ", "a", ""]),
    "bool": st.sampled_from(["t", "false", "1", "off", "Yes", ""]),
    "date": st.sampled_from(["2024-01-05", "20240105", "Jan 5 2024", "0001-01-01", ""]),
    "timestamp": st.sampled_from(["2024-01-05", "2024-01-05 10:11:12.5", "2024-01-05T10:11", ""]),
    "timestamptz": st.sampled_from(
        ["2024-01-05 10:11:12+02", "2024-01-05 10:11:12Z", "2024-01-05", "2024-01-05 10:11 EST", ""]
    ),
    "uuid": st.sampled_from(
        ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A11", ""]
    ),
    "bytea": st.sampled_from(["\\x00ff", "abc", ""]),
    "name": st.sampled_from(["a", "ä" * 40, ""]),
    "oid": st.sampled_from(["1", "010", "4294967295", ""]),
    "interval": st.sampled_from(["1 day", "P1Y", "-1:00", ""]),
}


def _outcome(data: bytes, options: CopyOptions, names: list[str], *, is_exact: bool) -> str:
    types = [_type(name) for name in names]
    reader = CopyReader(options, types, [f"c{i}" for i in range(len(types))], timezone="UTC")
    if is_exact:
        reader._plain = lambda block: None  # type: ignore[method-assign]
    try:
        batches = [*reader.feed(data), *reader.finish()]
    except SqlError as error:
        return repr(error)
    table = pa.Table.from_batches(batches) if batches else None
    columns = [] if table is None else [c.combine_chunks() for c in table.columns]
    return repr([repr(to_values(c, t)) for c, t in zip(columns, types, strict=False)])


@st.composite
def _documents(draw: st.DrawFn) -> tuple[bytes, CopyOptions, list[str]]:
    # Half of the columns are texts: that is where lines and fields go wrong.
    kinds = st.one_of(st.just("text"), st.sampled_from(sorted(FIELDS)))
    names = draw(st.lists(kinds, min_size=1, max_size=4))
    is_csv = draw(st.booleans())
    delimiter = draw(st.sampled_from([",", "|", "\t"]))
    null = draw(st.sampled_from(["", "\\N", "NULL"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 6))):
        fields: list[str] = []
        for name in names:
            field = draw(st.one_of(FIELDS[name], st.just(null)))
            if is_csv and draw(st.integers(0, 4)) == 0:
                inside = draw(st.sampled_from(["", '""', "\n", "\r\n", delimiter]))
                field = f'"{field}{inside}"' if name == "text" else f'"{field}"'
            fields.append(field)
        lines.append(delimiter.join(fields))
    text = end.join(lines) + draw(st.sampled_from([end, ""]))
    # Now and then something is wrong.
    if draw(st.integers(0, 5)) == 0:
        place = draw(st.integers(0, len(text)))
        text = (
            text[:place]
            + draw(st.sampled_from(['"', "\\", "\n", "\r", delimiter, "\0", "x"]))
            + text[place:]
        )
    options = CopyOptions("csv" if is_csv else "text", delimiter, null)
    return text.encode(), options, names


@given(_documents())
def test_both_ways_read_alike(document: tuple[bytes, CopyOptions, list[str]]) -> None:
    data, options, names = document
    fast = _outcome(data, options, names, is_exact=False)
    assert fast == _outcome(data, options, names, is_exact=True)


@pytest.mark.parametrize(
    ("type_", "plain", "odd"),
    [(INT4, "7", "+7"), (FLOAT8, "1.5", "inf"), (TIMESTAMP, "2024-01-05", "Jan 5 2024")],
    ids=str,
)
def test_the_plain_way_is_taken(type_: SqlType, plain: str, odd: str) -> None:
    """A block of plain lines never goes value by value, but for the columns that must."""
    reader = CopyReader(CopyOptions("csv", ",", ""), [type_, TEXT], ["a", "b"])
    exact: list[bytes] = []
    add = reader._add_line
    reader._add_line = lambda line, columns: (exact.append(line), add(line, columns))[1]  # type: ignore[method-assign]
    lines = [f'{plain},"a""b"', *[f"{plain},x"] * 50, f"{odd},y"]
    batches = [*reader.feed("\n".join([*lines, ""]).encode()), *reader.finish()]
    assert sum(batch.num_rows for batch in batches) == 52
    assert len(exact) == 1


def test_a_line_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_in, "BLOCK_BYTES", 64)
    monkeypatch.setattr(copy_in, "LINE_BYTES_MAX", 1000)
    reader = CopyReader(CopyOptions("csv", ",", ""), [TEXT], ["a"], relation="t")
    list(reader.feed(b'"' + b"x" * 900))
    with pytest.raises(SqlError) as caught:
        list(reader.feed(b"x" * 5000))
    assert caught.value.sqlstate == "54000"
    assert caught.value.context == "COPY t, line 1"


def test_nothing_is_kept_behind_the_end_mark() -> None:
    reader = CopyReader(CopyOptions(), [TEXT], ["a"])
    assert list(reader.feed(b"a\n\\.\n")) == []
    assert [batch.to_pylist() for batch in reader.finish()] == [[{"a": "a"}]]
    list(reader.feed(b"x" * 1000))
    assert list(reader.finish()) == []
