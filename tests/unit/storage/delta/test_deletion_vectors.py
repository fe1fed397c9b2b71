"""Deletion vectors against the examples of the Delta protocol, and against themselves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.delta.deletion_vectors import (
    INLINE_BYTES_MAX,
    DeletionVector,
    decode_vector,
    encode_bitmap,
    encode_vectors,
    z85_decode,
    z85_encode,
)
from storage.errors import Corrupt


def test_the_protocols_inline_example() -> None:
    vector = DeletionVector(
        "i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None, 44, 6
    )
    assert [*decode_vector(vector, None)] == [3, 4, 7, 11, 18, 29]


def test_the_protocols_file_example() -> None:
    vector = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    assert vector.file_name == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_zeromqs_z85_example() -> None:
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert z85_encode(data) == "HelloWorld"
    assert z85_decode("HelloWorld") == data


BITMAPS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.builds(
        lambda rows, dense: BitMap64(rows) | BitMap64(range(0, dense, 3)),
        st.sets(st.integers(0, 2**40), max_size=50),
        st.integers(0, 3_000),
    ),
)


@given(BITMAPS)
def test_vectors_come_back(bitmaps: dict[str, BitMap64]) -> None:
    vectors, file = encode_vectors(bitmaps, 7)
    content = None if file is None else file.content
    assert {key: decode_vector(vector, content) for key, vector in vectors.items()} == bitmaps
    for vector in vectors.values():
        assert (vector.storage_type == "u") == (vector.size_bytes > INLINE_BYTES_MAX)
        if vector.storage_type == "u":
            assert file is not None
            assert vector.file_name == file.name
    assert encode_vectors(bitmaps, 7) == (vectors, file)


def large() -> tuple[DeletionVector, bytes]:
    vectors, file = encode_vectors({"a": BitMap64(range(0, 9_000, 3))}, 7)
    assert file is not None
    return vectors["a"], file.content


@pytest.mark.parametrize("position", [0, 1, 5, 9, 200, -1])
def test_a_flipped_bit_is_found(position: int) -> None:
    vector, content = large()
    flipped = bytearray(content)
    flipped[position] ^= 4
    with pytest.raises(Corrupt):
        decode_vector(vector, bytes(flipped))


def test_a_torn_file_and_a_wrong_count_are_found() -> None:
    vector, content = large()
    with pytest.raises(Corrupt):
        decode_vector(vector, content[:-1])
    with pytest.raises(Corrupt):
        decode_vector(replace(vector, cardinality=1), content)
    with pytest.raises(Corrupt):
        decode_vector(DeletionVector("i", "HelloWorld", None, 8, 1), None)


def test_the_same_rows_are_the_same_bytes() -> None:
    """A run and a row take what five rows take: how they came must not matter."""
    runs = BitMap64(range(4))
    runs.run_optimize()
    assert encode_bitmap(runs | BitMap64([5])) == encode_bitmap(BitMap64([0, 1, 2, 3, 5]))
