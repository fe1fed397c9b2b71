"""Apply the actions of a log entry to a version, to get the next version.

    Version n-1  ──  actions of n  ──▶  Version n        the same code for a flush and for recovery

INVARIANTS
  R1  the version that a flush returns equals the one that a restart reads from the log.
  R2  only Meridian's own log entries are replayed; any other is a foreign writer's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyroaring import BitMap64

from storage.batch import DataFile, Deletes
from storage.delta.actions import Action, AddFile, CommitInfo, RemoveFile, Txn
from storage.delta.history import (
    MOVED_TAG,
    ROW_IDS_TAG,
    RUNS_TAG,
    STAGED_TAG,
    decode_deletes,
    decode_moved,
    decode_row_ids,
    decode_runs,
)
from storage.delta.statistics import row_count, tightened
from storage.delta.table import (
    declared_metadata,
    has_vectors,
    metadata_definition,
    reported_behind,
)
from storage.errors import Corrupt, ForeignWriter
from storage.live_files import FileMap, LiveFile, Moved
from storage.row_versions import RowIds, row_count_id
from storage.shard import Version
from storage.types import ShardId, Source, Timestamp

_NO_FILES: Final = FileMap()


def next_version(
    shard: ShardId, previous: Version | None, number: int, actions: Sequence[Action]
) -> Version:
    """The version that `actions` make of `previous` (R1). Raises ForeignWriter, Corrupt."""
    info = meridian_commit_info(shard, actions, number)
    assert info.meridian is not None, "R2: an own commit has its history"
    before = previous.files if previous is not None else _NO_FILES
    deletes = decode_deletes(info.meridian.deletes)
    gone = _union(deletes)
    adds = {Source(action.path): action for action in actions if isinstance(action, AddFile)}
    removed = {Source(action.path) for action in actions if isinstance(action, RemoveFile)}
    try:
        puts = [_live(add, before, gone) for add in adds.values()]
        files = before.changed(puts, removed - adds.keys()) if puts or removed else before
    except AssertionError as error:
        raise Corrupt(f"version {number}: {error}") from None
    came = [name for name in adds if name not in before]
    rewritten = tuple(name for name in came if files[name].moved)
    added = tuple(name for name in came if not files[name].moved)
    cut = Timestamp(info.meridian.cut)
    told = "" if previous is None else previous.schema_text
    vectors = previous is not None and previous.has_vectors
    behind = None if previous is None else previous.behind_since
    metadata = declared_metadata(actions)
    if metadata is not None:
        told, vectors = metadata_definition(metadata), has_vectors(metadata)
        behind = reported_behind(metadata)
    next_id = _row_count(shard, actions)
    if next_id is None and previous is not None:
        next_id = previous.next_id
    return Version(
        number,
        cut,
        files,
        added,
        deletes,
        rewritten=rewritten,
        schema_text=told,
        next_id=next_id,
        has_vectors=vectors,
        behind_since=behind,
    )


def _row_count(shard: ShardId, actions: Sequence[Action]) -> int | None:
    """How many rows the shard has ever had, if the version says so (W1 of `row_versions.py`)."""
    name = row_count_id(shard)
    counts = [a.version for a in actions if isinstance(a, Txn) and a.app_id == name]
    return counts[-1] if counts else None


def meridian_commit_info(shard: ShardId, actions: Sequence[Action], number: int) -> CommitInfo:
    """The commitInfo of a version that Meridian wrote for this shard (R2). Raises ForeignWriter."""
    info = actions[0]
    if not isinstance(info, CommitInfo) or info.meridian is None:
        raise ForeignWriter(f"version {number} of {shard} was written by somebody else")
    rows = row_count_id(shard)
    txns = [action for action in actions if isinstance(action, Txn) and action.app_id != rows]
    if [(txn.app_id, txn.version) for txn in txns] != [(shard, info.meridian.cut)]:
        raise ForeignWriter(f"version {number} of {shard} has another transaction marker")
    return info


def first_live(add: AddFile, deleted: BitMap64) -> LiveFile:
    """The file of an `add` that has its runs (H1), with its deleted rows. Raises Corrupt."""
    if RUNS_TAG not in add.tags:
        raise Corrupt(f"{add.path} has no runs")
    file = DataFile(Source(add.path), row_count(add.stats), add.size, tightened(add.stats))
    runs = decode_runs(add.tags[RUNS_TAG])
    moved = decode_moved(add.tags[MOVED_TAG]) if MOVED_TAG in add.tags else ()
    return LiveFile(file, deleted, runs, STAGED_TAG in add.tags, add.vector, moved, _row_ids(add))


def _row_ids(add: AddFile) -> RowIds | None:
    return decode_row_ids(add.tags[ROW_IDS_TAG]) if ROW_IDS_TAG in add.tags else None


def moved_deleted(
    moved: Iterable[Moved], before: FileMap, gone: Mapping[Source, BitMap64]
) -> BitMap64:
    """Rows of a rewritten file that are deleted by now: those of a file that left are all."""
    deleted: list[BitMap64] = [BitMap64()]
    for part in moved:
        live = before.get(part.source)
        rows = BitMap64(range(part.rows)) if live is None else live.deleted
        if part.source in gone:
            rows = rows | gone[part.source]
        deleted.append(part.place(rows))
    return BitMap64.union(*deleted)


def _live(add: AddFile, files: FileMap, gone: Mapping[Source, BitMap64]) -> LiveFile:
    name = Source(add.path)
    before = files.get(name)
    if before is not None:
        live = _with_deleted(before, add, gone.get(name, BitMap64()))
    else:
        live = first_live(add, gone.get(name, BitMap64()))
        if live.moved:
            live = replace(live, deleted=moved_deleted(live.moved, files, gone))
    cardinality = 0 if add.vector is None else add.vector.cardinality
    if len(live.deleted) != cardinality:
        raise Corrupt(f"{add.path}: the deletion vector and the deletes by time differ")
    return live


def _with_deleted(before: LiveFile, add: AddFile, gone: BitMap64) -> LiveFile:
    # The statistics are those of the file itself: only the `add` says that they are not tight.
    if (tightened(add.stats), add.size) != (before.file.stats_json, before.file.size_bytes):
        raise Corrupt(f"{add.path}: the file changed under its name")
    # The first version that has ids tells those of the files of before (W5).
    ids = _row_ids(add) or before.row_ids
    return replace(before, deleted=before.deleted | gone, vector=add.vector, row_ids=ids)


def _union(deletes: Iterable[tuple[Timestamp, Deletes]]) -> dict[Source, BitMap64]:
    bitmaps: dict[Source, list[BitMap64]] = {}
    for _, by_source in deletes:
        for source, rows in by_source.items():
            bitmaps.setdefault(source, []).append(rows)
    return {source: BitMap64.union(*rows) for source, rows in bitmaps.items()}
