"""Data files: encode Arrow rows as Parquet, and describe a Parquet file for the log.

Files carry no Arrow schema of their own: the table's schema is in the log, and readers give it.

INVARIANTS
  F1  a footer has no bounds of a column that holds a NaN: writers leave it out of them, readers
      skip by them, and the row would be lost.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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

SAMPLED_ROWS: Final = 2_000
"""Rows that tell whether a column's values differ. Larger: surer, and every file costs more."""

_NEAR_ROWS: Final = 4
"""Values that come more often in a row than this get a dictionary: only then is it smaller."""


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
        use_dictionary=dictionary_leaves(rows.schema, rows),
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_checksum=True,
        write_statistics=footer_statistics(rows.schema, nan_columns(rows)),
    )
    return sink.getvalue()


def dictionary_leaves(schema: pa.Schema, rows: pa.Table) -> bool:
    """What a Parquet writer is told: the leaves of the schema that get a dictionary, judged by some
    of the rows. One of values that all differ makes the file larger, and takes most of the time.
    """
    kept = list(schema)
    if rows.num_rows >= SAMPLED_ROWS:
        places = _sampled_places(rows.num_rows)
        kept = [field for field in schema if not _all_differ(rows.column(field.name), places)]
    return cast("bool", leaf_columns(pa.schema(kept)))  # the stubs know no list


def _sampled_places(count: int) -> "np.typing.NDArray[np.int64]":
    """Numbers of rows, in pairs: values of rows that lie near each other are often the same."""
    apart = count // SAMPLED_ROWS
    first = 2 * apart * np.arange(SAMPLED_ROWS // 2)
    return np.stack((first, first + min(apart, _NEAR_ROWS)), axis=1).ravel()


def _all_differ(column: Any, places: "np.typing.NDArray[np.int64]") -> bool:
    """As far as a sample tells: in a hundred thousand rows or more, nearly no value comes twice."""
    type_ = column.type
    if pa.types.is_nested(type_) or pa.types.is_boolean(type_):
        return False
    sample, start = [], 0
    for chunk in column.chunks:
        # By piece: `take` makes one of all pieces first, and fails if their texts have 2 GiB.
        begin, end = np.searchsorted(places, (start, start + len(chunk)))
        sample.append(chunk.take(pa.array(places[begin:end] - start)))
        start += len(chunk)
    distinct: Any = pc.count_distinct(pa.chunked_array(sample, type_))
    return int(distinct.as_py()) >= 0.99 * SAMPLED_ROWS


def nan_columns(rows: pa.Table) -> frozenset[str]:
    """The columns of floats, and of arrays of them, that hold a NaN (F1)."""
    return frozenset(
        field.name
        for field, column in zip(rows.schema, rows.columns, strict=True)
        if holds_floats(field.type) and _holds_nan(column)
    )


def holds_floats(type_: pa.DataType) -> bool:
    """Whether a column of this type may hold a NaN."""
    return pa.types.is_floating(type_.value_type if isinstance(type_, pa.ListType) else type_)


def _holds_nan(column: Any) -> bool:
    values: Any = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    found: Any = pc.is_nan(values)
    return bool(pc.any(found).as_py())


def footer_statistics(schema: pa.Schema, without: Collection[str]) -> bool:
    """What a Parquet writer is told: the leaves that have statistics in the footer (F1)."""
    left = pa.schema([field for field in schema if field.name not in without])
    # The stubs know no list.
    return True if len(left) == len(schema) else cast("bool", leaf_columns(left))


def leaf_columns(schema: pa.Schema) -> list[str]:
    """The columns of a Parquet file, as its writer names them."""
    leaves: list[str] = []
    for field in schema:
        if isinstance(field.type, pa.ListType):
            leaves.append(f"{field.name}.list.element")
        elif isinstance(field.type, pa.StructType):
            leaves += [f"{field.name}.{part.name}" for part in field.type]
        else:
            leaves.append(field.name)
    return leaves


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
