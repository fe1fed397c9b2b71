"""A write batch survives its bytes, and bytes that are not one are refused."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.batch import DataFile, WriteBatch
from storage.codec import decode_batch, encode_batch
from storage.errors import Corrupt
from storage.types import Source
from storage.unencoded_rows import StoredValues, UnencodedRows, schema_message

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("raw", pa.binary()),
    ]
)


def rows(*ids: int) -> pa.Table:
    return pa.Table.from_pydict(
        {
            "id": list(ids),
            "name": [None if i % 3 == 0 else f"naïve {i}" for i in ids],
            "price": [None] * len(ids),
            "raw": [bytes([i % 256]) for i in ids],
        },
        schema=SCHEMA,
    )


class IdAndName:
    """Implements RowEncoder for two columns."""

    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    encoded_schema = schema_message(schema)

    def table(self, rows: StoredValues) -> pa.Table:
        ids, names = [row[0] for row in rows], [row[1] for row in rows]
        return pa.table([ids, names], schema=self.schema)

    def rows(self, rows: StoredValues) -> UnencodedRows:
        return UnencodedRows(rows, 100, self)


def values(*ids: int) -> UnencodedRows:
    return IdAndName().rows([(i, None if i % 3 == 0 else f'na"ï\0 {i}') for i in ids])


def assert_same(actual: WriteBatch, expected: WriteBatch) -> None:
    assert (actual.inserts is None) == (expected.inserts is None)
    if actual.inserts is not None:
        assert actual.inserts.equals(expected.inserts, check_metadata=True)
    assert actual.staged == expected.staged
    assert dict(actual.deletes) == dict(expected.deletes)


FILE = DataFile(Source("part-1.parquet"), 10, 2_000, '{"numRecords":10,"minValues":{"é":"\\""}}')
FULL = WriteBatch(
    rows=rows(1, 2, 3),
    staged=(FILE, DataFile(Source("part-2.parquet"), 0, 1, "{}")),
    deletes={Source("@7"): BitMap64([0, 5]), Source("part-0.parquet"): BitMap64([2**40, 1])},
)


@pytest.mark.parametrize(
    "batch",
    [
        WriteBatch(),
        WriteBatch(rows(7)),
        WriteBatch(rows()),
        WriteBatch(SCHEMA.empty_table()),
        WriteBatch(pa.concat_tables([rows(1), rows(2, 3)])),
        WriteBatch(rows(*range(100)).slice(40, 3)),
        WriteBatch(pa.table({"kind": pa.array(["a", "b", "a"]).dictionary_encode()})),
        WriteBatch(pa.table({"kinds": pa.array([["a"], None, []]), "id": [1, 2, 3]})),
        WriteBatch(values(1, 2, 3)),
        WriteBatch(values()),
        WriteBatch(values(5), (FILE,), {Source("@7"): BitMap64([3])}),
        WriteBatch(staged=(FILE,)),
        WriteBatch(deletes={Source("@7"): BitMap64()}),
        FULL,
    ],
)
def test_a_batch_comes_back_as_it_was(batch: WriteBatch) -> None:
    assert_same(decode_batch(encode_batch(batch)), batch)


def test_the_order_of_deletes_does_not_matter() -> None:
    swapped = WriteBatch(FULL.inserts, FULL.staged, dict(reversed(list(FULL.deletes.items()))))
    assert encode_batch(swapped) == encode_batch(FULL)


OF_VALUES = WriteBatch(values(4, 5, 6), FULL.staged, FULL.deletes)


@pytest.mark.parametrize("batch", [FULL, OF_VALUES])
def test_every_flipped_bit_is_noticed(batch: WriteBatch) -> None:
    value = encode_batch(batch)
    for position in range(len(value)):
        for bit in range(8):
            flipped = bytearray(value)
            flipped[position] ^= 1 << bit
            with pytest.raises(Corrupt):
                decode_batch(bytes(flipped))


@pytest.mark.parametrize("batch", [FULL, OF_VALUES])
def test_every_torn_or_extended_value_is_noticed(batch: WriteBatch) -> None:
    value = encode_batch(batch)
    for length in range(len(value)):
        with pytest.raises(Corrupt):
            decode_batch(value[:length])
        with pytest.raises(Corrupt):
            decode_batch(value[:length] + bytes(len(value) - length + 1))
    with pytest.raises(Corrupt):
        decode_batch(value + b"\0")


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(value: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_batch(value)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20),
    st.dictionaries(
        st.text(max_size=8), st.sets(st.integers(0, 2**64 - 1), max_size=9), max_size=4
    ),
    st.lists(st.tuples(st.text(), st.integers(0), st.integers(0), st.text()), max_size=3),
)
def test_any_batch_comes_back(
    ids: list[int], deletes: dict[str, set[int]], files: list[tuple[str, int, int, str]]
) -> None:
    batch = WriteBatch(
        rows=rows(*ids),
        staged=tuple(DataFile(Source(name), *rest) for name, *rest in files),
        deletes={Source(source): BitMap64(indexes) for source, indexes in deletes.items()},
    )
    assert_same(decode_batch(encode_batch(batch)), batch)
