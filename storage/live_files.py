"""The data files of a version: which rows are deleted, and when each row was committed.

    LiveFile   part-…parquet   rows ▓▓░▓▓▓░▓▓   ▓ live, ░ deleted
                               runs └@5─┘└@8──┘

    FileMap    chunk ─ chunk ─ chunk      a new version copies the chunks it touches

INVARIANTS
  F1  the runs of a file ascend in time and in rows; the first begins at row 0.
  F2  a FileMap is a value and keeps the order in which files came.
  F3  digests add up: two sets of slices have equal sums if and only if they are equal (up to a
      collision of 96 bits).
  F4  a rewritten file holds, for each file in `moved` in turn, its rows without the dropped ones,
      in their order; no other rows.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from storage.batch import DataFile, FileSlice
from storage.delta.deletion_vectors import DeletionVector, encode_bitmap
from storage.fast_dataclass import fast_dataclass
from storage.row_versions import RowIds, RowOrigins
from storage.types import Source, Timestamp

CHUNK_FILES_MAX: Final = 128
"""Smaller: a longer spine to copy at each version. Larger: more entries copied per touched file."""

DIGEST_BYTES: Final = 12


@fast_dataclass(frozen=True, slots=True)
class Run:
    """Rows [first_row, next run's first_row) of a file were committed at `ts`."""

    ts: Timestamp
    first_row: int


class Runs(Sequence[Run]):
    """The runs of one file (F1), packed: a file may hold a hundred thousand one-row commits."""

    __slots__ = ("_first_rows", "_times")

    def __init__(self, times: Iterable[int], first_rows: Iterable[int]) -> None:
        self._times: npt.NDArray[np.int64] = np.fromiter(times, np.int64)
        self._first_rows: npt.NDArray[np.int64] = np.fromiter(first_rows, np.int64)
        assert len(self._times) == len(self._first_rows), "F1: a run has a time and a row"
        assert len(self._times) > 0, "F1: the first run begins at row 0"
        assert self._first_rows[0] == 0, "F1: the first run begins at row 0"
        assert bool(np.all(np.diff(self._times) > 0)), "F1: runs ascend in time"
        assert bool(np.all(np.diff(self._first_rows) > 0)), "F1: runs ascend in rows"

    @classmethod
    def single(cls, ts: Timestamp) -> "Runs":
        """All rows of the file were committed at `ts`."""
        return cls((ts,), (0,))

    @property
    def times(self) -> Sequence[int]:
        """The commit times, ascending."""
        times: list[int] = self._times.tolist()
        return times

    @property
    def first_rows(self) -> Sequence[int]:
        """Where each run begins, ascending."""
        rows: list[int] = self._first_rows.tolist()
        return rows

    def rows_until(self, as_of: Timestamp, rows: int) -> int:
        """How many of the file's `rows` were committed at or before `as_of`."""
        run = int(np.searchsorted(self._times, as_of, "right"))
        return rows if run == len(self._times) else int(self._first_rows[run])

    def first_row_at(self, ts: Timestamp) -> int | None:
        """Where the rows committed at `ts` begin, or None if the file has none."""
        run = int(np.searchsorted(self._times, ts))
        if run == len(self._times) or self._times[run] != ts:
            return None
        return int(self._first_rows[run])

    def origins(self, ids: RowIds) -> RowOrigins:
        """What the rows of the file are, which have these ids."""
        return RowOrigins(ids, self._times, self._first_rows)

    def any_within(self, after: Timestamp, upto: Timestamp) -> bool:
        """True if some run has after < ts <= upto."""
        first, end = np.searchsorted(self._times, (after, upto), "right")
        return bool(first < end)

    def __len__(self) -> int:
        return len(self._times)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        if isinstance(index, slice):
            return tuple(self)[index]
        return Run(Timestamp(int(self._times[index])), int(self._first_rows[index]))

    def __iter__(self) -> Iterator[Run]:
        pairs = zip(self.times, self.first_rows, strict=True)
        return (Run(Timestamp(ts), row) for ts, row in pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Runs):
            return NotImplemented
        return np.array_equal(self._times, other._times) and np.array_equal(
            self._first_rows, other._first_rows
        )

    def __hash__(self) -> int:
        return hash((self._times.tobytes(), self._first_rows.tobytes()))

    def __repr__(self) -> str:
        return f"Runs({', '.join(f'@{run.ts}:{run.first_row}' for run in self)})"


@fast_dataclass(frozen=True, slots=True)
class Moved:
    """A file whose rows have come to another one, at `first_row` there (F4)."""

    source: Source
    rows: int
    dropped: BitMap64
    first_row: int

    @property
    def kept(self) -> int:
        """How many rows have moved."""
        return self.rows - len(self.dropped)

    def place(self, rows: BitMap64) -> BitMap64:
        """Where these rows of the source are now; dropped ones are nowhere."""
        left = rows - self.dropped
        if not left:
            return BitMap64()
        if not self.dropped:
            return left.shift(self.first_row) if self.first_row else left
        indexes = np.asarray(left.to_array(), np.uint64)
        before = np.searchsorted(np.asarray(self.dropped.to_array(), np.uint64), indexes)
        return BitMap64((indexes - before.astype(np.uint64) + np.uint64(self.first_row)).tolist())


def moved_rows(files: Iterable[tuple[Source, int, BitMap64]]) -> tuple[Moved, ...]:
    """Files by name, rows and dropped rows, laid one after the other (F4)."""
    moved: list[Moved] = []
    first_row = 0
    for source, rows, dropped in files:
        moved.append(Moved(source, rows, dropped, first_row))
        first_row += moved[-1].kept
    return tuple(moved)


def slice_digest(part: FileSlice) -> int:
    """A number that stands for a slice in sums of digests (F3)."""
    digest = hashlib.blake2b(encode_bitmap(part.deleted), digest_size=DIGEST_BYTES)
    digest.update(f"{part.row_limit} {part.file.name}".encode())
    return int.from_bytes(digest.digest(), "big")


SliceChange: TypeAlias = tuple[FileSlice | None, FileSlice | None]
"""A slice as it was and as it is; None: it is not there."""


class SlicesDigest:
    """The sum of the digests of a view's file slices (F3), counted when it is asked for."""

    __slots__ = ("_changes", "_counted", "_sum")

    def __init__(self, total: int, changes: Mapping[Source, SliceChange] | None = None) -> None:
        self._sum = total
        self._changes = {} if changes is None else changes
        """By file, what is not in the sum yet."""
        self._counted: int | None = None if self._changes else total

    def changed(self, changes: Mapping[Source, SliceChange]) -> "SlicesDigest":
        """The digest of the same slices once these are others."""
        if self._counted is not None:
            return SlicesDigest(self._counted, changes)
        made = dict(self._changes)
        for name, (before, after) in changes.items():
            known = made.get(name)
            made[name] = (before if known is None else known[0], after)
        return SlicesDigest(self._sum, made)

    def __str__(self) -> str:
        """The digest as text."""
        if self._counted is None:
            total = self._sum
            for before, after in self._changes.values():
                total -= 0 if before is None else slice_digest(before)
                total += 0 if after is None else slice_digest(after)
            self._counted = total
        return f"{self._counted % (1 << 8 * DIGEST_BYTES):0{2 * DIGEST_BYTES}x}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlicesDigest) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


@fast_dataclass(frozen=True, slots=True)
class LiveFile:
    """A file as one version has it: the file, all its deleted rows so far, its runs in row order.

    `staged`: the file was written as such by a transaction, so its rows are named by the file and
    never by `@ts`. `vector` is the descriptor of `deleted` in the log. `moved`: whose rows a
    compaction has brought here. `whole` and `digest` are what a view of the version itself shows.
    `row_ids`: None in a log of before there were any, until it is loaded (W5 of `row_versions.py`).
    """

    file: DataFile
    deleted: BitMap64
    runs: Runs
    staged: bool = False
    vector: DeletionVector | None = None
    moved: tuple[Moved, ...] = ()
    row_ids: RowIds | None = None
    whole: FileSlice = field(init=False, compare=False, repr=False)
    digest: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert not self.deleted or self.deleted.max() < self.file.rows, (
            "a deleted row is in its file"
        )
        if self.row_ids is not None:
            origins = self.runs.origins(self.row_ids)
            object.__setattr__(self, "file", replace(self.file, origins=origins))
        whole = FileSlice(self.file, self.file.rows, self.deleted)
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "digest", slice_digest(whole))

    @property
    def dead(self) -> bool:
        """True if every row is deleted."""
        return len(self.deleted) == self.file.rows


