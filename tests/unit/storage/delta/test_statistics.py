"""Bounds bound, whoever wrote the file: from rows in memory and from Parquet footers."""

import io
import json
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.delta.file_check import file_problems
from storage.delta.files import data_file_from_parquet, decode_parquet, encode_file
from storage.delta.statistics import (
    LAST_CHARACTER,
    loosened,
    parquet_statistics,
    table_statistics,
    tightened,
    unbounded_columns,
)
from storage.types import Source
from tests.unit.storage.delta.foreign import EXTREMES, LATE, SCHEMA, row, table_of

CHARACTERS = st.sampled_from(["a", "ü", "🜁", LAST_CHARACTER, "\uffff", "\x00", '"'])
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(9, 2): st.decimals(-9999999, 9999999, places=2),
    pa.decimal128(18, 3): st.decimals(-(10**14), 10**14, places=3),
    pa.decimal128(38, 18): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -18))
    ),
    pa.string(): st.text(CHARACTERS, max_size=40) | st.text(max_size=40),
    pa.binary(): st.binary(max_size=10),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    columns = {
        field.name: draw(st.lists(st.none() | VALUES[field.type], min_size=4, max_size=4))
        for field in SCHEMA
        if field.nullable
    }
    return pa.table({"k": [1, 2, 3, 4], **columns}, schema=SCHEMA)


@given(tables())
@settings(max_examples=150, deadline=None)
def test_files_of_ours_are_as_their_statistics_say(rows: pa.Table) -> None:
    encoded = encode_file(rows, "part")
    assert [*file_problems(encoded.file, encoded.content, SCHEMA)] == []
    again = decode_parquet(encoded.content, SCHEMA)
    assert repr(again.to_pylist()) == repr(rows.to_pylist())
    assert encode_file(rows, "part") == encoded


@given(tables(), st.booleans(), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_files_of_others_are_bounded_by_their_footers(
    rows: pa.Table, as_integer: bool, group: int
) -> None:
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=group, store_decimal_as_integer=as_integer)
    content = sink.getvalue()
    metadata = pq.read_metadata(pa.BufferReader(content))
    file = data_file_from_parquet(Source("x"), metadata, len(content), SCHEMA)
    assert [*file_problems(file, content, SCHEMA)] == []


def stats_of(**columns: list[Any]) -> dict[str, Any]:
    fields = [SCHEMA.field(name) for name in columns]
    rows = pa.table(dict(columns), schema=pa.schema(fields))
    stats = json.loads(table_statistics(rows), parse_float=str)
    return {name: (stats["minValues"].get(name), stats["maxValues"].get(name)) for name in columns}


def test_rounding_is_outward() -> None:
    moment = datetime(2020, 1, 1, 0, 0, 0, 1_001)
    assert stats_of(ts=[moment], tz=[moment]) == {
        "ts": ("2020-01-01T00:00:00.001", "2020-01-01T00:00:00.002"),
        "tz": ("2020-01-01T00:00:00.001Z", "2020-01-01T00:00:00.002Z"),
    }
    assert stats_of(ts=[datetime(1969, 12, 31, 23, 59, 59, 999_999)])["ts"] == (
        "1969-12-31T23:59:59.999",
        "1970-01-01T00:00:00.000",
    )
    assert stats_of(s=["x" * 33])["s"] == ("x" * 32, "x" * 32 + LAST_CHARACTER)
    assert stats_of(s=["x" * 32 + LAST_CHARACTER])["s"][1] == "x" * 32 + LAST_CHARACTER
    last = "x" * 32 + LAST_CHARACTER + "a"
    assert stats_of(s=[last])["s"][1] == "x" * 32 + LAST_CHARACTER * 2


def test_what_cannot_be_said_is_left_out() -> None:
    assert stats_of(f8=[1.0, math.nan])["f8"] == (None, None)
    assert stats_of(f8=[1.0, math.inf])["f8"] == ("1.0", None)
    assert stats_of(b=[True], x=[b"x"]) == {"b": (None, None), "x": (None, None)}
    assert stats_of(ts=[LATE])["ts"] == ("9999-12-31T23:59:59.999", None)
    assert stats_of(d=[None, date(1, 1, 1)])["d"] == ("0001-01-01", "0001-01-01")
    far = pa.table({"d": pa.array([-(10**6), 10**7], pa.int32()).cast(pa.date32())})
    assert json.loads(table_statistics(far))["minValues"] == {}


def test_decimals_are_exact() -> None:
    value = Decimal("99999999999999999999.999999999999999999")
    assert stats_of(n38=[value.copy_negate(), value])["n38"] == (f"-{value}", f"{value}")


def test_only_the_first_columns_have_statistics() -> None:
    rows = pa.table({f"c{n}": [n] for n in range(40)})
    assert len(json.loads(table_statistics(rows))["nullCount"]) == 32
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    footer = parquet_statistics(pq.read_metadata(pa.BufferReader(sink.getvalue())), rows.schema)
    assert footer == table_statistics(rows)


def test_loose_and_tight() -> None:
    stats = table_statistics(table_of([row(1)]))
    assert json.loads(loosened(stats))["tightBounds"] is False
    assert tightened(loosened(stats)) == stats


@pytest.mark.parametrize("name", ["i2", "n38", "s", "d", "ts", "tz", "f4"])
def test_a_value_outside_its_bounds_is_found(name: str) -> None:
    inner = table_statistics(table_of([row(1), row(2)]))
    assert unbounded_columns(table_of([row(1), row(2)]), inner) == []
    outside = {**row(1), name: EXTREMES[1][name]}
    assert unbounded_columns(table_of([outside]), inner) == [name]
