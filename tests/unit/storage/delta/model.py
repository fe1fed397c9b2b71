"""A naive twin of ShardState: rows with the times they came and went.

It also plays the part of the flush, unless a test gives it a real one.
"""

from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, ShardView, WriteBatch
from storage.live_files import FileMap, LiveFile, Runs
from storage.shard import ShardState, Version, staged_file
from storage.types import ShardId, Source, Timestamp, inline_source

SHARD = ShardId("t0123456789abcdef")
SCHEMA = pa.schema([pa.field("k", pa.int64())])
STEP = 10_000


def rows_of(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())}, schema=SCHEMA)


@dataclass
class ModelRow:
    key: int
    born: int
    died: int | None
    source: Source
    index: int
    names: list[tuple[Source, int, int]] = field(default_factory=list)
    """Earlier identities, each with the cut from which on it was another one."""

    def move(self, source: Source, index: int, cut: int) -> None:
        """From `cut` on the row is here."""
        self.names.append((self.source, self.index, cut))
        self.source, self.index = source, index

    def name(self, age: int, since: int) -> tuple[Source, int]:
        """The identity some moves ago, as a reader knows it who holds a timestamp >= since."""
        known = [(source, index) for source, index, cut in self.names if cut > since]
        known.append((self.source, self.index))
        return known[max(len(known) - 1 - age, 0)]


