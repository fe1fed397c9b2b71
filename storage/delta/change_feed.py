"""The change data feed: rows that each version brought and took away, for readers of Delta.

    files of the version ──── rows that came ─┐
    files of the one before ─ rows that went ─┴─▶ _change_data/cdc-<version>-<digest>.parquet ─▶ cdc

Readers take the `cdc` files of a version if it has any, and its whole `add` and `remove` otherwise.

INVARIANTS
  D1  what is told of a version is its difference to the one before, row by row: rows that came and
      went between two cuts, and rows that a compaction moved, are not told.
  D2  a version has no `cdc` file only if it takes no row away: also rows that are dead in a file
      which has just been added would count as inserted.
  D3  `cdc` files change nothing for anybody but readers of the feed: no version knows them, and no
      checkpoint. They live as long as the log entry that names them.

An UPDATE is a row that went and another that came: `delete` and `insert`, as in `changes.py`.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from storage.delta.actions import ChangeDataFile
from storage.delta.files import decode_parquet, encode_parquet
from storage.live_files import FileMap, LiveFile
from storage.row_schema import concat_conforming
from storage.types import Source

CHANGE_TYPE: Final = "_change_type"

FEED_FILE_ROWS: Final = 500_000
"""Rows after which a `cdc` file is closed. Larger: more memory. Smaller: more files."""

_NAME: Final = re.compile(r"_change_data/cdc-(\d{20})-[0-9a-f]{16}\.parquet")


@dataclass(frozen=True, slots=True)
class FeedRows:
    """Rows of a data file that a version brought or took away."""

    source: Source
    rows: BitMap64
    change_type: Literal["insert", "delete"]


def feed_rows(
    new: Mapping[Source, LiveFile], before: FileMap, dead: Mapping[Source, BitMap64]
) -> tuple[FeedRows, ...]:
    """The difference of a version to the one before (D1). `dead`: what it deletes, by names that
    either of them knows.
    """
    parts: list[FeedRows] = []
    for name in sorted(dead):
        known = before.get(name)
        if known is not None and (went := dead[name] - known.deleted):
            parts.append(FeedRows(name, went, "delete"))
    for name, live in new.items():
        if came := BitMap64(range(live.file.rows)) - dead.get(name, BitMap64()):
            parts.append(FeedRows(name, came, "insert"))
    return tuple(parts)


def change_file_version(name: str) -> int | None:
    """The version that a `cdc` file was made for; None if it is another file. `name`: relative to
    the table.
    """
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


@dataclass(slots=True)
class FeedOutput:
    """The `cdc` file that is being made."""

    number: int
    schema: pa.Schema
    rows: int = 0
    _parts: list[pa.Table] = field(default_factory=list[pa.Table])

    def add(self, part: FeedRows, content: bytes) -> None:
        """Take rows out of a data file. Raises Corrupt."""
        there = decode_parquet(content, self.schema)
        count = len(part.rows)
        if count < there.num_rows:
            there = there.take(np.fromiter(part.rows, np.int64, count))
        self._parts.append(_typed(there, part.change_type))
        self.rows += count

    def finish(self) -> tuple[ChangeDataFile, bytes]:
        """The file with all rows since the one before, named after its content."""
        parts = self._parts or [_typed(self.schema.empty_table(), "insert")]
        content = encode_parquet(concat_conforming(parts))
        self._parts, self.rows = [], 0
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        path = f"_change_data/cdc-{self.number:020}-{digest}.parquet"
        return ChangeDataFile(path, len(content)), content


def _typed(rows: pa.Table, change_type: str) -> pa.Table:
    column = pa.array([change_type] * rows.num_rows, pa.string())
    return rows.append_column(CHANGE_TYPE, column)
