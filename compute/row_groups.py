"""Single rows of data files, by way of row groups that are kept while there is room.

INVARIANTS
  G1  memory is bounded by CACHED_BYTES_MAX and the row group that is being read.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from storage.batch import DataFile
from storage.types import ShardId

CACHED_BYTES_MAX: Final = 128 << 20
"""Row groups kept. Larger: point reads and writes of larger tables without decoding anew."""


class RowGroups:
    """A `ReadRows` over local files. Thread-safe."""

    def __init__(self, path: Callable[[ShardId, DataFile], Path]) -> None:
        self._path = path
        self._groups: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, shard: ShardId, file: DataFile, rows: Sequence[int]) -> pa.Table:
        """These rows of a file, all columns; the indexes ascend. Blocks."""
        path = self._path(shard, file)
        parts: list[pa.Table] = []
        with pq.ParquetFile(path) as parquet:
            first = 0
            for group in range(parquet.metadata.num_row_groups):
                end = first + parquet.metadata.row_group(group).num_rows
                here = [row - first for row in rows if first <= row < end]
                if here:
                    part = self._group(str(path), group, parquet)
                    parts.append(part.take(pa.array(here, pa.int64())))
                first = end
            return pa.concat_tables(parts) if parts else parquet.schema_arrow.empty_table()

    def _group(self, path: str, group: int, parquet: pq.ParquetFile) -> pa.Table:
        place = path, group
        with self._lock:
            known = self._groups.get(place)
            if known is not None:
                self._groups.move_to_end(place)
                return known
        # One chunk a column: taking a row from many of them would look for the right one.
        rows = parquet.read_row_group(group, use_threads=False).combine_chunks()
        with self._lock:
            if place not in self._groups and rows.nbytes <= CACHED_BYTES_MAX // 4:
                self._groups[place] = rows
                self._bytes += rows.nbytes
                while self._bytes > CACHED_BYTES_MAX:
                    self._bytes -= self._groups.popitem(last=False)[1].nbytes
        return rows
