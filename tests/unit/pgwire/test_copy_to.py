"""COPY TO STDOUT: bytes of a real PostgreSQL, and what is written reads back."""

import ast
import os
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pgwire.client_codec import split_frames
from coordinator.pgwire.copy_in import CopyReader
from coordinator.pgwire.copy_out import CopyWriter
from ingest.copy_text.arrow_types import to_array, to_values
from sql.statements.copy_options import CopyOptions
from sql.types.sql_type import TEXT, SqlType, Value, bpchar, numeric
from sql.types.text_input import apply_typmod, parse_text
from tests.support.servers import postgres
from tests.support.transcript import Command, run_transcript
from tests.unit.pgwire.generated import TYPES, values

TESTDATA = Path(__file__).parent / "testdata"


def _framed(frames: bytes | memoryview) -> list[bytes]:
    return [frame[5:] for frame in split_frames(bytes(frames))]


def _options(command: Command) -> CopyOptions:
    given = command.options
    is_csv = given["format"] == "csv"
    quote = given.get("quote", '"')
    forced = given.get("force_quote", "")
    return CopyOptions(
        format=given["format"],
        delimiter=given.get("delimiter", "," if is_csv else "\t"),
        null=given.get("null", "" if is_csv else "\\N"),
        header="header" in given,
        quote=quote,
        escape=given.get("escape", quote),
        force_quote=tuple(forced.split("+")) if forced else (),
    )


def _type(name: str) -> SqlType:
    return {"numeric(5,2)": numeric(5, 2), "bpchar(3)": bpchar(3)}.get(name) or SqlType(name)


def _rows(command: Command) -> list[list[str | None]]:
    rows: list[list[str | None]] = ast.literal_eval(command.body)
    return rows


def _types(command: Command) -> list[str]:
    return command.options["types"].replace("5,2", "5;2").split(",")


def _ours(command: Command) -> str:
    types = [_type(name.replace(";", ",")) for name in _types(command)]
    arrays: list[pa.Array] = []
    for index, type_ in enumerate(types):
        cells: list[Value] = []
        for row in _rows(command):
            text = row[index]
            value = None if text is None else parse_text(type_.name, text)
            cells.append(apply_typmod(value, type_, explicit=True))
        arrays.append(to_array(cells, type_))
    names = [f"c{number}" for number in range(1, len(types) + 1)]
    writer = CopyWriter(_options(command), types, names)
    batch = pa.RecordBatch.from_arrays(arrays, names)
    return "\n".join(
        ascii(row)[1:] for row in [*_framed(writer.header()), *_framed(writer.encode(batch))]
    )


def _theirs(connection: psycopg.Connection, command: Command) -> str:
    columns = ", ".join(
        f"c{number} {name.replace(';', ',')}" for number, name in enumerate(_types(command), 1)
    )
    connection.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t ({columns})")
    for row in _rows(command):
        marks = ", ".join(["%s"] * len(row))
        connection.cursor().execute(f"INSERT INTO t VALUES ({marks})", row)
    words = [_option(key, value) for key, value in command.options.items() if key != "types"]
    with connection.cursor().copy(f"COPY t TO STDOUT ({', '.join(words)})") as copy:
        return "\n".join(ascii(bytes(row))[1:] for row in copy)


def _option(key: str, value: str) -> str:
    if key == "force_quote":
        return f"force_quote ({value.replace('+', ', ')})"
    quoted = value if key in ("format", "header") else "'" + value.replace("'", "''") + "'"
    return f"{key} {quoted}"


def test_bytes_are_postgresqls() -> None:
    path = TESTDATA / "copy_to.txt"
    if os.environ.get("REWRITE") == "1":
        with postgres() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            connection.cursor_factory = psycopg.ClientCursor
            connection.execute("SET timezone = 'UTC'; SET client_encoding = 'UTF8'")
            run_transcript(path, lambda command: _theirs(connection, command))
        return
    run_transcript(path, _ours)


@given(data=st.data())
def test_what_is_written_reads_back(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))
    rows = data.draw(st.integers(1, 5))
    is_csv = data.draw(st.booleans())
    options = CopyOptions(
        format="csv" if is_csv else "text",
        delimiter=data.draw(st.sampled_from([",", "|", "\t", "-"])),
        null=data.draw(st.sampled_from(["\\N", "NULL"])),
        header=data.draw(st.booleans()),
        quote=data.draw(st.sampled_from(['"', "'"])),
        escape=data.draw(st.sampled_from(['"', "'", "\\"])),
    )
    columns: list[list[Value]] = []
    for type_ in types:
        cells = st.one_of(st.none(), values(type_))
        columns.append(data.draw(st.lists(cells, min_size=rows, max_size=rows)))
    names = [f"c{index}" for index in range(len(types))]
    arrays = [to_array(c, t) for c, t in zip(columns, types, strict=True)]
    writer = CopyWriter(options, types, names)
    frames = [writer.header(), writer.encode(pa.RecordBatch.from_arrays(arrays, names))]
    lines = [line for piece in frames for line in _framed(piece)]
    assert len(lines) == rows + options.header, "one row a message"
    reader = CopyReader(options, types, names)
    batches = [batch for line in lines for batch in reader.feed(line)]
    table = pa.Table.from_batches([*batches, *reader.finish()])
    read = [to_values(c.combine_chunks(), t) for c, t in zip(table.columns, types, strict=True)]
    assert repr(read) == repr(columns)


def test_a_large_batch_is_cut_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.pgwire.copy_out._JOIN_BYTES_MAX", 4096)
    batch = pa.RecordBatch.from_arrays([pa.array([f"{i}" for i in range(3000)])], ["a"])
    writer = CopyWriter(CopyOptions(), [TEXT], ["a"])
    assert _framed(writer.encode(batch)) == [f"{i}\n".encode() for i in range(3000)]


def test_nothing_is_written_of_nothing() -> None:
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.string())], ["a"])
    writer = CopyWriter(CopyOptions(), [TEXT], ["a"])
    assert bytes(writer.encode(empty)) == bytes(writer.header()) == b""
