"""Filters of keys: what a file has is never denied, what it has not is rarely taken for there."""

import datetime as dt
import random
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.access import key_index
from compute.access.bloom_filters import (
    BloomFilterCache,
    KeyBloomFilter,
    build_bloom_filter,
    hash_of_row,
    row_hashes,
)
from compute.access.key_index import KeyIndex
from compute.access.key_predicates import NewKeys, SingleKey
from compute.access.sorted_keys import SortedKeys
from sql.catalog.catalog import Column, Key, Table
from sql.types.sql_type import INT8, TEXT
from storage.batch import DataFile, FileSlice, ShardView
from storage.types import ShardId, Source

ROWS = 3_000
MAKERS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int2": (pa.int16(), lambda n: n),
    "int4": (pa.int32(), lambda n: n * 7919 - 5),
    "int8": (pa.int64(), lambda n: n << 33),
    "date": (pa.date32(), lambda n: dt.date(1990, 1, 1) + dt.timedelta(n)),
    "timestamp": (pa.timestamp("us"), lambda n: dt.datetime(2020, 1, 1) + dt.timedelta(0, n)),
    "numeric": (pa.decimal128(38, 18), lambda n: Decimal(n) / 8),
    "uuid": (pa.binary(16), lambda n: uuid.uuid5(uuid.NAMESPACE_OID, str(n)).bytes),
    "text": (pa.string(), lambda n: "é" * (n % 7) + str(n)),
    "words": (pa.string(), lambda n: "" if n == 0 else str(n)),
    "bytes": (pa.large_binary(), lambda n: b"\0" * (n % 5) + str(n).encode()),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_there_is_never_denied(name: str) -> None:
    type_, make = MAKERS[name]
    there = [make(number) for number in range(ROWS)]
    made = build_bloom_filter([pa.array(there, type_)])
    assert made is not None
    rng = random.Random(name)
    for count in (1, 5, 17, ROWS):
        some = pa.array(rng.sample(there, count), type_)
        hashes = row_hashes([pa.chunked_array([some.slice(0, count // 2), some.slice(count // 2)])])
        assert hashes is not None
        one_by_one = [made.may_have(hashes[at : at + 1]) for at in range(count)]
        assert all(one_by_one)
        assert made.may_have(hashes)
    absent = row_hashes([pa.array([make(number) for number in range(ROWS, 2 * ROWS)], type_)])
    assert absent is not None
    wrong = sum(made.may_have(absent[at : at + 1]) for at in range(ROWS))
    assert wrong < ROWS // 50
    # One by one and all at once are the same look.
    none = [at for at in range(ROWS) if not made.may_have(absent[at : at + 1])]
    assert not made.may_have(absent[none])


def test_keys_of_several_columns_and_nulls() -> None:
    first, second = pa.array([1, 2, None, 2]), pa.array(["a", None, "a", "b"])
    made = build_bloom_filter([first, second])
    assert made is not None

    def may_have(one: int | None, other: str | None) -> bool:
        hashes = row_hashes([pa.array([one], pa.int64()), pa.array([other], pa.string())])
        assert hashes is not None
        return made.may_have(hashes)

    for row in zip(first.to_pylist(), second.to_pylist(), strict=True):
        assert may_have(*row)
    for row in ((1, "b"), (None, None), (2, "a"), (0, "a")):
        assert not may_have(*row)


NUMBERS = (0, 1, -1, 77, -32_768, 32_767)
SINGLE: dict[pa.DataType, Sequence[Any]] = {
    pa.int16(): NUMBERS,
    pa.int32(): (*NUMBERS, -(1 << 31), (1 << 31) - 1),
    pa.int64(): (*NUMBERS, -(1 << 63), (1 << 63) - 1),
    pa.date32(): NUMBERS,
    pa.timestamp("us"): (*NUMBERS, 1_700_000_000_000_000),
    pa.timestamp("us", tz="UTC"): NUMBERS,
    pa.string(): ("", "a", "b", "ab", "é😀", "x" * 4_096, "\0"),
}


def test_one_row_is_hashed_as_many_are() -> None:
    for kind, values in SINGLE.items():
        plain = pa.int32() if pa.types.is_date(kind) else pa.int64()
        temporal = pa.types.is_temporal(kind)
        column = pa.array(values, plain).cast(kind) if temporal else pa.array(values, kind)
        alone = row_hashes([column])
        pairs = row_hashes([column, column[::-1]])
        assert alone is not None
        assert pairs is not None
        for at, value in enumerate(values):
            assert hash_of_row([value], [kind]) == int(alone[at]), (kind, value)
            both = [value, values[-1 - at]]
            assert hash_of_row(both, [kind, kind]) == int(pairs[at]), (kind, both)
    for value, kind in (("x" * 4_097, pa.string()), (1.0, pa.float64()), (b"a", pa.binary())):
        assert hash_of_row([value], [kind]) is None


def test_what_has_no_hash_has_no_filter() -> None:
    for column in ([1.0], [True], [["a"]], ["a" * 5_000]):
        assert build_bloom_filter([pa.array(column)]) is None
    assert build_bloom_filter([pa.array([], pa.int64())]) is not None


def test_memory_is_bounded() -> None:
    one = row_hashes([pa.array(range(1_000))])
    assert one is not None
    filters = BloomFilterCache(bytes_max=4 * KeyBloomFilter(one).nbytes)
    for place in range(9):
        filters.add(place, KeyBloomFilter(one))
    assert [place for place in range(9) if filters.get(place) is not None] == [5, 6, 7, 8]


# --- the index ----------------------------------------------------------------------------------

KEY = Key("k_pkey", (0, 1), primary=True)
TABLE = Table(1, "public", "k", "t1", (Column("a", TEXT), Column("b", INT8)), keys=(KEY,))

NUMBERED = Table(
    2, "public", "n", "t2", (Column("a", INT8),), keys=(Key("n_pkey", (0,), primary=True),)
)


def rows(names: Sequence[str]) -> pa.Table:
    fields = [column.field for column in TABLE.columns]
    return pa.table([pa.array(names), pa.array([1] * len(names))], names=fields)


def test_a_file_is_read_once_for_keys_that_it_does_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_index, "CACHED_BYTES_MAX", 0)
    content = {f"f{n}.parquet": rows([f"{n}-{at}" for at in range(2_000)]) for n in range(5)}
    read: list[str] = []

    def read_columns(_shard: ShardId, file: DataFile, names: Sequence[str]) -> pa.Table:
        read.append(file.name)
        return content[file.name].select(list(names))

    def no_rows(*_: object) -> pa.Table:
        raise AssertionError("nobody wants rows")

    index = KeyIndex(read_columns, no_rows)
    shard = ShardId("t1")
    files = [DataFile(Source(name), 2_000, 1, '{"numRecords":2000}') for name in content]
    slices = tuple(FileSlice(file, file.rows, BitMap64()) for file in files)
    view = ShardView(shard, content["f0.parquet"].schema, "v", slices, ())

    def find(*names: str) -> object:
        new = NewKeys(TABLE, KEY, rows(names))
        return index.find_in_files(shard, index.files(view, new), new, {})

    assert find("x") is None
    assert len(read) == 5
    read.clear()
    assert find("y", "z") is None
    assert find(*[f"z{at}" for at in range(40)]) is None
    assert read == []
    assert find("3-77") == ("3-77", 1)
    assert read == ["f3.parquet"]
    assert find(*[f"z{at}" for at in range(40)], "4-1") == ("4-1", 1)


def test_a_key_is_found_in_whichever_file_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    fields = [column.field for column in NUMBERED.columns]
    content: dict[str, pa.Table] = {}
    for n, size in enumerate((2_000, 10, 2_000, 700, 1_500)):
        numbers = rng.sample(range(-9_000, 9_000), size)
        content[f"f{n}.parquet"] = pa.table([pa.array(numbers, pa.int64())], names=fields)
    numbered = [(name, sorted(rows[0].to_pylist())) for name, rows in content.items()]

    def read_columns(_shard: ShardId, file: DataFile, _names: Sequence[str]) -> pa.Table:
        return content[file.name]

    def no_rows(*_: object) -> pa.Table:
        raise AssertionError("nobody wants rows")

    def statistics(name: str, least: int, greatest: int) -> str:
        bounds = f'"minValues":{{"{fields[0]}":{least}}},"maxValues":{{"{fields[0]}":{greatest}}}'
        return "{}" if name == "f3.parquet" else f'{{"numRecords":1,{bounds}}}'

    slices = tuple(
        FileSlice(
            DataFile(Source(name), len(there), 1, statistics(name, there[0], there[-1])),
            len(there) - 1,
            BitMap64([0]),
        )
        for name, there in numbered
    )
    view = ShardView(ShardId("t2"), content["f0.parquet"].schema, "v", slices, ())
    index = KeyIndex(read_columns, no_rows)
    pattern = SingleKey(NUMBERED, NUMBERED.keys[0], (0,))
    wanted = [rng.randrange(-10_000, 10_000) for _ in range(300)]
    wanted += [number for _, there in numbered for number in (there[0], there[-1])]
    assert index.places(view, pattern.having((wanted[-1],)), may_read=False) is None
    for kept in (key_index.CACHED_BYTES_MAX, 0):
        monkeypatch.setattr(key_index, "CACHED_BYTES_MAX", kept)
        index = KeyIndex(read_columns, no_rows)
        for number in wanted:
            live = [
                (name, at)
                for name, rows in content.items()
                for at, value in enumerate(rows[0].to_pylist()[:-1])
                if at and value == number
            ]
            key = pattern.having((number,))
            assert index.places(view, key, may_read=True) == live
            first = index.places(view, key, may_read=True, is_unique=True)
            assert first == live[:1]


def test_columns_that_were_used_longest_ago_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Z2; also what reads by key look at is used."""
    fields = [column.field for column in NUMBERED.columns]
    content = {
        f"f{n}.parquet": pa.table([pa.array(range(n * 1_000, n * 1_000 + 1_000))], names=fields)
        for n in range(6)
    }
    room = 5 * SortedKeys(content["f0.parquet"]).nbytes
    monkeypatch.setattr(key_index, "CACHED_BYTES_MAX", room)

    def read_columns(_shard: ShardId, file: DataFile, names: Sequence[str]) -> pa.Table:
        return content[file.name].select(list(names))

    def no_rows(*_: object) -> pa.Table:
        raise AssertionError("nobody wants rows")

    index = KeyIndex(read_columns, no_rows)
    pattern = SingleKey(NUMBERED, NUMBERED.keys[0], (0,))

    def find(number: int, *, may_read: bool) -> object:
        name = f"f{number // 1_000}.parquet"
        file = DataFile(Source(name), 1_000, 1, '{"numRecords":1000}')
        slices = (FileSlice(file, 1_000, BitMap64()),)
        view = ShardView(ShardId("t2"), content[name].schema, "v", slices, ())
        return index.places(view, pattern.having((number,)), may_read=may_read)

    for number in (0, 1_000, 2_000, 3_000, 4_000, 0, 5_000):
        assert find(number, may_read=True) == [(f"f{number // 1_000}.parquet", 0)]
    assert find(1_000, may_read=False) is None
    assert find(1, may_read=False) == [("f0.parquet", 1)]
