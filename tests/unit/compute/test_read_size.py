"""How much a plan reads: the columns, files and rows that count, and what joins hold."""

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.read_size import ReadSize, read_size
from sql.plan.nodes import RelationId
from sql.types.sql_type import INT8, TEXT
from storage.batch import DataFile, FileSlice, InlineSlice, ShardView
from storage.types import OWN, ShardId, Source
from tests.engines.spark.shared_engine import plan_of

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])
COLUMNS = [("a", INT8), ("b", TEXT), ("c", INT8)]
ROWS = pa.table({"a": [1, 2], "b": ["x", "y"], "c": [3, 4]}, schema=SCHEMA)


def _view(*files: tuple[int, int]) -> ShardView:
    """Files of so many rows and bytes, and two rows in memory."""
    slices = tuple(
        FileSlice(DataFile(Source(f"f{at}"), rows, size, "{}"), rows, BitMap64())
        for at, (rows, size) in enumerate(files)
    )
    inline = (InlineSlice(OWN, ROWS, BitMap64()),)
    return ShardView(ShardId("t"), SCHEMA, "key", slices, inline)


INPUTS = {RelationId("t"): _view((100, 4_000), (300, 12_000))}
WIDTH = 8 + 24 + 8


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("select * from t", ReadSize(402, 16_000, 0)),
        ("select a from t", ReadSize(402, 16_000 * 8 // WIDTH, 0)),
        ("select 1 from t where c > a", ReadSize(402, 16_000 * 16 // WIDTH, 0)),
        ("select count(*) from t", ReadSize(402, 16_000 // WIDTH, 0)),
        # Every scan reads; of a join, one side is not held.
        ("select x.a from t x join t y using (a)", ReadSize(804, 2 * (16_000 * 8 // WIDTH), 3_216)),
        (
            "select c from t where b in (select b from t)",
            ReadSize(804, 16_000 * 32 // WIDTH + 16_000 * 24 // WIDTH, 402 * 24),
        ),
    ],
)
def test_columns_scans_and_joins(text: str, size: ReadSize) -> None:
    plan = plan_of(text, t=COLUMNS)
    assert read_size(plan, INPUTS) == size
    assert read_size(plan, INPUTS) == size, "remembered"


def test_files_that_have_none_of_the_rows_are_left_out() -> None:
    plan = plan_of("select * from t", t=COLUMNS)
    tests = {RelationId("t"): lambda file: file.name == Source("f0")}
    assert read_size(plan, INPUTS, tests) == ReadSize(102, 4_000, 0)


def test_the_same_plan_over_a_table_that_has_grown() -> None:
    plan = plan_of("select * from t", t=COLUMNS)
    for files in ([], [(5, 50)], [(5, 50), (7, 70)]):
        inputs = {RelationId("t"): _view(*files)}
        rows, nbytes = sum(n for n, _ in files), sum(size for _, size in files)
        assert read_size(plan, inputs) == ReadSize(2 + rows, nbytes, 0)
