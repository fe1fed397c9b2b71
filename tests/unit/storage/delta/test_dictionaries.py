"""Which columns of a data file get a dictionary."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.delta.files import SAMPLED_ROWS, dictionary_leaves, encode_parquet

FEW = ("a", "b", None)


def with_dictionary(rows: pa.Table) -> list[str]:
    content = encode_parquet(rows)
    assert pq.read_table(BytesIO(content)).equals(rows)
    group = pq.ParquetFile(BytesIO(content)).metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    return [one.path_in_schema for one in columns if one.has_dictionary_page]


@pytest.mark.parametrize("count", [SAMPLED_ROWS - 1, SAMPLED_ROWS, 3 * SAMPLED_ROWS + 1, 131_072])
def test_values_that_all_differ_have_none_in_larger_files(count: int) -> None:
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": pa.array([f"name {number}" for number in range(count)]),
            "few": pa.array([FEW[number % 3] for number in range(count)]),
            "some": pa.array([number % 1_000 for number in range(count)], pa.int32()),
            "none": pa.nulls(count, pa.string()),
            "list": pa.array([[number] for number in range(count)], pa.list_(pa.int64())),
            "ok": pa.array([number % 2 == 0 for number in range(count)]),
        }
    )
    small = count < SAMPLED_ROWS
    repeated = ["few", "some", "none", "list.list.element"]
    assert with_dictionary(rows) == (["id", "name", *repeated] if small else repeated)
    pieces = pa.concat_tables([rows.slice(at, 777) for at in range(0, count, 777)])
    assert dictionary_leaves(rows.schema, pieces) == dictionary_leaves(rows.schema, rows)


@pytest.mark.parametrize("times", [1, 3, 20, 60])
def test_values_that_come_many_times_in_a_row_have_one(times: int) -> None:
    """As the lines of orders do, in the order of their orders."""
    texts = [f"order {number // times:030}" for number in range(131_072)]
    rows = pa.table({"id": pa.array(range(131_072)), "order": texts})
    assert with_dictionary(rows) == (["order"] if times > 4 else [])


def test_pieces_are_looked_at_one_by_one() -> None:
    """Together these have 2.4 GB, more than an array of texts may have."""
    ids = pa.array(range(3_000))
    large = pa.array(["x" * 60_000_000, "y", "z"])
    names = pa.chunked_array([ids.cast(pa.string()), *[large] * 40])
    rows = pa.table({"id": pa.array(range(len(names))), "name": names})
    assert dictionary_leaves(rows.schema, rows) == []


TYPES = [
    pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2),
    pa.decimal128(38, 2), pa.string(), pa.binary(), pa.date32(), pa.time64("us"),
    pa.timestamp("us"), pa.timestamp("us", "UTC"),
]  # fmt: skip


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_columns_of_every_type_are_judged(type_: pa.DataType) -> None:
    numbers = pa.array(range(3_000), pa.int32())
    # The casts that there are: of days, of text, of longer numbers.
    way = {pa.date32(): pa.int32(), pa.decimal128(9, 2): pa.string(), pa.binary(): pa.string()}
    column = numbers.cast(way.get(type_, pa.int64())).cast(type_)
    name = 'a.b "c"'
    assert with_dictionary(pa.table({name: column, "few": ["x"] * 3_000})) == ["few"]
    holed = pa.array([None if number % 2 else column[number] for number in range(3_000)], type_)
    assert with_dictionary(pa.table({name: holed})) == [name]


def test_rows_of_no_column_and_no_rows_are_files_too() -> None:
    assert with_dictionary(pa.table({"a": pa.array([], pa.int64())})) in ([], ["a"])
