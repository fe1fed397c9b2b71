"""Meridian's own notes in the log: commit times of a file's rows, and deletes by time.

Both are needed to answer AS OF between two cuts, and to find `@ts` rows that have been flushed
(V2). They are packed (deltas, deflate, base 64): a file may hold a hundred thousand commits.

INVARIANTS
  H1  the `add` that first names a file has its runs; later ones (with a new deletion vector) leave
      them out, and a replay carries them on. Checkpoints have them always. The same holds for
      what a compaction notes, which rows of which files have moved here, and for the ids of rows.
"""

import base64
import struct
import zlib
from collections.abc import Mapping
from typing import Final

import numpy as np
from pyroaring import BitMap64

from storage.batch import Deletes
from storage.delta.deletion_vectors import encode_bitmap
from storage.errors import Corrupt
from storage.live_files import Moved, Runs, moved_rows
from storage.row_versions import IN_FILE, RowIds
from storage.types import Source, Timestamp

RUNS_TAG: Final = "meridian.runs"
STAGED_TAG: Final = "meridian.staged"
MOVED_TAG: Final = "meridian.moved"
ROW_IDS_TAG: Final = "meridian.row_ids"

_ENTRY: Final = struct.Struct("<qI")
_MOVED: Final = struct.Struct("<HqI")


def encode_runs(runs: Runs) -> str:
    """Runs as a tag: differences of times, then of first rows."""
    times = np.diff(np.asarray(runs.times, "<i8"), prepend=np.int64(0))
    rows = np.diff(np.asarray(runs.first_rows, "<i8"), prepend=np.int64(0))
    return _pack(np.concatenate([times, rows]).astype("<i8").tobytes())


def decode_runs(text: str) -> Runs:
    """Raises Corrupt."""
    data = _unpack(text)
    if not data or len(data) % 16:
        raise Corrupt("runs of a file: odd length")
    times, rows = np.frombuffer(data, "<i8").reshape(2, -1)
    return Runs(np.cumsum(times).tolist(), np.cumsum(rows).tolist())


def encode_deletes(deletes: tuple[tuple[Timestamp, Deletes], ...]) -> dict[str, str]:
    """For each file: time and bitmap of every delete, in the order of time."""
    entries: dict[str, list[bytes]] = {}
    for ts, by_source in deletes:
        for source, rows in by_source.items():
            bitmap = encode_bitmap(rows)
            entries.setdefault(source, []).append(_ENTRY.pack(ts, len(bitmap)) + bitmap)
    return {source: _pack(b"".join(parts)) for source, parts in entries.items()}


def decode_deletes(encoded: Mapping[str, str]) -> tuple[tuple[Timestamp, Deletes], ...]:
    """Raises Corrupt."""
    by_time: dict[Timestamp, dict[Source, BitMap64]] = {}
    for source, text in encoded.items():
        data = _unpack(text)
        offset = 0
        while offset < len(data):
            ts, size = _ENTRY.unpack_from(data, offset)
            offset += _ENTRY.size
            rows = BitMap64.deserialize(data[offset : offset + size])
            by_time.setdefault(Timestamp(ts), {})[Source(source)] = rows
            offset += size
    return tuple(sorted(by_time.items(), key=lambda entry: entry[0]))


def encode_moved(moved: tuple[Moved, ...]) -> str:
    """Whose rows a compaction has brought into a file, as a tag."""
    parts: list[bytes] = []
    for part in moved:
        name, dropped = part.source.encode(), encode_bitmap(part.dropped)
        parts.append(_MOVED.pack(len(name), part.rows, len(dropped)) + name + dropped)
    return _pack(b"".join(parts))


def decode_moved(text: str) -> tuple[Moved, ...]:
    """Raises Corrupt."""
    data = _unpack(text)
    files: list[tuple[Source, int, BitMap64]] = []
    offset = 0
    try:
        while offset < len(data):
            length, rows, size = _MOVED.unpack_from(data, offset)
            name_end = offset + _MOVED.size + length
            name = Source(data[offset + _MOVED.size : name_end].decode())
            offset = name_end + size
            files.append((name, rows, BitMap64.deserialize(data[name_end:offset])))
    except (struct.error, ValueError) as error:
        raise Corrupt(f"moved rows in the log: {error}") from None
    return moved_rows(files)


def encode_row_ids(ids: RowIds) -> str:
    """Ids of a file's rows as a tag: differences of first rows, then of first ids."""
    if ids.in_file:
        return ""
    parts = [np.diff(np.asarray(part, "<i8"), prepend=np.int64(0)) for part in _parts(ids)]
    return _pack(np.concatenate(parts).astype("<i8").tobytes())


def _parts(ids: RowIds) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return ids.first_rows, ids.first_ids


def decode_row_ids(text: str) -> RowIds:
    """Raises Corrupt."""
    if not text:
        return IN_FILE
    data = _unpack(text)
    if not data or len(data) % 16:
        raise Corrupt("ids of a file's rows: odd length")
    rows, ids = np.cumsum(np.frombuffer(data, "<i8").reshape(2, -1), axis=1).tolist()
    return RowIds(tuple(rows), tuple(ids))


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _unpack(text: str) -> bytes:
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except (ValueError, zlib.error) as error:
        raise Corrupt(f"history in the log: {error}") from None
