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

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from storage.fast_dataclass import fast_dataclass
from storage.row_versions import RowOrigins
from storage.types import OWN, ShardId, Source, Timestamp, inline_ts, is_file
from storage.unencoded_rows import SliceRows, table_of

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


@fast_dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a shard: name below the shard's directory, sizes, Delta statistics.

    `origins`: ids and commits of its rows (`row_versions.py`); None as long as nobody has
    committed it.
    """

    name: Source
    rows: int
    size_bytes: int
    stats_json: str
    origins: RowOrigins | None = field(default=None, compare=False, repr=False)


@fast_dataclass(frozen=True, slots=True)
class WriteBatch:
    """One transaction's writes to one shard. `rows`: to insert; None, or of the shard's schema."""

    rows: SliceRows | None = None
    staged: tuple[DataFile, ...] = ()
    deletes: Deletes = field(default_factory=dict[Source, BitMap64])

    @property
    def inserts(self) -> pa.Table | None:
        """The rows to insert, as Arrow."""
        return None if self.rows is None else table_of(self.rows)

    @property
    def nbytes(self) -> int:
        """About what it takes in memory and as bytes: rows, and some for each run of deletes."""
        rows = 0 if self.rows is None else bytes_of(self.rows)
        return rows + sum(2 * len(bitmap) for bitmap in self.deletes.values())

    @property
    def new_rows(self) -> int:
        """How many rows it brings, inline and in files."""
        inline = 0 if self.rows is None else self.rows.num_rows
        return inline + sum([file.rows for file in self.staged])


@fast_dataclass(frozen=True, slots=True)
class FileSlice:
    """The rows of a data file that a view contains: the first `row_limit`, without `deleted`."""

    file: DataFile
    row_limit: int
    deleted: BitMap64


@fast_dataclass(frozen=True, slots=True)
class InlineSlice:
    """Rows in memory: `stored` without `deleted`; the identity of row i is (source, i).

    `first_id`: the id of row 0, from which the others count on; None: they are not committed (W4 of
    `row_versions.py`).
    """

    source: Source
    stored: SliceRows
    deleted: BitMap64
    first_id: int | None = None

    @property
    def rows(self) -> pa.Table:
        """The rows as Arrow."""
        return table_of(self.stored)

    @property
    def num_rows(self) -> int:
        """How many they are, deleted ones too."""
        return self.stored.num_rows


class FilesKey(Protocol):
    """What tells sets of file slices apart, as a text once somebody asks for it."""

    def __str__(self) -> str:
        """Equal for equal slices, and for no others."""
        ...


@fast_dataclass(frozen=True, slots=True)
class ShardView:
    """A shard at a timestamp (B4)."""

    shard: ShardId
    schema: pa.Schema
    files_key: FilesKey
    files: tuple[FileSlice, ...]
    inline: tuple[InlineSlice, ...]
    counted: list[int] = field(default_factory=list[int], compare=False, repr=False)
    """`inline_rows`, once somebody has counted them."""
    upto: Timestamp | None = field(default=None, compare=False, repr=False)
    """The last commit of the tail that it shows; None if nobody says."""
    is_whole: bool = field(default=False, compare=False, repr=False)
    """Whether it shows all up to it: nothing is hidden, and nobody's own writes are on top."""

    @property
    def inline_rows(self) -> int:
        """Rows of all slices in memory, deleted ones too."""
        if not self.counted:
            self.counted.append(sum([part.num_rows for part in self.inline]))
        return self.counted[0]

    def inline_slice(self, source: Source) -> InlineSlice | None:
        """The slice of a source; in a shard, slices ascend by the time of their commit."""
        at = place_of(self.inline, source)
        return None if at is None else self.inline[at]

    @property
    def base_key(self) -> str:
        """Equal for two views whose `files` are the same. Of most views nobody asks for it."""
        return str(self.files_key)


def place_of(slices: Sequence[InlineSlice], source: Source) -> int | None:
    """Where the slice of a source is among those of a shard, own rows last."""
    commits = len(slices) - bool(slices and slices[-1].source == OWN)
    if source == OWN:
        return commits if commits < len(slices) else None
    if is_file(source):
        return None
    at = bisect_left(slices, inline_ts(source), hi=commits, key=_commit_time)
    return at if at < commits and slices[at].source == source else None


def _commit_time(part: InlineSlice) -> Timestamp:
    return inline_ts(part.source)


def all_rows(view: ShardView) -> dict[Source, BitMap64]:
    """The names of all rows of a view, without a look at one."""
    deletes: dict[Source, BitMap64] = {}
    for part in view.files:
        deletes[part.file.name] = _range(part.row_limit) - part.deleted
    for piece in view.inline:
        deletes[piece.source] = _range(piece.num_rows) - piece.deleted
    return deletes


def _range(count: int) -> BitMap64:
    rows = BitMap64()
    rows.add_range(0, count)
    return rows
