"""A transaction's writes to one shard (WriteBatch), and a reader's view of a shard (ShardView).

    WriteBatch   rows to insert (inline Arrow, or files already staged), rows to delete by identity
    ShardView    the shard at one timestamp: file slices (base, staged), inline slices (tail, own)

INVARIANTS
  B1  a row's identity is (source, index): (data file, row index) or (`@<commit ts>`, ordinal in the
      batch). Identities are never used twice.
  B2  inserted rows keep their order; deletes name rows that existed at the writer's read timestamp,
      or rows of files that the same batch stages, never its inline rows.
  B3  a flush writes every row of a shard in commit order, dead ones too (they get a deletion
      vector), so the row (`@ts`, i) lands at (file, first row of ts + i).
  B4  a view is immutable: holding it keeps nothing from advancing and nothing changes under a
      reader.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from storage.types import ShardId, Source

RowIdentity: TypeAlias = tuple[Source, int]
"""B1."""

Deletes = Mapping[Source, BitMap64]
"""Rows to delete: indexes by source (B1). Treat the bitmaps as immutable."""


EXACT_BYTES_MIN: Final = 1 << 16
"""Larger: less time spent on counting, and slices of larger buffers count as the whole of them."""


class Sized(Protocol):
    """Arrow tables, batches and columns."""

    @property
    def nbytes(self) -> int:
        """Bytes of the part of the buffers that is used; dear: it walks them."""
        ...

    def get_total_buffer_size(self) -> int:
        """Bytes of the buffers as a whole; next to nothing."""
        ...


def bytes_of(rows: Sized) -> int:
    """What rows take in memory: exact if it is much, never too little. Asked for at every commit,
    several times.
    """
    whole = int(rows.get_total_buffer_size())
    return whole if whole < EXACT_BYTES_MIN else int(rows.nbytes)


class RowEncoder(Protocol):
    """Turns rows of Python values, in the order of the columns, into a shard's schema."""

    def table(self, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        """The rows, in order. Raises ValueError, OverflowError or pa.ArrowException."""
        ...


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a shard: name below the shard's directory, sizes, Delta statistics."""

    name: Source
    rows: int
    size_bytes: int
    stats_json: str


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """One transaction's writes to one shard. `inserts` has the shard's schema, or is None."""

    inserts: pa.Table | None = None
    staged: tuple[DataFile, ...] = ()
    deletes: Deletes = field(default_factory=dict[Source, BitMap64])

    @property
    def nbytes(self) -> int:
        """About what it takes in memory and as bytes: rows, and some for each run of deletes."""
        rows = 0 if self.inserts is None else bytes_of(self.inserts)
        return rows + sum(2 * len(bitmap) for bitmap in self.deletes.values())


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The rows of a data file that a view contains: the first `row_limit`, without `deleted`."""

    file: DataFile
    row_limit: int
    deleted: BitMap64


@dataclass(frozen=True, slots=True)
class InlineSlice:
    """Rows in memory: `rows` without `deleted`; the identity of row i is (source, i)."""

    source: Source
    rows: pa.Table
    deleted: BitMap64


@dataclass(frozen=True, slots=True)
class ShardView:
    """A shard at a timestamp (B4). `base_key` is equal for two views whose `files` are the same."""

    shard: ShardId
    schema: pa.Schema
    base_key: str
    files: tuple[FileSlice, ...]
    inline: tuple[InlineSlice, ...]
