"""Rows: the column way and the plain way give the same bytes, and those of the output functions."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute import arrow
from coordinator.pgwire.client_codec import row_values, split_frames
from coordinator.pgwire.rows import RowEncoder
from coordinator.pgwire.values import encode_value
from ingest.copy_text.arrow_types import shown_arrow_type, to_array, to_values
from sql.types.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VOID,
    SqlType,
    Value,
    bpchar,
    numeric,
)
from sql.types.text_output import format_text
from tests.unit.pgwire.generated import TYPES, values

ZONES = st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])


def _batch(columns: list[tuple[SqlType, list[Value]]]) -> pa.RecordBatch:
    arrays = [to_array(cells, type_) for type_, cells in columns]
    return pa.RecordBatch.from_arrays(arrays, [f"c{index}" for index in range(len(arrays))])


def _rows(data: bytes | memoryview) -> list[tuple[bytes | None, ...]]:
    return [row_values(frame) for frame in split_frames(bytes(data))]


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.data(), code=st.sampled_from([0, 1]), zone=ZONES)
def test_columns_show_what_the_output_functions_do(
    type_: SqlType, data: st.DataObject, code: int, zone: str
) -> None:
    cells = data.draw(st.lists(st.one_of(st.none(), values(type_)), min_size=1, max_size=8))
    skipped = data.draw(st.integers(0, len(cells) - 1))
    # A slice, so that no offset into a buffer is forgotten.
    batch = _batch([(type_, cells)]).slice(skipped)
    encoder = RowEncoder([type_], [code], zone)
    expected = [
        (None if cell is None else encode_value(cell, type_, code, timezone=zone),)
        for cell in cells[skipped:]
    ]
    assert _rows(encoder.encode_columns(batch)) == expected
    assert _rows(encoder.encode_singly(batch)) == expected


@given(data=st.data(), zone=ZONES)
def test_both_ways_agree_on_mixed_rows(data: st.DataObject, zone: str) -> None:
    types = data.draw(st.lists(st.sampled_from(TYPES), min_size=0, max_size=5))
    codes = [data.draw(st.sampled_from([0, 1])) for _ in types]
    rows = data.draw(st.integers(1, 5))
    columns: list[tuple[SqlType, list[Value]]] = []
    for type_ in types:
        cells = st.one_of(st.none(), values(type_))
        columns.append((type_, data.draw(st.lists(cells, min_size=rows, max_size=rows))))
    if not columns:
        return
    batch = _batch(columns)
    encoder = RowEncoder(types, codes, zone)
    assert bytes(encoder.encode_columns(batch)) == encoder.encode_singly(batch)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.data())
def test_values_and_arrays_agree(type_: SqlType, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.one_of(st.none(), values(type_)), max_size=5))
    column = to_array(cells, type_)
    assert column.type == shown_arrow_type(type_) == arrow.arrow_type(type_)
    assert repr(to_values(column, type_)) == repr(cells)


@pytest.mark.parametrize("type_", [FLOAT8, FLOAT4], ids=str)
def test_floats_of_every_size(type_: SqlType) -> None:
    rng = np.random.default_rng(20240105)
    single = type_ == FLOAT4
    exponents = rng.uniform(-44 if single else -320, 37 if single else 307, 5000)
    drawn = np.concatenate(
        [
            rng.uniform(1, 10, 5000) * 10.0**exponents,
            rng.integers(-(10**7), 10**7, 2000) / 100,
            2.0 ** np.arange(-140, 120),
            np.round(10.0 ** np.arange(-20, 20)),
            [0.0, -0.0, math.nan, math.inf, -math.inf],
        ]
    )
    with np.errstate(over="ignore"):
        column = pa.array(drawn.astype(np.float32 if single else np.float64))
    batch = pa.RecordBatch.from_arrays([column], ["f"])
    expected = [(format_text(v, type_).encode(),) for v in column.to_pylist()]
    assert _rows(RowEncoder([type_], [0]).encode(batch)) == expected


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (NUMERIC, Decimal("1.50"), "1.5"),
        (NUMERIC, Decimal(100), "100"),
        (NUMERIC, Decimal(0), "0"),
        (NUMERIC, Decimal("0.0000001"), "0.0000001"),
        (numeric(20, 10), Decimal(0), "0.0000000000"),
        (numeric(20, 10), Decimal("0.0000000001"), "0.0000000001"),
        (numeric(5, 0), Decimal(100), "100"),
        (bpchar(4), "ä", "ä   "),
        (BOOL, True, "t"),
        (BYTEA, b"\x00\xff", "\\x00ff"),
        (DATE, 19_727, "2024-01-05"),
        (TIMESTAMP, 1_704_448_800_000_000, "2024-01-05 10:00:00"),
        (TIMESTAMP, 1_704_448_800_100_000, "2024-01-05 10:00:00.1"),
        (TIMESTAMPTZ, 1_704_448_800_000_000, "2024-01-05 15:30:00+05:30"),
        (UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (VOID, "", ""),
    ],
    ids=str,
)
def test_text_by_example(type_: SqlType, value: Value, text: str) -> None:
    batch = _batch([(type_, [value, None, value])])
    encoder = RowEncoder([type_], [0], "Asia/Kolkata")
    expected = [(text.encode(),), (None,), (text.encode(),)]
    assert _rows(encoder.encode_columns(batch)) == expected
    assert _rows(encoder.encode_singly(batch)) == expected


@pytest.mark.parametrize(
    "type_",
    [numeric(18, 0), numeric(18, 2), numeric(18, 17), numeric(18, 18), numeric(38, 18), NUMERIC],
    ids=str,
)
def test_numerics_of_every_size(type_: SqlType) -> None:
    assert type_.scale is not None
    rng = np.random.default_rng(20240105)
    unscaled = [int(rng.integers(10**k)) * 10 ** int(rng.integers(4)) for k in range(1, 16)] * 4
    wide = type_.precision == 38
    unscaled += [10**k for k in range(18)] + [0] + ([10**25, 2**63, 2**64 + 1] if wide else [])
    cells = [Decimal(f"{sign}{n}E-{type_.scale}") for n in unscaled for sign in ("", "-")]
    for drawn in (cells, cells[:40], [*cells[:40], None]):
        batch = _batch([(type_, list(drawn))]).slice(1)
        encoder = RowEncoder([type_], [1])
        assert bytes(encoder.encode_columns(batch)) == encoder.encode_singly(batch)


def test_other_guises_are_cast_first() -> None:
    text = pa.array(["a", None, "b"])
    batch = pa.RecordBatch.from_arrays(
        [
            text.dictionary_encode(),
            text.cast(pa.large_string()),
            text.cast(pa.string_view()),
            pa.array([1, None, 2], pa.int64()),
            pa.array([1000, None, 2000], pa.timestamp("ms")),
            pa.array([Decimal("1.5"), None, Decimal(2)], pa.decimal128(9, 2)),
            pa.nulls(3),
        ],
        list("abcdefg"),
    )
    encoder = RowEncoder([TEXT, TEXT, TEXT, INT4, TIMESTAMP, numeric(5, 2), VOID], [0] * 7)
    rows = _rows(encoder.encode_columns(batch))
    assert rows[0] == (b"a", b"a", b"a", b"1", b"1970-01-01 00:00:01", b"1.50", None)
    assert bytes(encoder.encode_columns(batch)) == encoder.encode_singly(batch)


def test_rows_without_columns_and_batches_without_rows() -> None:
    nothing = pa.RecordBatch.from_arrays([pa.array([], pa.int32())], ["a"])
    assert bytes(RowEncoder([INT4], [0]).encode(nothing)) == b""
    some = pa.RecordBatch.from_arrays([pa.array(range(1000))], ["a"])
    encoder = RowEncoder([INT8], [0])
    assert _rows(encoder.encode(some.slice(990, 2))) == [(b"990",), (b"991",)]


def test_a_large_batch_is_cut_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.pgwire.rows._JOIN_BYTES_MAX", 4096)
    batch = pa.RecordBatch.from_arrays([pa.array([f"{i}" for i in range(3000)])], ["a"])
    rows = _rows(RowEncoder([TEXT], [0]).encode(batch))
    assert rows == [(f"{i}".encode(),) for i in range(3000)]
