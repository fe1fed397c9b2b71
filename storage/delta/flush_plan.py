"""Plan one flush: data file, deletion vectors, log entry, and the version they make.

    tail up to cut ─┬─ inline rows ──▶ part-<ts>-<digest>.parquet   in commit order, dead ones too
                    ├─ staged files ─▶ add                          already durable
                    └─ deletes ──────▶ deletion vectors             remove the add, add with vector
    rewritten files ────────────────▶ add, remove their sources    a compaction, already durable

INVARIANTS
  G1  the plan is a function of state and cut: a second attempt makes the same names and bytes.
      Files are named after their rows and not after the cut, so that a later cut finds them too.
  G2  a file that is dead as a whole leaves the table, but not in the version that brings it:
      readers between the cuts still need its rows.
  G3  a rewritten file comes with the deletes of its sources up to the cut; those of the cut itself
      are noted by the sources' names, which readers between the cuts know.
  G4  the version with a table's first deletion vector tells the log of them, and none before it.
      A table that has told keeps it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import Deletes
from storage.delta.actions import Action, AddFile, CommitInfo, IntervalHistory, RemoveFile, Txn
from storage.delta.change_feed import FeedRows, feed_rows
from storage.delta.deletion_vectors import DeletionVector, encode_vectors
from storage.delta.files import encode_file
from storage.delta.history import (
    MOVED_TAG,
    ROW_IDS_TAG,
    RUNS_TAG,
    STAGED_TAG,
    encode_deletes,
    encode_moved,
    encode_row_ids,
    encode_runs,
)
from storage.delta.layout import commit_path, data_path
from storage.delta.log import ENGINE, encode_commit
from storage.delta.schema import has_feed, reported_definition
from storage.delta.snapshot import moved_deleted, next_version
from storage.delta.statistics import loosened
from storage.delta.table import table_actions
from storage.live_files import FileMap, LiveFile, Runs
from storage.row_versions import RowIds, row_count_id
from storage.shard import Committed, ShardState, Version, staged_file
from storage.types import Source, Timestamp, inline_source
from storage.unencoded_rows import SliceRows, table_of_parts
from storage.view_marks import marked_at


@dataclass(frozen=True, slots=True)
class FlushPlan:
    """`objects` must be durable before the log entry is."""

    objects: Mapping[str, bytes]
    log_path: str
    actions: tuple[Action, ...]
    log_entry: bytes
    """The actions as they are written, if there is nothing to tell in a feed."""
    version: Version
    schema: pa.Schema
    feed: tuple[FeedRows, ...] | None = None
    """What the change data feed must tell, with actions that come after those; None: nothing."""


def plan_flush(
    state: ShardState,
    cut: Timestamp,
    keep: frozenset[Source] = frozenset(),
    rewritten: tuple[LiveFile, ...] = (),
) -> FlushPlan:
    """Everything that a flush of `state` at `cut` writes (G1); those in `keep` stay, even dead.

    `rewritten`: files of a compaction, which take the place of those whose rows they have.
    """
    tail = tuple(commit for commit in state.tail if commit.ts <= cut)
    previous = state.versions[-1] if state.versions else None
    before = previous.files if previous is not None else FileMap()
    objects: dict[str, bytes] = {}
    new = {live.file.name: live for live in _new_files(state, tail, objects)}
    deletes = _deletes_by_time(tail, new, before)
    dead = _union(deletes)
    left = [part.source for live in rewritten for part in live.moved]
    changed = {
        name: live
        for name in dead.keys() - new.keys() - {*left}
        for live in [before[name]]
        if name in keep or len(live.deleted | dead[name]) < live.file.rows
    }
    gone = [before[name] for name in sorted(dead.keys() - new.keys() - changed.keys() - {*left})]
    moving = [before[name] for name in left if name in before]
    gone += [live for live in _dead_on_arrival(previous) if live.file.name not in {*keep, *left}]
    bitmaps = {name: live.deleted | dead.get(name, BitMap64()) for name, live in changed.items()}
    bitmaps |= {name: dead[name] for name in new if name in dead}
    for live in rewritten:
        if deleted := moved_deleted(live.moved, before, dead):
            bitmaps[live.file.name] = deleted
    number = 0 if previous is None else previous.number + 1
    vectors, vector_file = encode_vectors(dict(sorted(bitmaps.items())), number)
    if vector_file is not None:
        objects[data_path(state.shard, vector_file.name)] = vector_file.content
    ms = cut // state.ticks_per_ms
    kept = [changed[name] for name in sorted(changed)]
    untold = previous is not None and previous.next_id is None
    touched = {*changed, *left, *[live.file.name for live in gone]}
    again = _left_alone(before, touched) if untold else []
    # Where rows were deleted in the same version, their file is more than rewritten.
    data_change = not dead.keys().isdisjoint(left)
    actions: list[Action] = [
        _commit_info(previous, cut, ms, deletes),
        *_table(state, previous, cut, vectors=bool(vectors)),
        Txn(state.shard, cut, ms),
        *_row_count(state, previous, cut, ms),
        *(_remove(live, ms) for live in (*gone, *kept)),
        *(replace(_remove(live, ms), data_change=data_change) for live in moving),
        *(_add(live, vectors.get(live.file.name), ms, first=untold) for live in kept),
        *(_told_again(live, ms) for live in again),
        *(_add(live, vectors.get(live.file.name), ms, first=True) for live in new.values()),
        *(
            replace(
                _add(live, vectors.get(live.file.name), ms, first=True), data_change=data_change
            )
            for live in rewritten
        ),
    ]
    version = next_version(state.shard, previous, number, actions)
    assert version.has_vectors or not vectors, "G4: the feature comes before its first use"
    told = has_feed(state.schema_at(cut)) and bool(dead or gone)
    feed = feed_rows(new, before, dead) if told else None
    return _plan(state, objects, actions, version, feed)


def _plan(
    state: ShardState,
    objects: Mapping[str, bytes],
    actions: list[Action],
    version: Version,
    feed: tuple[FeedRows, ...] | None,
) -> FlushPlan:
    path = commit_path(state.shard, version.number)
    entry = encode_commit(actions) if feed is None else b""
    schema = state.schema_at(version.cut)
    return FlushPlan(objects, path, tuple(actions), entry, version, schema, feed)


def _new_files(
    state: ShardState, tail: tuple[Committed, ...], objects: dict[str, bytes]
) -> Iterable[LiveFile]:
    """The file of the inline rows, whose content goes to `objects`, and the staged ones."""
    with_rows = [(commit, commit.inline.stored) for commit in tail if commit.inline is not None]
    inline = [(commit.ts, rows) for commit, rows in with_rows]
    if inline:
        rows = table_of_parts([rows for _, rows in inline]).combine_chunks()
        encoded = encode_file(rows, f"part-{inline[-1][0]}")
        objects[data_path(state.shard, encoded.file.name)] = encoded.content
        ids = RowIds.of_commits((rows.num_rows, commit.first_id) for commit, rows in with_rows)
        yield LiveFile(encoded.file, BitMap64(), _runs(inline), row_ids=ids)
    for commit in tail:
        for file in commit.batch.staged:
            yield staged_file(file, commit.ts)


def _runs(inline: list[tuple[Timestamp, SliceRows]]) -> Runs:
    first_rows: list[int] = []
    row = 0
    for _, rows in inline:
        first_rows.append(row)
        row += rows.num_rows
    return Runs([ts for ts, _ in inline], first_rows)


def _deletes_by_time(
    tail: tuple[Committed, ...], new: Mapping[Source, LiveFile], before: FileMap
) -> tuple[tuple[Timestamp, Deletes], ...]:
    """The deletes of the tail, with rows of the tail named by the file that they have come to."""
    moved = {
        inline_source(run.ts): (name, run.first_row)
        for name, live in new.items()
        if not live.staged
        for run in live.runs
    }
    by_time: list[tuple[Timestamp, Deletes]] = []
    for commit in tail:
        parts: dict[Source, list[BitMap64]] = {}
        for source, rows in commit.batch.deletes.items():
            name, first_row = moved.get(source, (source, 0))
            # Rows that have gone with their file cannot be deleted again.
            if rows and (name in new or name in before):
                parts.setdefault(name, []).append(rows.shift(first_row) if first_row else rows)
        if parts:
            by_time.append((commit.ts, {n: BitMap64.union(*rows) for n, rows in parts.items()}))
    return tuple(by_time)


def _union(deletes: tuple[tuple[Timestamp, Deletes], ...]) -> dict[Source, BitMap64]:
    bitmaps: dict[Source, list[BitMap64]] = {}
    for _, by_source in deletes:
        for source, rows in by_source.items():
            bitmaps.setdefault(source, []).append(rows)
    return {source: BitMap64.union(*rows) for source, rows in bitmaps.items()}


def _dead_on_arrival(previous: Version | None) -> list[LiveFile]:
    """Files that were dead in the version that brought them; only now they may leave (G2).

    All files are looked at: a version that was pruned or read from a checkpoint does not know any
    more which ones it brought.
    """
    return [] if previous is None else [live for live in previous.files.live_files() if live.dead]


def _table(
    state: ShardState, previous: Version | None, cut: Timestamp, *, vectors: bool
) -> tuple[Action, ...]:
    """Protocol and metaData, if the log has not told them yet as they are at the cut (G4)."""
    schema = state.schema_at(cut)
    had_vectors = previous is not None and previous.has_vectors
    schema_told = previous is not None and (
        not state.definitions or previous.schema_text == reported_definition(schema)
    )
    behind = marked_at(state.marks, cut)
    behind_told = previous is not None and (not state.marks or previous.behind_since == behind)
    if schema_told and behind_told and had_vectors >= vectors:
        return ()
    created_ms = state.created // state.ticks_per_ms
    vectors = vectors or had_vectors
    retention_us = state.retention_us
    return table_actions(
        state.shard, schema, created_ms, retention_us, vectors=vectors, behind=behind
    )


def _row_count(
    state: ShardState, previous: Version | None, cut: Timestamp, ms: int
) -> tuple[Txn, ...]:
    """How many rows there ever were, if the log does not say it yet (W1 of `row_versions.py`)."""
    next_id = state.next_id_at(cut)
    if previous is not None and previous.next_id == next_id:
        return ()
    return (Txn(row_count_id(state.shard), next_id, ms),)


def _left_alone(before: FileMap, touched: set[Source]) -> list[LiveFile]:
    return [live for live in before.live_files() if live.file.name not in touched]


def _told_again(live: LiveFile, ms: int) -> AddFile:
    """A file of a log without ids: from now on the log says which its rows have (W5)."""
    return replace(_add(live, live.vector, ms, first=True), data_change=False)


def _commit_info(
    previous: Version | None,
    cut: Timestamp,
    ms: int,
    deletes: tuple[tuple[Timestamp, Deletes], ...],
) -> CommitInfo:
    operation = "CREATE TABLE" if previous is None else "WRITE"
    history = IntervalHistory(cut, encode_deletes(deletes))
    return CommitInfo(ms, operation, ENGINE, history)


def _add(live: LiveFile, vector: DeletionVector | None, ms: int, *, first: bool) -> AddFile:
    tags: dict[str, str] = {}
    if first:
        tags[RUNS_TAG] = encode_runs(live.runs)
        if live.staged:
            tags[STAGED_TAG] = "true"
        if live.moved:
            tags[MOVED_TAG] = encode_moved(live.moved)
        if live.row_ids is not None:
            tags[ROW_IDS_TAG] = encode_row_ids(live.row_ids)
    stats = live.file.stats_json
    return AddFile(
        path=live.file.name,
        size=live.file.size_bytes,
        modification_ms=ms,
        stats=stats if vector is None else loosened(stats),
        tags=tags,
        vector=vector,
    )


def _remove(live: LiveFile, ms: int) -> RemoveFile:
    return RemoveFile(live.file.name, live.file.size_bytes, ms, live.vector)
