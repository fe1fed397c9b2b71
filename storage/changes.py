"""The changes of a shard between two timestamps, commit by commit.

    ts ──────┬──── after ─┬────────────┬──── ● ── ● ─ upto ● ──▶
          version 0   version 1   version 2   └── tail ──┘
                    └── runs and deletes ───┘ └ batches ┘
                              ╰──── Change ─ Change ─ Change ──▶

A Change has the rows that came and the rows that went at one commit, as places: rows of a data file
by index, or rows of a commit that is in memory. No row is read here. For a commit of the tail they
are in its batch. For one that has been flushed they are in the runs of the files that its version
added, and in the deletes by time that the version notes.

INVARIANTS
  C1  view(after) without the rows that went and with the rows that came is view(upto), for every
      pair in [since, upper). A row is known by its id (W1 of `row_versions.py`), since a compaction
      gives it another name and no other id.
  C2  each Change is of one commit, with after < ts <= upto; they ascend. A commit that changes
      nothing is left out. Cuts, compactions, pruning and a restart change no answer.
  C3  nothing is netted between commits: a row that came with one and went with a later one is in
      both. Rows that a commit stages and deletes itself are in neither. An UPDATE is a row that
      went and another that came. Rows of equal values are not compared.
  C4  rows are in the fields of one definition: that of `upto`, or a later one that the caller has.
  C5  all places can be read as long as somebody holds `after`: a row that went is in memory or in a
      file, by the name that it had then. Vacuum spares files that left the table after `after`.
  C6  memory: a Change names rows by bitmaps, whatever their number; `split_places` cuts them up.
      Changes are made one at a time. Who keeps the iterator keeps the state that it was made of.
  C7  a row that several commits delete went with the first of them, as in a view.

A compaction's files are `rewritten` and not `added` in their version: nothing came with them. Rows
that are deleted in the same version are named by the files that they were in before.

Not here: reading rows (`compute`); netting of rows with equal values, order within a commit, and
what a client sees of an ALTER (subscriptions). Netting over all of (after, upto] would be cheaper,
and states would be skipped.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, FileSlice, InlineSlice, ShardView
from storage.live_files import FileMap, LiveFile, SlicesDigest, slice_digest
from storage.row_schema import conform_to_schema
from storage.shard import ShardState, Version
from storage.tail import Committed, Tail, commit_ts
from storage.types import FIRST_TIMESTAMP, ShardId, Source, Timestamp, inline_ts, is_file

_NO_FILES: Final = FileMap()

COMPARED_MAX: Final = 4
"""Commits of a source whose deletes are compared with all before one by one; then all that is dead
is put together. Larger: many changes at once cost more. Smaller: few at a time do."""


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Rows of a data file, by index; at least one."""

    file: DataFile
    rows: BitMap64


@dataclass(frozen=True, slots=True)
class InlinePlaces:
    """Rows of one commit in memory, by index; at least one. `table` has all rows of the commit, and
    `first_id` is the id of the first of these.
    """

    source: Source
    table: pa.Table
    rows: BitMap64
    first_id: int


RowPlaces: TypeAlias = FilePlaces | InlinePlaces


@dataclass(frozen=True, slots=True)
class Change:
    """The rows that came and that went at one commit (C2, C3)."""

    ts: Timestamp
    came: tuple[RowPlaces, ...]
    went: tuple[RowPlaces, ...]


def changes_since(state: ShardState) -> Timestamp:
    """The least `after` that changes can be asked for. Who asks holds it readable (C5)."""
    if not state.versions:
        return FIRST_TIMESTAMP
    first = state.versions[0]
    # Read from a checkpoint, even the very first version does not know when its rows came.
    whole = first.begins_table and len(first.added) >= len(first.files)
    return FIRST_TIMESTAMP if whole else first.cut


def changes(
    state: ShardState, after: Timestamp, upto: Timestamp, schema: pa.Schema | None = None
) -> Iterator[Change]:
    """All changes with after < ts <= upto, in order (C1). `schema`: see C4."""
    assert after >= changes_since(state), f"C5: {after} is before since"
    fields = state.schema_at(upto) if schema is None else schema
    return _changes(state, after, upto, fields)


def last_commit(state: ShardState, after: Timestamp, upto: Timestamp) -> Timestamp | None:
    """The last commit with after < ts <= upto, if there is one; perhaps it has changed nothing."""
    until = bisect_right(state.tail, upto, key=commit_ts)
    found = state.tail[until - 1].ts if until else Timestamp(0)
    for version in reversed(state.versions):
        if found > after or version.cut <= after:
            break
        for ts, _ in version.deletes:
            if ts <= upto:
                found = max(found, ts)
        for name in version.added:
            times = version.files[name].runs.times
            known = bisect_right(times, upto)
            if known:
                found = Timestamp(max(found, times[known - 1]))
    return found if found > after else None


