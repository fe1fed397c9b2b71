"""Keys found by an order are the keys found by comparing all rows."""

import random
from collections.abc import Hashable

import numpy as np
import pyarrow as pa
import pytest

from compute.access.key_predicates import NewKeys, SingleKey
from compute.access.sorted_keys import ROWS_MIN, SortedKeys, TooManyRows
from sql.catalog.catalog import Column, Key, Table
from sql.types.sql_type import DATE, INT4, INT8, TEXT, TIMESTAMP, SqlType

ROWS = 2 * ROWS_MIN

_TYPES: dict[str, tuple[SqlType, pa.DataType]] = {
    "int4": (INT4, pa.int32()),
    "int8": (INT8, pa.int64()),
    "date": (DATE, pa.date32()),
    "timestamp": (TIMESTAMP, pa.timestamp("us")),
    "text": (TEXT, pa.string()),
}


def _values(name: str, numbers: list[int | None]) -> "pa.Array[pa.Scalar[pa.DataType]]":
    if name == "text":
        texts = [
            None if n is None else f"{'ä' if n % 2 else 'z'}{n}😀"[: 1 + n % 5] for n in numbers
        ]
        return pa.array(texts)
    whole = pa.array(numbers, pa.int32() if name in ("int4", "date") else pa.int64())
    return whole.cast(_TYPES[name][1])


@pytest.mark.parametrize("names", [(n,) for n in _TYPES] + [("int4", "text"), ("text", "date")])
@pytest.mark.parametrize("shape", ["ascending", "mixed", "with nulls"])
def test_as_by_comparing(names: tuple[str, ...], shape: str) -> None:
    chance = random.Random(f"{names} {shape}")
    columns = []
    for name in names:
        numbers: list[int | None] = [chance.randrange(-ROWS, ROWS) for _ in range(ROWS)]
        if shape == "ascending":
            numbers = list[int | None](sorted(n or 0 for n in numbers))
        elif shape == "with nulls":
            numbers = [n if chance.random() < 0.9 else None for n in numbers]
        columns.append(_values(name, numbers))
    labels = [f"c{place}" for place in range(len(names))]
    rows = pa.table(columns, names=labels)
    ordinals = tuple(range(len(names)))
    key = Key("k", ordinals, nulls_distinct=shape != "with nulls")
    made = tuple(Column(label, _TYPES[n][0]) for label, n in zip(labels, names, strict=True))
    table = Table(1, "public", "t", "s", made, keys=(key,))
    ordered = SortedKeys(rows)
    for count in (0, 1, 7, 100):
        there = rows.take(np.array([chance.randrange(ROWS) for _ in range(count)], dtype=np.int64))
        wanted = pa.concat_tables([there, rows.slice(0, 1)])
        keys = NewKeys(table, key, wanted)
        assert ordered.among(keys) == keys.among(rows)
    for values in {values for values in keys.values if None not in values}:
        one, same = SingleKey(table, key, values), NewKeys(table, key, _rows_of(table, values))
        found = same.among(rows)
        assert ordered.having(one) == found == SortedKeys(rows, once=True).having(one)
        assert ordered.having(one, ROWS) == found
        with pytest.raises(TooManyRows):
            ordered.having(one, len(found) - 1)


def _rows_of(table: Table, values: tuple[Hashable, ...]) -> pa.Table:
    one = SingleKey(table, table.keys[0], values)
    return pa.table(list(one.arrays), names=[column.name for column in table.columns])