@dataclass
class Model:
    """The naive twin, which also plays the part of the flush: it knows what each file holds."""

    state: ShardState = field(default_factory=lambda: ShardState(SHARD, SCHEMA, Timestamp(0)))
    rows: list[ModelRow] = field(default_factory=list)
    contents: dict[Source, list[int]] = field(default_factory=dict)
    writes: list[int] = field(default_factory=list)
    now: int = 0
    since: int = 0
    next_key: int = 0

    def new_keys(self, count: int) -> list[int]:
        self.next_key += count
        return list(range(self.next_key - count, self.next_key))

    def live(self, as_of: int) -> list[ModelRow]:
        return [
            row for row in self.rows if row.born <= as_of and (row.died is None or row.died > as_of)
        ]

    def commit(self, inline: int, staged: tuple[int, ...], victims: list[int], age: int) -> None:
        """With `age`, the writer knows its victims by their names of some moves ago (V2, V5)."""
        self.now += STEP
        ts = self.now
        alive = self.live(ts - 1)
        chosen = {id(alive[v % len(alive)]): alive[v % len(alive)] for v in victims if alive}
        deletes: dict[Source, BitMap64] = {}
        for row in chosen.values():
            source, index = row.name(age, self.since)
            deletes.setdefault(source, BitMap64()).add(index)
            row.died = ts
        batch = self.make_batch(ts, inline, staged, deletes)
        self.state = self.state.committed(Timestamp(ts), batch)
        self.writes.append(ts)

    def make_batch(
        self, ts: int, inline: int, staged: tuple[int, ...], deletes: Deletes
    ) -> WriteBatch:
        keys = self.new_keys(inline)
        for index, key in enumerate(keys):
            self.rows.append(ModelRow(key, ts, None, inline_source(Timestamp(ts)), index))
        files = []
        for number, size in enumerate(staged):
            file = self.stage(f"staged-{ts}-{number}", self.new_keys(size))
            self.rows += [
                ModelRow(key, ts, None, file.name, index)
                for index, key in enumerate(self.contents[file.name])
            ]
            files.append(file)
        return WriteBatch(rows_of(*keys) if inline else None, tuple(files), deletes)

    def stage(self, name: str, keys: list[int]) -> DataFile:
        self.contents[Source(name)] = keys
        return DataFile(Source(name), len(keys), 100, "{}")

    def flush(self, back: int) -> None:
        """Flush at a cut some commits back from now."""
        cut = self.now - back * STEP + 3_000
        if not self.wants_flush(cut) or (self.state.cut or -1) >= cut:
            return
        self.state = self.state.flushed(self.make_version(cut))

    def wants_flush(self, cut: int) -> bool:
        return self.state.dirty_at(Timestamp(cut))

    def make_version(self, cut: int) -> Version:
        tail = [c for c in self.state.tail if c.ts <= cut]
        previous = self.state.versions[-1].files if self.state.versions else FileMap()
        moved = [r for r in self.rows if r.source in {inline_source(c.ts) for c in tail}]
        moved.sort(key=lambda row: (row.born, row.index))
        puts: dict[Source, LiveFile] = {}
        if moved:
            name = Source(f"part-{cut}")
            self.contents[name] = [row.key for row in moved]
            runs: dict[int, int] = {}
            for index, row in enumerate(moved):
                runs.setdefault(row.born, index)
                row.move(name, index, cut)
            file = DataFile(name, len(moved), 100, "{}")
            puts[name] = LiveFile(file, BitMap64(), Runs(runs.keys(), runs.values()))
        for commit in tail:
            for file in commit.batch.staged:
                puts[file.name] = staged_file(file, commit.ts)
        added = tuple(puts)
        deletes: dict[int, dict[Source, BitMap64]] = {}
        for row in self.rows:
            if row.died is not None and row.died in {c.ts for c in tail}:
                gone = deletes.setdefault(row.died, {})
                gone.setdefault(row.source, BitMap64()).add(row.index)
        for by_source in deletes.values():
            for source, gone in by_source.items():
                live = puts[source] if source in puts else previous[source]
                puts[source] = LiveFile(live.file, live.deleted | gone, live.runs, live.staged)
        number = len(self.state.versions) and self.state.versions[-1].number + 1
        files = previous.changed(puts.values())
        by_time = tuple((Timestamp(ts), deletes[ts]) for ts in sorted(deletes))
        return Version(number, Timestamp(cut), files, added, by_time)

    def prune(self, back: int) -> None:
        self.since = max(self.since, self.now - back * STEP)
        self.state = self.state.pruned(Timestamp(self.since))

    def seen(self, view: ShardView) -> list[int]:
        keys: list[int] = []
        for part in view.files:
            content = self.contents[part.file.name][: part.row_limit]
            keys += [key for i, key in enumerate(content) if i not in part.deleted]
        for inline in view.inline:
            content = inline.rows.column("k").to_pylist()
            keys += [key for i, key in enumerate(content) if i not in inline.deleted]
        return keys

    def check(self) -> None:
        keys_by_files: dict[object, str] = {}
        for ts in range(self.since, self.now + 2 * STEP, STEP // 2):
            view = self.state.view(Timestamp(ts))
            assert sorted(self.seen(view)) == sorted(row.key for row in self.live(ts)), ts
            slices = frozenset(
                (part.file.name, part.row_limit, tuple(part.deleted)) for part in view.files
            )
            assert keys_by_files.setdefault(slices, view.base_key) == view.base_key
        assert len(set(keys_by_files.values())) == len(keys_by_files)
        for after in range(self.since, self.now + STEP, STEP // 2):
            for upto in range(after, self.now + STEP, STEP // 2):
                wrote = any(after < ts <= upto for ts in self.writes)
                answer = self.state.wrote_between(Timestamp(after), Timestamp(upto))
                assert answer == wrote, (after, upto)


ACTIONS = st.one_of(
    st.tuples(
        st.just("commit"),
        st.integers(0, 3),
        st.lists(st.integers(1, 3), max_size=2).map(tuple),
        st.lists(st.integers(0, 50), max_size=4),
        st.integers(0, 3),
    ).filter(lambda action: bool(action[1] or action[2])),
    st.tuples(st.just("commit"), st.integers(1, 3), st.just(()), st.just([]), st.just(0)),
    st.tuples(st.just("flush"), st.integers(0, 3)),
    st.tuples(st.just("prune"), st.integers(0, 4)),
)
