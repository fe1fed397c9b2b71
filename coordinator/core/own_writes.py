"""Buffer one transaction's writes to one shard: many small batches at the price of few.

    write ─▶ pieces of rows, layers of deletes ─▶ merged() for a scan or the commit
                   └── spilled(files): the rows are in staged files now

INVARIANTS
  O1  own inline rows are named (`@own`, n), n counting them as they came; rewinding forgets the
      last of them, spilling gives all of them, dead ones too, the names (file, row).
  O2  n batches cost O(n log n): neighbours of like size are joined, so there are few of them.
  O3  a mark is a value: what is written later does not change it, and it keeps no rows alive.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, WriteBatch, bytes_of
from storage.fast_dataclass import fast_dataclass
from storage.types import OWN, Source
from storage.unencoded_rows import SliceRows, UnencodedRows, rows_of_parts

JOINED_BYTES_MAX: Final = 1 << 20
"""Larger pieces stay as they are. Larger: fewer pieces in a scan, longer copies on the loop."""


def merge_deletes(first: Deletes, second: Deletes) -> Deletes:
    """The union, by source."""
    if not first or not second:
        return first or second
    merged = dict(first)
    for source, rows in second.items():
        known = merged.get(source)
        merged[source] = rows if known is None else known | rows
    return merged


def merge_batches(batches: Sequence[WriteBatch]) -> WriteBatch:
    """All batches as one, their rows in order."""
    if len(batches) == 1:
        return batches[0]
    parts = [batch.rows for batch in batches if batch.rows is not None]
    deletes: dict[Source, list[BitMap64]] = {}
    for batch in batches:
        for source, rows in batch.deletes.items():
            deletes.setdefault(source, []).append(rows)
    return WriteBatch(
        rows_of_parts(parts) if parts else None,
        staged=tuple(file for batch in batches for file in batch.staged),
        deletes={source: BitMap64.union(*rows) for source, rows in deletes.items()},
    )


def final_batch(batch: WriteBatch) -> WriteBatch:
    """The batch as it is committed: without own rows that the transaction deleted again (X2 of
    `transactions.py`).
    """
    gone = batch.deletes.get(OWN)
    if gone is None:
        return batch
    deletes: dict[Source, BitMap64] = dict(batch.deletes)
    del deletes[OWN]
    rows = batch.rows
    assert rows is not None, "O1: own rows are deleted only where there are some"
    if isinstance(rows, UnencodedRows):
        left = rows.only([at not in gone for at in range(rows.num_rows)])
        return replace(batch, rows=left, deletes=deletes)
    kept = np.ones(rows.num_rows, dtype=bool)
    kept[np.fromiter(gone, np.int64, len(gone))] = False
    return replace(batch, rows=rows.filter(pa.array(kept)), deletes=deletes)


def deletes_of_others(batch: WriteBatch) -> Deletes:
    """The deletes of rows that were there before: not of rows in files that the batch stages."""
    if not batch.staged:
        return batch.deletes
    own = {file.name for file in batch.staged}
    return {source: rows for source, rows in batch.deletes.items() if source not in own}


def is_empty(batch: WriteBatch) -> bool:
    """True if committing the batch changes nothing."""
    rows = 0 if batch.rows is None else batch.rows.num_rows
    return rows == 0 and not batch.staged and not any(batch.deletes.values())


@fast_dataclass(frozen=True, slots=True)
class OwnWritesMark:
    """How far the writes had come at a savepoint (O3). `rows`: inline rows."""

    rows: int
    staged: tuple[DataFile, ...]
    deletes: tuple[Deletes, ...]

    def spilled(self, files: Sequence[DataFile], rows: int) -> "OwnWritesMark":
        """The same writes, now that `rows` inline rows, its own the first of them, are in files."""
        if self.rows == 0:
            return self
        layers = [_renamed(layer, files) for layer in self.deletes]
        if self.rows < rows:
            layers.append(_named(BitMap64(range(self.rows, rows)), files))
        return OwnWritesMark(0, self.staged + tuple(files), tuple(layers))


class OwnWrites:
    """See the module."""

    def __init__(self) -> None:
        self._pieces: list[SliceRows] = []
        self._staged: tuple[DataFile, ...] = ()
        self._layers: list[Deletes] = []
        self._merged: WriteBatch | None = None

    @property
    def rows(self) -> SliceRows | None:
        """The inline rows, dead ones too (O1)."""
        return rows_of_parts(self._pieces) if self._pieces else None

    @property
    def inline_bytes(self) -> int:
        """What the inline rows take in memory."""
        return sum(map(bytes_of, self._pieces))

    @property
    def staged(self) -> tuple[DataFile, ...]:
        """The files it has staged."""
        return self._staged

    def add(self, batch: WriteBatch) -> None:
        """One more statement's writes."""
        self._merged = None
        self._staged += batch.staged
        if batch.rows is not None and batch.rows.num_rows:
            self._add_rows(batch.rows)
        if batch.deletes:
            self._add_deletes(batch.deletes)

    def _add_rows(self, rows: SliceRows) -> None:
        pieces = self._pieces
        while pieces and pieces[-1].num_rows <= rows.num_rows:
            if bytes_of(pieces[-1]) + bytes_of(rows) > JOINED_BYTES_MAX:
                break
            rows = rows_of_parts([pieces.pop(), rows])
            if not isinstance(rows, UnencodedRows):
                rows = rows.combine_chunks()
        pieces.append(rows)

    def _add_deletes(self, deletes: Deletes) -> None:
        layers = self._layers
        while layers and _weight(layers[-1]) <= _weight(deletes):
            deletes = merge_deletes(layers.pop(), deletes)
        layers.append(deletes)

    def merged(self) -> WriteBatch:
        """Everything as one batch; remembered until the next write."""
        if self._merged is None:
            deletes: Deletes = {}
            for layer in reversed(self._layers):
                deletes = merge_deletes(layer, deletes)
            self._layers = [deletes] if deletes else []
            self._merged = WriteBatch(self.rows, self._staged, deletes)
        return self._merged

    # --- savepoints, spilling -----------------------------------------------------------------

    def mark(self) -> OwnWritesMark:
        """Where it stands now."""
        rows = sum(piece.num_rows for piece in self._pieces)
        return OwnWritesMark(rows, self._staged, tuple(self._layers))

    def rewind(self, mark: OwnWritesMark) -> None:
        """Forget what was written after the mark."""
        self._merged = None
        self._staged = mark.staged
        self._layers = list(mark.deletes)
        left = mark.rows
        kept: list[SliceRows] = []
        for piece in self._pieces:
            if left <= 0:
                break
            if isinstance(piece, UnencodedRows):
                kept.append(piece.only([at < left for at in range(piece.num_rows)]))
            else:
                kept.append(piece.slice(0, left))
            left -= piece.num_rows
        assert left <= 0, "O1: a mark names rows that are still there"
        self._pieces = kept

    def spilled(self, files: Sequence[DataFile]) -> None:
        """All inline rows are in these files now, in order (O1)."""
        rows = sum(piece.num_rows for piece in self._pieces)
        assert sum(file.rows for file in files) == rows, "O1: every row was spilled"
        mark = self.mark().spilled(files, rows)
        self._merged = None
        self._pieces = []
        self._staged = mark.staged
        self._layers = list(mark.deletes)


def _weight(deletes: Deletes) -> int:
    # A source costs as much as some rows: there may be thousands with one row each.
    return sum(map(len, deletes.values())) + len(deletes)


def _renamed(deletes: Deletes, files: Sequence[DataFile]) -> Deletes:
    own = deletes.get(OWN)
    if own is None:
        return deletes
    others = {source: rows for source, rows in deletes.items() if source != OWN}
    return merge_deletes(others, _named(own, files))


def _named(own: BitMap64, files: Iterable[DataFile]) -> Deletes:
    """Own rows by the files that hold them now, one after the other."""
    named: dict[Source, BitMap64] = {}
    first = 0
    for file in files:
        here = own & BitMap64(range(first, first + file.rows))
        if here:
            named[file.name] = here.shift(-first)
        first += file.rows
    return named