def _changes(
    state: ShardState, after: Timestamp, upto: Timestamp, schema: pa.Schema
) -> Iterator[Change]:
    versions = state.versions
    first = bisect_right(versions, after, key=_version_cut)
    # The version that holds `upto`, too; those behind it have later commits only.
    end = min(bisect_left(versions, upto, key=_version_cut) + 1, len(versions))
    for index in range(first, end):
        before = versions[index - 1].files if index else _NO_FILES
        yield from _changes_of_version(before, versions[index], after, upto)
    yield from _changes_of_tail(state, after, upto, schema)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one source tells of a commit: a file of its rows, or its deletes."""

    ts: Timestamp
    came: Mapping[Source, BitMap64]
    gone: Deletes


def _changes_of_version(
    before: FileMap, version: Version, after: Timestamp, upto: Timestamp
) -> Iterator[Change]:
    dead = _DeadRows(before, lambda: version.deletes)
    streams: list[Iterable[_Part]] = [
        _runs_within(version.files[name], after, upto) for name in version.added
    ]
    streams.append(_Part(ts, {}, gone) for ts, gone in version.deletes if after < ts <= upto)

    def place(source: Source, rows: BitMap64) -> RowPlaces:
        live = version.files.get(source) or before.get(source)
        assert live is not None, f"B2: a deleted row exists, but {source} is not in the version"
        return FilePlaces(live.file, rows)

    for ts, parts in groupby(heapq.merge(*streams, key=_part_ts), key=_part_ts):
        came: dict[Source, BitMap64] = {}
        gone: Deletes = {}
        for part in parts:
            came |= part.came
            gone = part.gone or gone
        change = _net_change(ts, came, dead.newly_dead(ts, gone), place)
        if change is not None:
            yield change


def _runs_within(live: LiveFile, after: Timestamp, upto: Timestamp) -> Iterator[_Part]:
    """The rows of a file that came with each commit."""
    if not live.runs.any_within(after, upto):
        return
    times, first_rows = live.runs.times, [*live.runs.first_rows, live.file.rows]
    for run in range(bisect_right(times, after), bisect_right(times, upto)):
        rows = BitMap64(range(first_rows[run], first_rows[run + 1]))
        yield _Part(Timestamp(times[run]), {live.file.name: rows}, {})


def _changes_of_tail(
    state: ShardState, after: Timestamp, upto: Timestamp, schema: pa.Schema
) -> Iterator[Change]:
    tail = state.tail
    first = bisect_right(tail, after, key=commit_ts)
    files = state.versions[-1].files if state.versions else _NO_FILES
    dead = _DeadRows(files, lambda: ((commit.ts, commit.batch.deletes) for commit in tail))

    def place(source: Source, rows: BitMap64) -> RowPlaces:
        if is_file(source):
            live = files.get(source)
            return FilePlaces(live.file if live is not None else _staged_file(tail, source), rows)
        part = tail[bisect_left(tail, inline_ts(source), key=commit_ts)].inline
        assert part is not None, f"B2: a deleted row exists, but {source} has none"
        assert part.source == source, f"B2: a deleted row exists, but {source} is not in the tail"
        assert part.first_id is not None, "W1: a committed row has an id"
        return InlinePlaces(source, conform_to_schema(part.rows, schema), rows, part.first_id)

    for commit in tail[first : bisect_right(tail, upto, key=commit_ts)]:
        gone = dead.newly_dead(commit.ts, commit.batch.deletes)
        change = _net_change(commit.ts, _rows_of_commit(commit), gone, place)
        if change is not None:
            yield change


def _rows_of_commit(commit: Committed) -> dict[Source, BitMap64]:
    came: dict[Source, BitMap64] = {}
    if commit.inline is not None:
        came[commit.inline.source] = BitMap64(range(commit.inline.num_rows))
    for file in commit.batch.staged:
        came[file.name] = BitMap64(range(file.rows))
    return came


def _staged_file(tail: Tail, name: Source) -> DataFile:
    for commit in tail:
        for file in commit.batch.staged:
            if file.name == name:
                return file
    raise AssertionError(f"B2: a deleted row exists, but {name} is in no version and not staged")


class _DeadRows:
    """Which rows are gone, from one commit to the next (C7)."""

    def __init__(
        self, before: FileMap, history: Callable[[], Iterable[tuple[Timestamp, Deletes]]]
    ) -> None:
        self._before = before
        self._history = history
        """All deletes since `before`, in order."""
        self._deletes: dict[Source, list[BitMap64]] | None = None
        """By source, all so far: those before the first commit that was asked for, too."""
        self._asked: dict[Source, int] = {}
        self._dead: dict[Source, BitMap64] = {}

    def newly_dead(self, ts: Timestamp, gone: Deletes) -> dict[Source, BitMap64]:
        """Rows of a commit's deletes that were there until then. Called for all commits that delete
        rows, in order, from some commit on.
        """
        if not gone:
            return {}
        if self._deletes is None:
            self._deletes = self._deletes_until(ts)
        newly: dict[Source, BitMap64] = {}
        for source, rows in gone.items():
            newly[source] = self._without_dead(source, rows, self._deletes)
            self._deletes.setdefault(source, []).append(rows)
        return newly

    def _deletes_until(self, ts: Timestamp) -> dict[Source, list[BitMap64]]:
        earlier: dict[Source, list[BitMap64]] = {}
        for deleted_at, deletes in self._history():
            if deleted_at >= ts:
                break
            for source, rows in deletes.items():
                earlier.setdefault(source, []).append(rows)
        return earlier

    def _without_dead(
        self, source: Source, rows: BitMap64, deletes: Mapping[Source, list[BitMap64]]
    ) -> BitMap64:
        """A subscriber asks for one commit, which deletes few rows of much that is dead: nothing is
        put together for it.
        """
        dead = self._dead.get(source)
        if dead is not None:
            left = rows - dead
            dead |= rows
            return left
        earlier = deletes.get(source, [])
        live = self._before.get(source)
        before = BitMap64() if live is None else live.deleted
        self._asked[source] = asked = self._asked.get(source, 0) + 1
        if asked > COMPARED_MAX:
            self._dead[source] = BitMap64.union(BitMap64(), before, *earlier, rows)
        return BitMap64.difference(rows, before, *earlier)


def _net_change(
    ts: Timestamp,
    came: Mapping[Source, BitMap64],
    gone: Mapping[Source, BitMap64],
    place: Callable[[Source, BitMap64], RowPlaces],
) -> Change | None:
    """Without the rows that came and went at once; None: nothing is left (C2, C3)."""
    arrived = _without(came, gone)
    departed = _without(gone, came)
    if not arrived and not departed:
        return None
    return Change(
        ts,
        tuple(place(source, rows) for source, rows in arrived.items()),
        tuple(place(source, rows) for source, rows in departed.items()),
    )


def _without(
    rows: Mapping[Source, BitMap64], others: Mapping[Source, BitMap64]
) -> dict[Source, BitMap64]:
    left = {
        source: bitmap - others[source] if source in others else bitmap
        for source, bitmap in rows.items()
    }
    return {source: bitmap for source, bitmap in left.items() if bitmap}


def split_places(parts: Iterable[RowPlaces], rows_max: int) -> Iterator[RowPlaces]:
    """The same rows in pieces of at most so many, to be read one after the other (C6)."""
    for part in parts:
        count = len(part.rows)
        for first in range(0, count, rows_max):
            whole = count <= rows_max
            yield part if whole else replace(part, rows=part.rows[first : first + rows_max])


def view_of_places(shard: ShardId, schema: pa.Schema, parts: Iterable[RowPlaces]) -> ShardView:
    """Rows of any number of changes, each once, for an engine that reads all of them at once.

    Which commit a row came with, its system column `xmin` says.
    """
    by_source: dict[Source, RowPlaces] = {}
    for part in parts:
        source = part.file.name if isinstance(part, FilePlaces) else part.source
        known = by_source.get(source)
        by_source[source] = part if known is None else replace(part, rows=known.rows | part.rows)
    files = tuple(_file_slice(part) for part in by_source.values() if isinstance(part, FilePlaces))
    inline = [_inline_slice(part) for part in by_source.values() if isinstance(part, InlinePlaces)]
    return ShardView(
        shard=shard,
        schema=schema,
        files_key=SlicesDigest(sum(slice_digest(part) for part in files)),
        files=files,
        inline=tuple(sorted(inline, key=lambda part: inline_ts(part.source))),
    )


def places_in(view: ShardView, rows: Deletes) -> Iterator[RowPlaces]:
    """Rows that are named as a view does, as places."""
    for slice_ in view.files:
        if slice_.file.name in rows:
            yield FilePlaces(slice_.file, rows[slice_.file.name])
    for part in view.inline:
        if part.source in rows:
            assert part.first_id is not None, "W1: a committed row has an id"
            yield InlinePlaces(part.source, part.rows, rows[part.source], part.first_id)


def _file_slice(part: FilePlaces) -> FileSlice:
    end = part.rows.max() + 1
    return FileSlice(part.file, end, BitMap64(range(end)) - part.rows)


def _inline_slice(part: InlinePlaces) -> InlineSlice:
    left_out = BitMap64(range(part.table.num_rows)) - part.rows
    return InlineSlice(part.source, part.table, left_out, part.first_id)


def _part_ts(part: _Part) -> Timestamp:
    return part.ts


def _version_cut(version: Version) -> Timestamp:
    return version.cut
