"""Cells of a column in memory are what Arrow says (C1)."""

from typing import Any

import pyarrow as pa
import pytest

from compute.access.warm_columns import warm_columns

TEXTS = ["", "a", "ä€𝄞", "x" * 1_000, "\x01"]

COLUMNS: dict[str, "pa.Array[Any]"] = {
    "int16": pa.array([-(1 << 15), 0, (1 << 15) - 1], pa.int16()),
    "int32": pa.array([-(1 << 31), 0, (1 << 31) - 1], pa.int32()),
    "int64": pa.array([-(1 << 63), 0, (1 << 63) - 1], pa.int64()),
    "uint32": pa.array([0, (1 << 32) - 1], pa.uint32()),
    "float64": pa.array([0.0, -0.0, 1e300, float("inf")]),
    "float32": pa.array([0.1, 3e38], pa.float32()),
    "text": pa.array(TEXTS),
    "of a slice": pa.array(["out", *TEXTS, "out"]).slice(1, len(TEXTS)),
    "ints of a slice": pa.array([9, 1, 2, 9], pa.int32()).slice(1, 2),
    "all empty": pa.array(["", ""]),
    "with nulls": pa.array([1, None, 3]),
    "texts with nulls": pa.array(["a", None]),
    "bool": pa.array([True, False]),
    "bytes": pa.array([b"\0", b""]),
    "decimal": pa.array([1, 2]).cast(pa.decimal128(38, 0)),
    "list": pa.array([[1], None]),
    "no rows": pa.array([], pa.string()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_are_those_of_arrow(name: str) -> None:
    column = warm_columns(pa.table({"c": COLUMNS[name]}))["c"]
    found = [column.cell(row) for row in range(len(COLUMNS[name]))]
    wanted = COLUMNS[name].to_pylist()
    assert repr(found) == repr(wanted)
    assert list(map(type, found)) == list(map(type, wanted))


def test_a_column_of_several_chunks() -> None:
    chunks = pa.chunked_array([["a"], ["b", "c"]])
    column = warm_columns(pa.table([chunks], names=["c"]))["c"]
    assert [column.cell(row) for row in range(3)] == ["a", "b", "c"]
