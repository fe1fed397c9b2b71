"""COPY in binary: what is written reads back, whatever the pieces; errors are PostgreSQL's."""

import struct
from datetime import UTC, datetime
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from coordinator.pgwire.client_codec import split_frames
from coordinator.pgwire.copy_binary import BinaryReader, BinaryWriter
from ingest.copy_text.arrow_types import to_array, to_values
from sql.errors import SqlError
from sql.types.sql_type import INT4, TEXT, SqlType, Value, varchar
from tests.support.stack import serving
from tests.unit.pgwire.generated import TYPES, values

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER = SIGNATURE + bytes(8)
TRAILER = b"\xff\xff"
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


def row(*fields: bytes | None) -> bytes:
    cells = [
        struct.pack("!i", -1) if field is None else struct.pack("!i", len(field)) + field
        for field in fields
    ]
    return struct.pack("!h", len(fields)) + b"".join(cells)


ONE = struct.pack("!i", 1)
ROW = row(ONE, b"x")


def read(data: bytes, size: int, types: tuple[SqlType, ...] = (INT4, TEXT)) -> list[list[Value]]:
    """The columns, from pieces of this size."""
    reader = BinaryReader(types, [f"c{at}" for at in range(len(types))], relation="t")
    batches: list[pa.RecordBatch] = []
    for start in range(0, len(data), size):
        batches += reader.feed(data[start : start + size])
    batches += reader.finish()
    found: list[list[Value]] = [[] for _ in types]
    for batch in batches:
        for column, cells, type_ in zip(batch.columns, found, types, strict=True):
            cells.extend(to_values(column, type_))
    return found


@given(st.data(), st.sampled_from(TYPES), st.integers(1, 40))
def test_what_is_written_reads_back(data: st.DataObject, type_: SqlType, size: int) -> None:
    column = data.draw(st.lists(st.none() | values(type_), max_size=60))
    writer = BinaryWriter([type_])
    batch = pa.RecordBatch.from_arrays([to_array(column, type_)], ["c"])
    frames = [bytes(writer.header()), bytes(writer.message(batch).data), writer.trailer()]
    stream = b"".join(frame[5:] for part in frames for frame in split_frames(part))
    # As text: NaN is not equal to itself.
    assert repr(read(stream, size, (type_,))) == repr([column])


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_what_may_be_missing(size: int) -> None:
    assert read(HEADER + ROW, size) == [[1], ["x"]]
    assert read(HEADER + row(None, None) + TRAILER, size) == [[None], [None]]
    assert read(HEADER + ROW + b"\0", size) == [[1], ["x"]]
    assert read(SIGNATURE + struct.pack("!ii", 7, 3) + b"abc" + ROW, size) == [[1], ["x"]]


WRONG = {
    b"": "22P04 COPY file signature not recognized",
    SIGNATURE[:5]: "22P04 COPY file signature not recognized",
    b"x": "22P04 COPY file signature not recognized",
    SIGNATURE: "22P04 invalid COPY file header (missing flags)",
    SIGNATURE + bytes(4): "22P04 invalid COPY file header (missing length)",
    SIGNATURE + struct.pack("!ii", 0, -1): "22P04 invalid COPY file header (missing length)",
    SIGNATURE + struct.pack("!ii", 0, 5) + b"a": "22P04 invalid COPY file header (wrong length)",
    SIGNATURE + struct.pack("!ii", 1 << 16, 0): "22P04 invalid COPY file header (WITH OIDS)",
    SIGNATURE
    + struct.pack("!ii", 1 << 20, 0): "22P04 unrecognized critical flags in COPY file header",
    HEADER + row(ONE): "22P04 row field count is 1, expected 2 (COPY t, line 1)",
    HEADER + ROW + b"\xff\xfe": "22P04 row field count is -2, expected 2 (COPY t, line 2)",
    HEADER + TRAILER + b"x": "22P04 received copy data after EOF marker (COPY t, line 1)",
    HEADER + ROW[:-1]: "22P04 unexpected EOF in COPY data (COPY t, line 1, column c1)",
    HEADER + ROW[:4]: "22P04 unexpected EOF in COPY data (COPY t, line 1, column c0)",
    HEADER + struct.pack("!hi", 2, -5): "22P04 invalid field size (COPY t, line 1, column c0)",
    HEADER
    + ROW
    + row(b"abc", b"x"): "08P01 insufficient data left in message (COPY t, line 2, column c0)",
    HEADER
    + row(ONE + b"y", b"x"): "22P03 incorrect binary data format (COPY t, line 1, column c0)",
    HEADER + row(ONE, b"\xff"): (
        '22021 invalid byte sequence for encoding "UTF8": 0xff (COPY t, line 1, column c1)'
    ),
}


@pytest.mark.parametrize("data", WRONG, ids=WRONG.values())
@pytest.mark.parametrize("size", [1, 1000])
def test_what_is_wrong(data: bytes, size: int) -> None:
    with pytest.raises(SqlError) as failure:
        read(data, size)
    error = failure.value
    where = f" ({error.context})" if error.context else ""
    assert f"{error.sqlstate} {error.message}{where}" == WRONG[data]


def test_a_field_is_assigned() -> None:
    """As by the text format: what is too long is no cut."""
    with pytest.raises(SqlError, match="value too long"):
        read(HEADER + row(b"abcd"), 100, (varchar(3),))


def test_there_and_back() -> None:
    """As psycopg, asyncpg and pgx copy."""
    types = ["int4", "text", "numeric", "timestamptz", "int4[]", "jsonb"]
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        text = "i int, s text, n numeric(8,2), w timestamptz, a int[], j jsonb"
        connection.execute(f"create table t ({text}, g int generated always as (i + 1) stored)")
        one = "copy t from stdin (format binary)"
        with connection.cursor() as cursor, cursor.copy(one) as copy:
            copy.set_types(types)
            copy.write_row((1, "ä", Decimal("2.5"), NOON, [1, None], Jsonb({})))
            copy.write_row((None,) * 6)
        with connection.cursor() as cursor, cursor.copy("copy t to stdout binary") as copy:
            copy.set_types(types)
            rows = list(copy.rows())
        shown = connection.execute("select i, s, n, w, a, j from t").fetchall()
        assert rows == shown
        assert connection.execute("select g from t").fetchall() == [(2,), (None,)]
