"""Cache decoded row groups of Parquet files, to read single rows.

INVARIANTS
  G1  memory is bounded by CACHED_BYTES_MAX, FILES_MAX and the row group that is being read.
  G2  if `is_warm` is true, `read` opens no file.
"""

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from compute.access.warm_columns import WarmColumn, warm_columns
from storage.batch import DataFile
from storage.row_versions import table_columns
from storage.types import ShardId, Source

_File: TypeAlias = tuple[ShardId, Source]

CACHED_BYTES_MAX: Final = 128 << 20
"""Bytes of cached row groups. Larger: point reads and writes of larger tables without decoding."""

FILES_MAX: Final = 10_000
"""Files for which the first rows of their row groups are remembered."""


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group, as a table of one chunk a column and as columns by name."""

    rows: pa.Table
    columns: Mapping[str, WarmColumn]


class RowGroupCache:
    """Reads rows of local files. Thread-safe."""

    def __init__(self, path: Callable[[ShardId, DataFile], Path]) -> None:
        self._path = path
        self._groups: OrderedDict[tuple[_File, int], _Group] = OrderedDict()
        self._begins: OrderedDict[_File, list[int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def is_warm(self, shard: ShardId, file: DataFile, rows: Sequence[int]) -> bool:
        """Whether these rows are in memory (G2)."""
        place = shard, file.name
        with self._lock:
            begins = self._begins.get(place)
            return begins is not None and all(
                (place, bisect_right(begins, row) - 1) in self._groups for row in rows
            )

    def warm_row(
        self, shard: ShardId, file: DataFile, row: int
    ) -> tuple[Mapping[str, WarmColumn], int] | None:
        """The columns of a row group in memory, by name, and where the row is in them; None if it
        is not there.
        """
        place = shard, file.name
        with self._lock:
            begins = self._begins.get(place)
            if begins is None:
                return None
            group = bisect_right(begins, row) - 1
            known = self._groups.get((place, group))
            if known is None:
                return None
            self._groups.move_to_end((place, group))
            return known.columns, row - begins[group]

    def read(self, shard: ShardId, file: DataFile, rows: Sequence[int]) -> pa.Table:
        """These rows of a file, all columns of the table; the indexes ascend. Blocks, unless they
        are warm.
        """
        begins = self._first_rows(shard, file)
        wanted: dict[int, list[int]] = {}
        for row in rows:
            group = bisect_right(begins, row) - 1
            wanted.setdefault(group, []).append(row - begins[group])
        parts = [
            self._group(shard, file, group).take(pa.array(here, pa.int64()))
            for group, here in wanted.items()
        ]
        if len(parts) == 1:
            return parts[0]
        path = self._path(shard, file)
        return pa.concat_tables(parts) if parts else pq.read_schema(path).empty_table()

    def _first_rows(self, shard: ShardId, file: DataFile) -> list[int]:
        place = shard, file.name
        with self._lock:
            known = self._begins.get(place)
        if known is not None:
            return known
        metadata = pq.read_metadata(self._path(shard, file))
        begins, first = [0], 0
        for group in range(metadata.num_row_groups - 1):
            first += metadata.row_group(group).num_rows
            begins.append(first)
        with self._lock:
            self._begins[place] = begins
            if len(self._begins) > FILES_MAX:
                self._begins.popitem(last=False)
        return begins

    def _group(self, shard: ShardId, file: DataFile, group: int) -> pa.Table:
        place = (shard, file.name), group
        with self._lock:
            known = self._groups.get(place)
            if known is not None:
                self._groups.move_to_end(place)
                return known.rows
        with pq.ParquetFile(self._path(shard, file)) as parquet:
            # One chunk a column: taking a row from many of them would look for the right one.
            columns = table_columns(parquet.schema_arrow.names)
            read = parquet.read_row_group(group, columns, use_threads=False)
            rows = read.combine_chunks()
        with self._lock:
            if place not in self._groups and rows.nbytes <= CACHED_BYTES_MAX // 4:
                self._groups[place] = _Group(rows, warm_columns(rows))
                self._bytes += rows.nbytes
                while self._bytes > CACHED_BYTES_MAX:
                    self._bytes -= self._groups.popitem(last=False)[1].rows.nbytes
        return rows
