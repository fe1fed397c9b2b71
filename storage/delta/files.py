"""Data files: encode Arrow rows as Parquet, and describe a Parquet file for the log.

Files carry no Arrow schema of their own: the table's schema is in the log, and readers give it.
"""

import hashlib
from dataclasses import dataclass
from io import BytesIO
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from storage.batch import DataFile
from storage.delta.statistics import parquet_statistics, table_statistics
from storage.errors import Corrupt
from storage.row_schema import cast_to
from storage.types import Source

ROW_GROUP_ROWS: Final = 131_072
"""Engines read and skip by row groups. Larger: fewer tasks. Smaller: bigger footers."""

COMPRESSION: Final = "snappy"
"""The fastest to read on every engine; zstd would save a third of the bytes."""


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A data file before it is written."""

    file: DataFile
    content: bytes


def encode_file(rows: pa.Table, prefix: str) -> EncodedFile:
    """Rows as a Parquet file whose name is `prefix` and a digest of the content.

    A flush that is tried again encodes the same rows to the same bytes, finds them under the same
    name, and need not write them twice; different bytes never collide.
    """
    content = encode_parquet(rows)
    name = f"{prefix}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.parquet"
    file = DataFile(Source(name), rows.num_rows, len(content), table_statistics(rows))
    return EncodedFile(file, content)


def encode_parquet(rows: pa.Table) -> bytes:
    """Rows as Parquet bytes that delta-spark, delta-rs and DuckDB read."""
    sink = BytesIO()
    pq.write_table(
        rows,
        sink,
        row_group_size=ROW_GROUP_ROWS,
        compression=COMPRESSION,
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_checksum=True,
    )
    return sink.getvalue()


def data_file_from_parquet(
    name: Source, metadata: pq.FileMetaData, size_bytes: int, schema: pa.Schema
) -> DataFile:
    """A Parquet file written by an engine, with statistics from its footer."""
    return DataFile(name, metadata.num_rows, size_bytes, parquet_statistics(metadata, schema))


def decode_parquet(content: bytes, schema: pa.Schema) -> pa.Table:
    """The rows of a data file, with the table's types. Raises Corrupt."""
    try:
        rows = pq.read_table(
            pa.BufferReader(content), partitioning=None, page_checksum_verification=True
        )
        return cast_to(rows, schema)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise Corrupt(f"data file: {error}") from None
