"""Y5: rows that are read together are those that are read one by one, and so is what is wrong."""

import struct
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.pgwire import copy_binary_blocks
from coordinator.pgwire.client_codec import split_frames
from coordinator.pgwire.copy_binary import BinaryReader, BinaryWriter
from ingest.copy_text.arrow_types import to_array, to_values
from sql.errors import SqlError
from sql.types.sql_type import DATE, INT4, INT8, TEXT, TIMESTAMP, SqlType, Value
from tests.unit.pgwire.generated import TYPES, values

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)


def read(data: bytes, size: int, types: tuple[SqlType, ...]) -> tuple[list[list[Value]], str, int]:
    """The columns from pieces of this size, what was wrong, and how many batches came."""
    reader = BinaryReader(types, [f"c{at}" for at in range(len(types))], relation="t")
    found: list[list[Value]] = [[] for _ in types]
    batches: list[pa.RecordBatch] = []
    wrong = ""
    try:
        for start in range(0, len(data), size):
            batches += reader.feed(data[start : start + size])
        batches += reader.finish()
    except SqlError as error:
        wrong = f"{error.sqlstate} {error.message} {error.detail} {error.context}"
    for batch in batches:
        batch.validate(full=True)
        for column, cells, type_ in zip(batch.columns, found, types, strict=True):
            cells.extend(to_values(column, type_))
    return found, wrong, len(batches)


def written(columns: list[list[Value]], types: tuple[SqlType, ...]) -> bytes:
    """The stream that a client sends."""
    arrays = [to_array(*pair) for pair in zip(columns, types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{n}" for n in range(len(types))])
    writer = BinaryWriter(types)
    frames = [bytes(writer.header()), bytes(writer.message(batch).data), writer.trailer()]
    return b"".join(frame[5:] for part in frames for frame in split_frames(part))


@given(st.data(), st.lists(st.sampled_from(TYPES), min_size=1, max_size=4).map(tuple))
@settings(max_examples=300, deadline=None)
def test_blocks_and_rows(data: st.DataObject, types: tuple[SqlType, ...]) -> None:
    """Any types and NULLs, in pieces, and with bytes that somebody has changed."""
    count = data.draw(st.integers(0, 70), "rows")
    cells = [st.none() | values(type_) if n % 2 else values(type_) for n, type_ in enumerate(types)]
    columns = [data.draw(st.lists(one, min_size=count, max_size=count)) for one in cells]
    stream = bytearray(written(columns, types))
    changes = st.tuples(st.integers(len(HEADER), len(stream) - 1), st.integers(0, 255))
    for place, byte in data.draw(st.lists(changes, max_size=2), "changes"):
        stream[place] = byte
    size = data.draw(st.integers(1, 3_000) | st.just(1 << 20), "size")
    together = read(bytes(stream), size, types)
    with patch.object(copy_binary_blocks, "BLOCK_ROWS_MIN", 1 << 40):
        one_by_one = read(bytes(stream), size, types)
    assert together[1] == one_by_one[1]
    # As text: NaN is not equal to itself.
    assert repr(together[0]) == repr(one_by_one[0])


def rows(*fields: bytes | None, count: int) -> bytes:
    cells = b"".join(
        struct.pack("!i", -1) if field is None else struct.pack("!i", len(field)) + field
        for field in fields
    )
    return (struct.pack("!h", len(fields)) + cells) * count


@pytest.mark.parametrize(
    ("type_", "field"),
    [
        (DATE, struct.pack("!i", 2**31 - 1)),
        (DATE, struct.pack("!i", -(2**31))),
        (TIMESTAMP, struct.pack("!q", 2**63 - 1)),
        (TIMESTAMP, struct.pack("!q", -(2**63))),
        (TEXT, b"\xed\xa0\x80"),
        (TEXT, b"a\0b"),
        (INT8, b"1234"),
    ],
)
def test_what_is_wrong_is_told_by_its_row(type_: SqlType, field: bytes) -> None:
    good = b"\0" * (4 if type_ is DATE else 8)
    data = HEADER + rows(b"1" if type_ is TEXT else good, count=40) + rows(field, count=1)
    _, wrong, _ = read(data, 1 << 20, (type_,))
    assert wrong.endswith("COPY t, line 41, column c0")


def test_many_rows_are_read_together() -> None:
    """Also those with NULL; what follows a part of a row waits."""
    one = struct.pack("!i", 1)
    data = rows(one, b"x", None, count=500) + rows(None, None, b"y", count=500)
    with patch.object(BinaryReader, "_take", side_effect=AssertionError("row by row")):
        found, wrong, batches = read(HEADER + data + b"\xff\xff", 1 << 20, (INT4, TEXT, TEXT))
    assert (wrong, batches) == ("", 1)
    assert found[0] == [1] * 500 + [None] * 500
    assert found[2] == [None] * 500 + ["y"] * 500


def test_numbers_that_look_like_rows_are_left_out() -> None:
    """3 and 65539 of three columns, before a field as long as the first; part of a row ends it."""
    types = (INT8, INT8, TEXT)
    numbers = [3, 65_539, 7, 3, (3 << 48) + 8, 3, 1] * 40
    data = b"".join(
        rows(struct.pack("!q", n), struct.pack("!q", n), b"\0\3\0\0\0\x08", count=1)
        for n in numbers
    )
    decoder = copy_binary_blocks.BlockDecoder(types)
    raw = np.frombuffer(data[:-3], np.uint8)
    linked, scanned = decoder._linked(data[:-3], raw, 0), decoder._scan(data[:-3], 0)
    assert linked is not None, "no look at each row"
    for mine, theirs in zip(linked, scanned, strict=True):
        assert np.array_equal(mine, theirs)
    assert len(scanned[0]) == len(numbers) - 1
