"""Rows that are decoded once are those of decoding them anew (T1 of `decoded_rows.py`)."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from compute.reference import decoded_rows
from compute.reference.decoded_rows import DecodedRows, decode_slices
from sql.plan.nodes import ColumnId, PlanColumn, RelationId, Scan
from sql.types.sql_type import DATE, INT8, TEXT
from storage.batch import InlineSlice
from storage.types import OWN, Source

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string()), ("d", pa.date32())])
COLUMNS = (INT8, TEXT, DATE)


def scan(*ordinals: int, identity: bool = False) -> Scan:
    columns = tuple(PlanColumn(ColumnId(at), f"c{at}", COLUMNS[at]) for at in ordinals)
    named = None
    if identity:
        named = (PlanColumn(ColumnId(8), "s", TEXT), PlanColumn(ColumnId(9), "i", INT8))
    return Scan(RelationId("t"), "t", columns, ordinals, named)


def slices(sizes: list[int]) -> list[InlineSlice]:
    made = []
    for number, size in enumerate(sizes):
        values = list(range(100 * number, 100 * number + size))
        texts = [None if value % 3 == 0 else f"x{value}" for value in values]
        rows = pa.table([values, texts, pa.array(values, pa.int32()).cast(pa.date32())], SCHEMA)
        made.append(InlineSlice(Source(f"@{number + 1}"), rows, BitMap64()))
    return made


SCANS = [scan(0, 1, 2), scan(2, 0, identity=True), scan(identity=True), scan()]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(SCANS),
        st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=4),  # deleted rows
        st.sets(st.integers(0, 7), max_size=4),  # slices that are not in the view
        st.booleans(),  # own rows
    ),
    min_size=1,
    max_size=8,
)


@given(st.lists(st.integers(1, 5), min_size=8, max_size=8), STEPS, st.sampled_from([0, 4_000]))
@settings(max_examples=150, deadline=None)
def test_like_decoding_them_anew(sizes: list[int], steps: list[tuple], most: int) -> None:
    decoded, every = DecodedRows(), slices(sizes)
    with pytest.MonkeyPatch.context() as patched:
        if most:
            patched.setattr(decoded_rows, "DECODED_BYTES_MAX", most)
        for scanned, deletes, left_out, with_own in steps:
            for at, row in deletes:
                part = every[at]
                if row < part.rows.num_rows:
                    every[at] = InlineSlice(part.source, part.rows, part.deleted | BitMap64([row]))
            seen = [part for at, part in enumerate(every) if at not in left_out]
            if with_own:
                seen.append(InlineSlice(OWN, every[0].rows, BitMap64([0])))
            assert decoded.rows(scanned, seen) == decode_slices(scanned, seen)


def test_a_slice_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded, every = DecodedRows(), slices([3, 1, 1])
    counted: list[int] = []

    def counting(scanned: Scan, parts: list[InlineSlice], *, deleted_too: bool = False) -> list:
        counted.append(len(parts))
        return decode_slices(scanned, parts, deleted_too=deleted_too)

    monkeypatch.setattr(decoded_rows, "decode_slices", counting)
    decoded.rows(SCANS[0], every[:2])
    decoded.rows(SCANS[0], every)
    every[0] = InlineSlice(every[0].source, every[0].rows, BitMap64([1]))
    assert len(decoded.rows(SCANS[0], every)) == 4
    assert [count for count in counted if count] == [2, 1]