class FileMap(Mapping[Source, LiveFile]):
    """An immutable, ordered map from name to file; versions share its chunks (F2)."""

    __slots__ = ("_chunks", "_len")

    def __init__(self, files: Iterable[LiveFile] = ()) -> None:
        self._chunks: tuple[dict[Source, LiveFile], ...] = ()
        self._len = 0
        grown = self.changed(files)
        self._chunks, self._len = grown._chunks, grown._len

    @classmethod
    def _of(cls, chunks: tuple[dict[Source, LiveFile], ...]) -> "FileMap":
        files = cls.__new__(cls)
        files._chunks = chunks
        files._len = sum(map(len, chunks))
        return files

    def changed(self, puts: Iterable[LiveFile], drops: Collection[Source] = ()) -> "FileMap":
        """This map with some files replaced in place or added at the end, and some dropped."""
        chunks = list(self._chunks)
        owned: set[int] = set()

        def own(index: int) -> dict[Source, LiveFile]:
            if index not in owned:
                chunks[index] = dict(chunks[index])
                owned.add(index)
            return chunks[index]

        for live in puts:
            index = _chunk_of(chunks, live.file.name)
            if index is None:
                if not chunks or len(chunks[-1]) >= CHUNK_FILES_MAX:
                    chunks.append({})
                index = len(chunks) - 1
            own(index)[live.file.name] = live
        for name in drops:
            index = _chunk_of(chunks, name)
            assert index is not None, "a dropped file was there"
            del own(index)[name]
        return self._of(tuple(chunk for chunk in chunks if chunk))

    def __getitem__(self, name: Source) -> LiveFile:
        index = _chunk_of(self._chunks, name)
        if index is None:
            raise KeyError(name)
        return self._chunks[index][name]

    def __contains__(self, name: object) -> bool:
        for chunk in self._chunks:  # noqa: SIM110 - asked for many times a commit
            if name in chunk:
                return True
        return False

    def __iter__(self) -> Iterator[Source]:
        return (name for chunk in self._chunks for name in chunk)

    def live_files(self) -> Iterator[LiveFile]:
        """All files in order; faster than `values()`, which looks every name up."""
        return (live for chunk in self._chunks for live in chunk.values())

    def __len__(self) -> int:
        return self._len

    def __repr__(self) -> str:
        return f"FileMap({len(self)} files)"


def _chunk_of(chunks: Sequence[Mapping[Source, LiveFile]], name: Source) -> int | None:
    """The newest chunk first: what is deleted or looked up is often young."""
    for index in range(len(chunks) - 1, -1, -1):
        if name in chunks[index]:
            return index
    return None
