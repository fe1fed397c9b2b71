"""Compaction: rewrite small files, and files with many deleted rows, into few.

    files of a version ── choose_files ──▶ rewrite_files ──▶ new files, durable, in no version yet
                                                                  └─ come with the next flush

INVARIANTS
  M1  a rewritten file has the rows of its sources that were live when it was written, in order, and
      says which (F4); later deletes are recorded under the sources' names until the flush (G3).
  M2  nothing is taken away here: sources stay for those who read older versions; vacuum decides.
  M3  memory holds one source (they are limited in size), and the output so far; a rewritten file
      never splits a source.
  M4  what a rewritten file is called depends on its rows and on the version it was made from: a
      name never stands for other rows.

Not here: which files (`compaction_plan.py`), when, and of which shard (the coordinator); how it
lands (`flush_plan.py`).
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from io import BytesIO
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from storage.delta.compaction_plan import CompactionLimits
from storage.delta.files import (
    COMPRESSION,
    ROW_GROUP_ROWS,
    data_file_from_parquet,
    dictionary_leaves,
    footer_statistics,
    holds_floats,
)
from storage.delta.layout import data_path
from storage.delta.statistics import column_bounds, null_counts
from storage.errors import AlreadyExists, Corrupt
from storage.live_files import LiveFile, Runs, moved_rows
from storage.object_store import ObjectStore
from storage.row_schema import conform_to_schema
from storage.row_versions import (
    IN_FILE,
    VERSION_FIELDS,
    version_columns,
    with_version_columns,
)
from storage.shard import ShardState
from storage.types import Source, Timestamp

T = TypeVar("T")


async def rewrite_files(
    store: ObjectStore,
    state: ShardState,
    sources: Sequence[LiveFile],
    limits: CompactionLimits,
    *,
    run_blocking: Callable[[Callable[[], None]], Awaitable[None]] = asyncio.to_thread,
) -> tuple[LiveFile, ...]:
    """Write the live rows of files of the newest version into new files, durably (M1, M3).

    Raises Corrupt, Determinate, Indeterminate; what was written then is an orphan.
    """
    cut = state.cut
    assert cut is not None, "M1: files are in a version"
    done: list[LiveFile] = []
    without = _perhaps_nan(state.schema, sources)
    output = _Output(state.schema, without)
    for number, live in enumerate(sources):
        content = await store.read(data_path(state.shard, live.file.name))
        await run_blocking(partial(output.add, live, content))
        if output.size_bytes >= limits.output_bytes or number == len(sources) - 1:
            await run_blocking(output.finish)
            done.append(await _create(store, state, cut, output))
            output = _Output(state.schema, without)
    return tuple(done)


async def _create(
    store: ObjectStore, state: ShardState, cut: Timestamp, output: "_Output"
) -> LiveFile:
    content = output.content
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    name = Source(f"part-c{cut}-{digest}.parquet")
    path = data_path(state.shard, name)
    try:
        await store.create(path, content)
    except AlreadyExists:
        # An earlier attempt from the same version, with the same rows (M4).
        await store.sync([path])
    metadata = pq.read_metadata(pa.BufferReader(content))
    file = data_file_from_parquet(name, metadata, len(content), state.schema)
    moved = moved_rows((live.file.name, live.file.rows, live.deleted) for live in output.sources)
    # Nobody asks when these rows came: who reads before this version reads the sources.
    runs = Runs.single(cut)
    return LiveFile(file, BitMap64(), runs, staged=True, moved=moved, row_ids=IN_FILE)


def _perhaps_nan(schema: pa.Schema, sources: Sequence[LiveFile]) -> frozenset[str]:
    """The columns that may hold a NaN, as far as the log knows (F1 of `files.py`)."""
    return frozenset(
        field.name
        for field in schema
        if holds_floats(field.type)
        if not all(_is_bounded(live, field) for live in sources)
    )


def _is_bounded(live: LiveFile, field: "pa.Field[pa.DataType]") -> bool:
    """Whether a column has bounds, and so no NaN (N1 of `statistics.py`), or no value at all."""
    stats = live.file.stats_json
    if null_counts(stats).get(field.name) == live.file.rows:
        return True
    return None not in column_bounds(stats, field.name, field.type)


class _Output:
    """A rewritten file in the making."""

    def __init__(self, schema: pa.Schema, without: frozenset[str]) -> None:
        # A dead row of a file may be older than a NOT NULL.
        self._schema = pa.schema([field.with_nullable(True) for field in schema])
        self._without = without
        self._sink = BytesIO()
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self.sources: list[LiveFile] = []

    @property
    def size_bytes(self) -> int:
        """What has been written; rows that wait for their row group come on top."""
        return self._sink.tell()

    @property
    def content(self) -> bytes:
        """The whole file, once finished."""
        return self._sink.getvalue()

    def add(self, live: LiveFile, content: bytes) -> None:
        """Append the live rows of a source. Raises Corrupt."""
        try:
            source = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
            if source.metadata.num_rows != live.file.rows:
                raise Corrupt(f"{live.file.name} has {source.metadata.num_rows} rows")
            dead = np.asarray(live.deleted.to_array(), np.uint64)
            first_row = 0
            for batch in source.iter_batches(ROW_GROUP_ROWS):
                stored = pa.Table.from_batches([batch])
                rows = conform_to_schema(stored, self._schema).cast(self._schema)
                assert live.file.origins is not None, "W1: rows of a version have ids"
                versions = version_columns(stored, live.file.origins, first_row)
                rows = with_version_columns(rows, versions)
                self._take(rows, dead, first_row)
                first_row += batch.num_rows
        except (pa.ArrowException, OSError, KeyError) as error:
            raise Corrupt(f"{live.file.name}: {error}") from None
        self.sources.append(live)

    def _take(self, rows: pa.Table, dead: "np.typing.NDArray[np.uint64]", first_row: int) -> None:
        first, end = np.searchsorted(dead, (first_row, first_row + rows.num_rows))
        if first < end:
            mask = np.ones(rows.num_rows, np.bool_)
            mask[dead[first:end].astype(np.int64) - first_row] = False
            rows = rows.filter(pa.array(mask))
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        rows = pa.concat_tables(self._pending).combine_chunks()
        self._pending, self._pending_rows = [], 0
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._sink,
                rows.schema,
                compression=COMPRESSION,
                # Ids are all different, and nearly always ascend by one.
                use_dictionary=dictionary_leaves(self._schema, rows),
                column_encoding=dict.fromkeys(VERSION_FIELDS, "DELTA_BINARY_PACKED"),
                store_schema=False,
                store_decimal_as_integer=True,
                write_page_checksum=True,
                write_statistics=footer_statistics(rows.schema, self._without),
            )
        self._writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)

    def finish(self) -> None:
        """Write what is pending and the footer."""
        if self._pending_rows or self._writer is None:
            self._write_group()
        assert self._writer is not None, "a group was written"
        self._writer.close()
