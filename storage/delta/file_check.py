"""Verify that a data file holds what the log says of it, one row group at a time."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from storage.batch import DataFile
from storage.delta.files import ROW_GROUP_ROWS
from storage.delta.statistics import null_counts, row_count, unbounded_columns
from storage.errors import Corrupt


def unreadable(file: DataFile, content: bytes) -> str | None:
    """Why the rows of a file cannot be read, if they cannot; whatever they are."""
    if len(content) != file.size_bytes:
        return f"has {len(content)} bytes instead of {file.size_bytes}"
    try:
        found = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        rows = sum(batch.num_rows for batch in found.iter_batches(ROW_GROUP_ROWS))
    except (pa.ArrowException, OSError) as error:
        return f"cannot be read: {error!r}"
    return None if rows == file.rows else f"has {rows} rows instead of {file.rows}"


def file_problems(file: DataFile, content: bytes, schema: pa.Schema) -> Iterator[str]:
    """What is wrong with a file, if anything."""
    if len(content) != file.size_bytes:
        yield f"has {len(content)} bytes instead of {file.size_bytes}"
    try:
        yield from _row_problems(file, content, schema)
    except (pa.ArrowException, OSError, KeyError, Corrupt) as error:
        yield f"cannot be read: {error!r}"


def _row_problems(file: DataFile, content: bytes, schema: pa.Schema) -> Iterator[str]:
    rows = 0
    unbounded: set[str] = set()
    content_file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    # A file has columns that its table had when it was written: perhaps fewer, perhaps others.
    names = content_file.schema_arrow.names
    nulls = dict.fromkeys(names, 0)
    for batch in content_file.iter_batches(ROW_GROUP_ROWS):
        part = pa.Table.from_batches([batch])
        known = pa.schema([f for f in schema if f.name in names])
        part = pa.table(
            [
                part.column(name).cast(known.field(name).type)
                if name in known.names
                else part.column(name)
                for name in names
            ],
            names=names,
        )
        part.validate(full=True)
        rows += part.num_rows
        for name in names:
            nulls[name] += part.column(name).null_count
        unbounded |= {*unbounded_columns(part, file.stats_json)}
    if not rows == file.rows == row_count(file.stats_json):
        yield f"has {rows} rows instead of {file.rows}"
    for name in sorted(unbounded):
        yield f"column {name} has values outside its bounds"
    for name, count in null_counts(file.stats_json).items():
        if nulls.get(name) != count:
            yield f"column {name} has {nulls.get(name)} nulls instead of {count}"
