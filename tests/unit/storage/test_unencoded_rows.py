"""Rows that are kept as values are the rows that Arrow would have made of them."""

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from coordinator.core.own_writes import OwnWrites, final_batch
from coordinator.execution.blind_insert import TableRows
from sql.catalog.catalog import Column, Table
from sql.types.sql_type import BOOL, DATE, FLOAT8, INT2, INT4, INT8, TEXT, TIMESTAMPTZ, SqlType
from storage.batch import WriteBatch
from storage.codec import decode_batch, encode_batch
from storage.known_rows import KnownRows
from storage.types import OWN
from storage.unencoded_rows import VALUES_ROWS_MAX, UnencodedRows, rows_of_parts, tables_of_parts

TYPES = (INT2, INT4, INT8, BOOL, FLOAT8, TEXT, DATE, TIMESTAMPTZ)
ROWS = [
    (-(1 << 15), 1 << 30, (1 << 63) - 1, True, 0.1, 'a\0"\\ \N{SNOWMAN}\u2028', 0, 0),
    (1, -(1 << 31), -(1 << 63), False, float("-inf"), "", -719_162, 253_402_300_799_999_999),
    (None, None, None, None, None, None, None, None),
    (0, 0, 0, False, 5e-324, "\U0010ffff", 2_932_896, -62_135_596_800_000_000),
]


def table_of(*types: SqlType) -> Table:
    columns = [Column(f"c{at}", type_) for at, type_ in enumerate(types)]
    return Table(oid=1, schema="public", name="t", shard="t1", columns=tuple(columns))


PAIRS = table_of(INT8, TEXT)


def stored(*rows: tuple[object, ...]) -> UnencodedRows:
    kept = TableRows(PAIRS).rows(rows)
    assert isinstance(kept, UnencodedRows)
    return kept


def test_all_come_back_from_the_stash_as_arrow_has_them() -> None:
    encoder = TableRows(table_of(*TYPES))
    kept = encoder.rows(ROWS)
    assert isinstance(kept, UnencodedRows)
    before = encoder.table(ROWS)
    after = decode_batch(encode_batch(WriteBatch(kept))).inserts
    assert after is not None
    assert after.equals(before, check_metadata=True)
    assert kept.table().equals(before)


def test_values_are_those_that_arrow_gives_back() -> None:
    encoder = TableRows(table_of(*TYPES))
    kept, made = KnownRows.of(encoder.rows(ROWS)), KnownRows.of(encoder.table(ROWS))
    for ordinal in range(len(TYPES)):
        assert kept.values(ordinal) == made.values(ordinal)
        assert kept.columns[ordinal].equals(made.columns[ordinal])


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (INT2, 1 << 15), (INT4, -(1 << 31) - 1), (INT8, 1 << 63), (DATE, 1 << 31),
        (TEXT, "\ud800"), (TEXT, 1), (INT8, "1"), (INT8, True), (BOOL, "yes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_for_arrow_to_refuse(type_: SqlType, value: object) -> None:
    with pytest.raises((ValueError, OverflowError, pa.ArrowException)):
        TableRows(table_of(type_)).rows([(value,)])


def test_a_number_of_another_type_is_not_kept() -> None:
    assert not isinstance(TableRows(table_of(INT8)).rows([(1.0,)]), UnencodedRows)


def test_a_table_is_made_once() -> None:
    kept = stored((1, "a"))
    assert kept.table() is kept.table()


def test_parts_of_all_kinds_are_joined_in_order() -> None:
    first, second = stored((1, "a")), stored((2, None), (3, "c"))
    arrow = TableRows(PAIRS).table([(4, "d")])
    both = rows_of_parts([first, second])
    assert both == TableRows(PAIRS).table([(1, "a"), (2, None), (3, "c")])
    mixed = rows_of_parts([first, arrow, second])
    assert isinstance(mixed, pa.Table)
    assert mixed.column(0).to_pylist() == [1, 4, 2, 3]
    tables = tables_of_parts([first, second, arrow, first])
    assert [part.column(0).to_pylist() for part in tables] == [[1, 2, 3], [4], [1]]


def test_many_rows_are_arrow() -> None:
    rows = [(number, "x") for number in range(VALUES_ROWS_MAX)]
    assert isinstance(rows_of_parts([stored(*rows[1:]), stored(rows[0])]), UnencodedRows)
    many = rows_of_parts([stored(*rows), stored(rows[0])])
    assert isinstance(many, pa.Table)
    assert many.num_rows == VALUES_ROWS_MAX + 1
    assert isinstance(TableRows(PAIRS).rows([*rows, rows[0]]), pa.Table)


def test_rows_of_which_none_are_left_have_all_columns() -> None:
    # A block has deleted all that it had inserted; whoever validates it asks for its keys.
    own = OwnWrites()
    own.add(WriteBatch(stored((1, "a"))))
    own.add(WriteBatch(deletes={OWN: BitMap64([0])}))
    left = final_batch(own.merged()).rows
    assert left is not None
    known = KnownRows.of(left)
    assert (known.count, list(known.columns)) == (0, [0, 1])
    assert (0 in known.columns, 2 in known.columns, known.values(0)) == (True, False, [])


def test_own_writes_rewind_and_lose_what_is_deleted() -> None:
    own = OwnWrites()
    own.add(WriteBatch(stored((1, "a"), (2, "b"))))
    mark = own.mark()
    own.add(WriteBatch(stored((3, "c"))))
    own.add(WriteBatch(deletes={OWN: BitMap64([0, 2])}))
    left = final_batch(own.merged())
    assert left.inserts is not None
    assert left.inserts.to_pylist() == [{"c0": 2, "c1": "b"}]
    own.rewind(mark)
    assert own.merged().new_rows == 2
    half = OwnWrites()
    half.add(WriteBatch(stored((7, "x"))))
    before = half.mark()
    half.add(WriteBatch(stored((8, "y"))))
    half.rewind(before)
    assert half.rows == stored((7, "x"))
