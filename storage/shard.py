"""A shard in memory: its Delta versions, and the tail of commits that no version holds yet.

    ts ──────┬───────────┬────────────┬──── ● ── ● ─── ● ──▶
          version 0   version 1   version 2   └── tail ──┘
            (cut)       (cut)       (cut)      commits after the newest cut

INVARIANTS
  V1  `view(t)` shows exactly the writes with commit timestamp <= t, at every t in [since, upper),
      also between two cuts: base = newest version with cut <= t; then the rows of the next
      version's files up to t (rows lie in commit order, `runs` says where each timestamp begins),
      the deletes up to t, and the tail.
  V2  a delete may name `@ts` rows that have been flushed since: it is resolved through `runs`.
  V3  a ShardState is a value: `committed`, `flushed`, `pruned` return new ones that share
      structure.
  V4  a file staged by a transaction is a file from the moment of its commit: its rows are named by
      the file, in the tail as in the base.
  V6  definitions ascend: rows written at or after `since` of one have its fields or fewer. What a
      view shows is shaped by the definition that its reader was bound to.
  V5  a compaction moves rows to other files and changes no answer: versions before it keep the old
      names, the ones from it on have the new. A delete may name a row as any view still held shows
      it; it is resolved through what the rewritten files say of their rows (`Moved`).
  V8  the versions stay that tell what a commit of the tail deletes, by the names that it became
      durable with: a restart knows no others. So neither pruning nor vacuum passes `named_since`.
  V7  a view over the newest version is made from the one before and what has come since (G1 of
      `grown_view.py`), with own writes and hidden rows on top. Another version or definition
      begins anew.

Not here: building views (`shard_view.py`), writing files and logs (`delta/`), deciding when to
flush (the coordinator).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import field, replace
from enum import Enum
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, ShardView, WriteBatch
from storage.delta.schema import reported_definition
from storage.fast_dataclass import fast_dataclass
from storage.grown_view import ViewGrower
from storage.live_files import FileMap, LiveFile, Moved, Run, Runs
from storage.shard_view import ViewBuilder
from storage.tail import (
    Committed,
    Tail,
    add_commit,
    commit_ts,
    grown_view,
    memory_bytes,
    numbered_batch,
)
from storage.types import OWN, ShardId, Source, Timestamp, inline_ts, is_file
from storage.version import Version
from storage.view_marks import BehindMark, marked_at

__all__ = [
    "Committed",
    "Definition",
    "Fence",
    "FileMap",
    "LiveFile",
    "Run",
    "Runs",
    "ShardState",
    "Tail",
    "Version",
]

NOTHING: Final[Deletes] = {}
_NEVER: Final = Timestamp(1 << 62)

TICKS_PER_MS: Final = 1_000
"""Microseconds, in the timeline of the wall clock."""
RETENTION_US: Final = 3_600_000_000
SHOWN_MAX: Final = 8
"""Views that are kept of a shard. Larger: more memory. Smaller: readers of the past wait longer."""


@fast_dataclass(frozen=True, slots=True)
class Definition:
    """The fields of a shard, from a commit on (V6)."""

    since: Timestamp
    schema: pa.Schema


class Fence(Enum):
    """Why a table is neither read nor written any more; nothing of it is overwritten."""

    FOREIGN = "foreign writer"
    """Somebody else has written into its log."""
    DAMAGED = "damaged"
    """Its log or files are gone, or are not what was written."""
    UNREADABLE = "unreadable"
    """Storage did not give its log when the server started; the next start asks again."""


@fast_dataclass(frozen=True, slots=True)
class _Shown:
    """A view over the newest version that somebody has asked for, and its last commit (V7)."""

    upto: Timestamp
    view: ShardView


@fast_dataclass(frozen=True, slots=True)
class ShardState:
    """See the module. `versions` ascend by cut; an empty tuple: no Delta table exists yet."""

    shard: ShardId
    schema: pa.Schema
    created: Timestamp
    versions: tuple[Version, ...] = ()
    tail: Tail = ()
    tail_bytes: int = 0
    last_write: Timestamp = field(default=Timestamp(0))
    fence: Fence | None = None
    """Why it is neither read nor written any more; None: it is."""
    ticks_per_ms: int = TICKS_PER_MS
    """Timestamps of the shard's timeline in one millisecond of Delta's in-commit timestamps. A
    timeline without a clock has 1: what it counts stands where Delta has milliseconds."""
    retention_us: int = RETENTION_US
    """How long the table, when it is made, promises foreign readers to keep what was removed."""
    definitions: tuple[Definition, ...] = ()
    """All that may still be asked for, the present one last; empty: there was never another."""
    marks: tuple[BehindMark, ...] = ()
    """Since when a view is behind, as its log tells it; empty: it has never to be told."""
    next_id: int = 0
    """The id of the next row that is committed (W1 of `row_versions.py`)."""
    _shown: list[_Shown] = field(
        default_factory=list[_Shown], init=False, compare=False, repr=False
    )
    """The last few views over the newest version, by time: nearly all readers read there (V7)."""

    @property
    def fenced(self) -> bool:
        """True if it is neither read nor written any more."""
        return self.fence is not None

    @property
    def cut(self) -> Timestamp | None:
        """The newest version's cut; None if there is no version."""
        return self.versions[-1].cut if self.versions else None

    @property
    def since(self) -> Timestamp:
        """No view is before this: older versions are pruned, or gone from the log."""
        if not self.versions or self.versions[0].begins_table:
            return Timestamp(0)
        return self.versions[0].cut

    @property
    def tail_rows(self) -> int:
        """Rows in memory that no version holds."""
        return sum(c.inline.num_rows for c in self.tail if c.inline is not None)

    @property
    def dirty(self) -> bool:
        """True if a flush at a late enough cut has something to write: commits, or the table."""
        return bool(self.tail) or not self.versions or self._untold(_NEVER)

    def dirty_at(self, cut: Timestamp) -> bool:
        """True if a flush at `cut` has something to write."""
        if not self.versions:
            return self.created <= cut
        if self.tail and self.tail[0].ts <= cut:
            return True
        return cut > self.versions[-1].cut and self._untold(cut)

    def schema_at(self, ts: Timestamp) -> pa.Schema:
        """The fields that the shard had at a timestamp (V6)."""
        if not self.definitions:
            return self.schema
        last = bisect_right(self.definitions, ts, key=_definition_since) - 1
        return self.definitions[max(last, 0)].schema

    def _untold(self, cut: Timestamp) -> bool:
        """Whether the log must hear of how it is defined at a cut, or of a view that is behind."""
        if not self.versions:
            return False
        told = self.versions[-1]
        if self.marks and told.behind_since != marked_at(self.marks, cut):
            return True
        schema = self.schema_at(cut) if self.definitions else None
        return schema is not None and told.schema_text != reported_definition(schema)

    def redefined(self, ts: Timestamp, schema: pa.Schema) -> "ShardState":
        """This state with other fields, from a commit at `ts` on (V6)."""
        before = self.definitions or (Definition(self.created, self.schema),)
        kept = tuple(definition for definition in before if definition.since < ts)
        return replace(self, schema=schema, definitions=(*kept, Definition(ts, schema)))

    def committed(self, ts: Timestamp, batch: WriteBatch) -> "ShardState":
        """This state after a commit at `ts`, which must be greater than every one before."""
        assert ts > self.last_write, "T2: commits come in the order of their timestamps"
        assert self.cut is None or ts > self.cut, "V1: a version holds all writes up to its cut"
        assert OWN not in batch.deletes, "B2: a batch does not delete its own rows"
        resolved = self._resolved(batch)
        # Which of the versions knew the old names is not asked: this is rare, and soon flushed.
        named_at = self.since if resolved is not batch else self.cut or Timestamp(0)
        batch = numbered_batch(ts, resolved, self.next_id)
        commit = Committed(ts, batch, self.next_id, named_at)
        state = replace(
            self,
            next_id=self.next_id + batch.new_rows,
            tail=(*self.tail, commit),
            tail_bytes=self.tail_bytes + memory_bytes(batch),
            last_write=ts,
        )
        state._shown[:] = self._shown
        return state

    def flushed(self, version: Version) -> "ShardState":
        """This state after `version` became durable: the tail up to its cut is gone."""
        if self.versions:
            assert version.number > self.versions[-1].number, "versions ascend"
            assert version.cut > self.versions[-1].cut, "C1: cuts ascend"
        first = bisect_right(self.tail, version.cut, key=commit_ts)
        state = replace(self, versions=(*self.versions, version), tail=self.tail[first:])
        # What is left of the tail may name rows that this very flush has moved into a file.
        tail = tuple(state._recommitted(commit) for commit in state.tail)
        return replace(
            state,
            tail=tail,
            tail_bytes=sum(memory_bytes(commit.batch) for commit in tail),
            last_write=max(self.last_write, version.newest_write),
            next_id=max(self.next_id, version.next_id or 0),
        )

    def next_id_at(self, cut: Timestamp) -> int:
        """The id of the first row that is committed after a cut, which is no earlier than the
        newest one (W1).
        """
        first = bisect_right(self.tail, cut, key=commit_ts)
        return self.tail[first].first_id if first < len(self.tail) else self.next_id

    def pruned(self, since: Timestamp) -> "ShardState":
        """This state without the versions that neither a `view(t >= since)` needs nor a commit of
        the tail (V8).
        """
        if len(self.versions) < 2:
            return self
        since = self.needed_since(since)
        base = bisect_right(self.versions, since, key=_version_cut) - 1
        if base <= 0:
            return self
        # Nobody reads before the base any more, so nobody asks when its rows went.
        kept = replace(self.versions[base], added=(), deletes=(), rewritten=())
        state = replace(self, versions=(kept, *self.versions[base + 1 :]))
        state = state if not self.definitions else state._pruned_definitions(kept.cut)
        state._shown[:] = self._shown
        return state

    def needed_since(self, since: Timestamp) -> Timestamp:
        """From when on versions are needed if nobody reads before `since` (V8)."""
        return min([since, *(commit.named_at for commit in self.tail if commit.batch.deletes)])

    def _pruned_definitions(self, since: Timestamp) -> "ShardState":
        first = bisect_right(self.definitions, since, key=_definition_since) - 1
        return replace(self, definitions=self.definitions[max(first, 0) :])

    def view(
        self,
        as_of: Timestamp,
        own: WriteBatch | None = None,
        schema: pa.Schema | None = None,
        hidden: Deletes = NOTHING,
    ) -> ShardView:
        """The shard at `as_of`, with a transaction's own writes on top (V1). `schema`: the reader's
        (V6); None: the shard never had another one. `hidden`: rows that are left out, if they are
        in the view by this name.
        """
        schema = self.schema if schema is None else schema
        if self.cut is not None and as_of < self.cut:
            return self._view(as_of, own, schema, hidden)
        shown = self._shown_view(as_of, schema)
        if own is None and not hidden:
            return shown
        grower = ViewGrower(shown)
        if own is not None:
            grower.add_own(self._own_as_shown(own, len(self.versions)))
        grower.hide(hidden)
        return grower.view()

    def _shown_view(self, as_of: Timestamp, schema: pa.Schema) -> ShardView:
        """The view of all commits up to a timestamp, over the newest version (V7)."""
        shown = self._shown
        if shown and shown[0].view.schema is not schema:
            shown.clear()
        end = bisect_right(self.tail, as_of, key=commit_ts)
        upto = self.tail[end - 1].ts if end else self.cut or Timestamp(0)
        place = bisect_right(shown, upto, key=_shown_upto)
        before = shown[place - 1] if place else None
        if before is not None and before.upto == upto:
            return before.view
        view = None
        if before is not None:
            first = bisect_right(self.tail, before.upto, key=commit_ts)
            view = grown_view(before.view, self.tail[first:end])
        if view is None:
            view = self._view(as_of, None, schema)
        view = replace(view, upto=upto, is_whole=True)
        shown.insert(place, _Shown(upto, view))
        if len(shown) > SHOWN_MAX:
            del shown[0]
        return view

    def _own_as_shown(self, own: WriteBatch, end: int) -> WriteBatch:
        """Own writes as a view names rows whose base is the last of `versions[:end]`."""
        # At read committed, rows that this transaction deleted may be gone with their file.
        return replace(own, deletes=self._resolve(own.deletes, end, ignore_gone=True))

    def _view(
        self,
        as_of: Timestamp,
        own: WriteBatch | None,
        schema: pa.Schema,
        hidden: Deletes = NOTHING,
    ) -> ShardView:
        following = bisect_right(self.versions, as_of, key=_version_cut)
        base = self.versions[following - 1] if following else None
        if base is None and self.versions:
            assert self.versions[0].begins_table, f"V1: {as_of} is before since"
        builder = ViewBuilder(base.files if base is not None else FileMap())
        if following < len(self.versions):
            _add_part(builder, self.versions[following], as_of)
        else:
            for commit in self.tail[: bisect_right(self.tail, as_of, key=commit_ts)]:
                add_commit(builder, commit)
        if own is not None:
            builder.add_own(self._own_as_shown(own, following))
        builder.hide(hidden)
        return builder.view(self.shard, schema)

    def wrote_between(self, after: Timestamp, upto: Timestamp) -> bool:
        """True if a commit with after < ts <= upto wrote here; `after` must be at or past since."""
        if after >= upto or self.last_write <= after:
            return False
        if bisect_right(self.tail, upto, key=commit_ts) > bisect_right(
            self.tail, after, key=commit_ts
        ):
            return True
        first = bisect_right(self.versions, after, key=_version_cut)
        # A pruned history cannot say what happened before its base: a conflict is the safe answer.
        if first == 0 and self.versions and not self.versions[0].begins_table:
            return True
        return any(version.wrote_between(after, upto) for version in self.versions[first:])

    def resolve(self, deletes: Deletes) -> Deletes:
        """The same rows, named by the files where they are now (V2, V5)."""
        return self._resolve(deletes, len(self.versions), ignore_gone=False)

    def surviving(self, deletes: Deletes) -> Deletes:
        """Like `resolve`, without the rows that are gone with their file."""
        resolved = self._resolve(deletes, len(self.versions), ignore_gone=True)
        gone = [name for name in resolved if is_file(name) and not self._has_file(name)]
        return {name: resolved[name] for name in resolved if name not in gone} if gone else resolved

    def is_current(self, name: Source) -> bool:
        """Whether rows of this name are called so now: they were not flushed or moved since."""
        if is_file(name):
            return self._has_file(name)
        return self.cut is None or inline_ts(name) > self.cut

    def knows(self, names: Iterable[Source]) -> bool:
        """Whether it can tell where the rows of all these files are now (V5)."""
        return all(self._has_file(name) or self._has_moved(name) for name in names)

    def _has_moved(self, name: Source) -> bool:
        while moved := self._moved_to(name, len(self.versions)):
            name = moved[0]
            if self._has_file(name):
                return True
        return False

    def _has_file(self, name: Source) -> bool:
        if self.versions and name in self.versions[-1].files:
            return True
        return any(file.name == name for commit in self.tail for file in commit.batch.staged)

    def _resolve(self, deletes: Deletes, end: int, *, ignore_gone: bool) -> Deletes:
        """The same rows as a view names them whose base is the last of `versions[:end]`."""
        cut = self.cut
        if cut is None:
            return deletes
        files = self.versions[end - 1].files if end else FileMap()
        if all(s == OWN or (s in files if is_file(s) else inline_ts(s) > cut) for s in deletes):
            return deletes
        resolved: dict[Source, list[BitMap64]] = {}
        for source, named in deletes.items():
            name, rows = source, named
            if source != OWN and not is_file(source) and (ts := inline_ts(source)) <= cut:
                place = self._flushed_to(ts)
                assert place is not None or ignore_gone, (
                    f"V2: rows committed at {ts} are in a file or in the tail"
                )
                if place is None:
                    continue
                name, rows = place[0], named.shift(place[1])
            while is_file(name) and name not in files and (moved := self._moved_to(name, end)):
                name, rows = moved[0], moved[1].place(rows)
            resolved.setdefault(name, []).append(rows)
        return {source: BitMap64.union(*rows) for source, rows in resolved.items()}

    def _moved_to(self, name: Source, end: int) -> tuple[Source, Moved] | None:
        """The file of `versions[:end]` that has the rows of one which left the table (V5)."""
        for index in range(end - 1, -1, -1):
            version = self.versions[index]
            for target in version.rewritten if index else version.files:
                for moved in version.files[target].moved:
                    if moved.source == name:
                        return target, moved
        return None

    def _flushed_to(self, ts: Timestamp) -> tuple[Source, int] | None:
        """The file and row where the rows committed inline at `ts` begin; None if it is gone."""
        following = bisect_left(self.versions, ts, key=_version_cut)
        version = self.versions[following]
        names = version.added if following else tuple(version.files)
        for name in reversed(names):
            live = version.files[name]
            first_row = None if live.staged else live.runs.first_row_at(ts)
            if first_row is not None:
                return name, first_row
        return None

    def _resolved(self, batch: WriteBatch) -> WriteBatch:
        deletes = self.resolve(batch.deletes)
        return batch if deletes is batch.deletes else replace(batch, deletes=deletes)

    def _recommitted(self, commit: Committed) -> Committed:
        batch = self._resolved(commit.batch)
        return commit if batch is commit.batch else replace(commit, batch=batch)


def _add_part(builder: ViewBuilder, version: Version, as_of: Timestamp) -> None:
    """What `version` had already at `as_of`, before its cut (V1)."""
    for name in version.added:
        live = version.files[name]
        builder.add_file(live.file, live.runs.rows_until(as_of, live.file.rows))
    for ts, deletes in version.deletes:
        if ts <= as_of:
            builder.delete(deletes)


def _definition_since(definition: Definition) -> Timestamp:
    return definition.since


def _shown_upto(shown: _Shown) -> Timestamp:
    return shown.upto


def _version_cut(version: Version) -> Timestamp:
    return version.cut


def staged_file(file: DataFile, ts: Timestamp) -> LiveFile:
    """A staged file as the version has it that first contains it (V4)."""
    assert file.origins is not None, "W1: a committed file knows its ids"
    ids = file.origins.ids
    return LiveFile(file, BitMap64(), Runs.single(ts), staged=True, row_ids=ids)
