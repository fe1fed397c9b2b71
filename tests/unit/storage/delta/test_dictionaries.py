"""Which columns of a data file get a dictionary."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.delta.files import SAMPLED_ROWS, encode_parquet

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


def test_rows_of_no_column_and_no_rows_are_files_too() -> None:
    assert with_dictionary(pa.table({"a": pa.array([], pa.int64())})) in ([], ["a"])
