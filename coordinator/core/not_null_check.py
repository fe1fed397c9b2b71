"""Check NOT NULL again at commit, as the last line of defence before the log.

Every writer of rows checks them first (`row_constraints.py`, `blind_insert.py`, the validation of
an ALTER TABLE), so that this finds nothing. It stands here because of the cost of a miss: a flush
cannot write such rows, neither can the next server, so that the rows would be durable and no server
would start again.

INVARIANTS
  N1  rows of a commit have a value in each column that the catalog after the commit has as NOT
      NULL. Staged files are judged by their statistics; rows of them that the batch deletes may be
      NULL.
"""

from collections.abc import Iterable, Mapping, Sequence

from coordinator.core.messages.replies import Refused, RefusedReason
from sql.catalog.catalog import Column, Table
from storage.batch import DataFile, WriteBatch
from storage.delta.statistics import null_counts
from storage.types import ShardId
from storage.unencoded_rows import SliceRows, UnencodedRows


def not_null_refusal(
    tables: Iterable[Table], writes: Mapping[ShardId, WriteBatch]
) -> Refused | None:
    """A refusal if what is written to some of these tables breaks N1."""
    for table in tables if writes else ():
        batch = writes.get(ShardId(table.shard))
        refused = None if batch is None else table_not_null_refusal(table, batch)
        if refused is not None:
            return refused
    return None


def table_not_null_refusal(table: Table, batch: WriteBatch) -> Refused | None:
    """A refusal if what the batch brings to the table breaks N1."""
    required = [column for column in table.columns if column.not_null]
    if not required:
        return None
    missing = None if batch.rows is None else _null_column(required, batch.rows)
    for file in batch.staged:
        missing = missing or _null_field(required, file, batch)
    return None if missing is None else _refusal(table, missing)


def _null_column(required: Sequence[Column], rows: SliceRows) -> Column | None:
    for column in required:
        # A field that the rows lack is read as NULL (P1 of `storage/row_schema.py`).
        at = rows.schema.get_field_index(column.field)
        if (_nulls(rows, at) if at >= 0 else rows.num_rows) > 0:
            return column
    return None


def _nulls(rows: SliceRows, at: int) -> int:
    if isinstance(rows, UnencodedRows):
        return sum([row[at] is None for row in rows.values])
    return int(rows.column(at).null_count)


def _null_field(required: Sequence[Column], file: DataFile, batch: WriteBatch) -> Column | None:
    dead = len(batch.deletes.get(file.name, ()))
    nulls = null_counts(file.stats_json)
    return next((column for column in required if nulls.get(column.field, 0) > dead), None)


def _refusal(table: Table, column: Column) -> Refused:
    return Refused(
        RefusedReason.OTHER,
        "23502",
        f'null value in column "{column.name}" of relation "{table.name}" violates'
        " not-null constraint",
        table=table,
    )
