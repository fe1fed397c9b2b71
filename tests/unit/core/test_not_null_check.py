"""NULLs in staged files, told by their statistics (N1 of `core/not_null_check.py`)."""

from dataclasses import replace

from pyroaring import BitMap64

from coordinator.core.not_null_check import table_not_null_refusal
from sql.catalog.catalog import Table
from storage.batch import DataFile, WriteBatch
from storage.delta.statistics import table_statistics
from storage.types import Source
from tests.unit.core.validated import COLUMNS, table_of

TABLE = Table(16_384, "public", "t", "shard", (replace(COLUMNS[0], not_null=True),))


def staged(*values: int | None) -> WriteBatch:
    rows = table_of(values)
    return WriteBatch(staged=(DataFile(Source("f"), rows.num_rows, 1, table_statistics(rows)),))


def test_null_in_a_staged_file_is_refused() -> None:
    refused = table_not_null_refusal(TABLE, staged(1, None))
    assert refused is not None
    assert (refused.sqlstate, refused.table) == ("23502", TABLE)
    assert table_not_null_refusal(TABLE, staged(1, 2)) is None


def test_null_may_be_a_row_that_the_batch_deletes() -> None:
    batch = replace(staged(1, None), deletes={Source("f"): BitMap64([1])})
    assert table_not_null_refusal(TABLE, batch) is None
    assert (
        table_not_null_refusal(TABLE, replace(staged(None, None), deletes=batch.deletes))
        is not None
    )
