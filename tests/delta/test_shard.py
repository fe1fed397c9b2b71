"""ShardState against a naive model: rows with the times they came and went."""

from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, ShardView, WriteBatch
from storage.shard import FileMap, LiveFile, Run, Runs, ShardState, Version, staged_file
from storage.types import OWN, ShardId, Source, Timestamp, inline_source

SHARD = ShardId("t0123456789abcdef")
SCHEMA = pa.schema([pa.field("k", pa.int64())])
STEP = 10


def rows_of(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())}, schema=SCHEMA)


@dataclass
class ModelRow:
    key: int
    born: int
    died: int | None
    source: Source
    index: int


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
        """`age` commits ago the writer looked up the identities of its victims (V2)."""
        self.now += STEP
        ts = self.now
        alive = self.live(ts - 1)
        chosen = {id(alive[v % len(alive)]): alive[v % len(alive)] for v in victims if alive}
        deletes: dict[Source, BitMap64] = {}
        for row in chosen.values():
            # An old reader may name a row by the commit even after it has been flushed.
            old_name = age and row.source not in self.staged_names()
            source, index = self.first_identity[id(row)] if old_name else (row.source, row.index)
            deletes.setdefault(source, BitMap64()).add(index)
            row.died = ts
        batch = self.make_batch(ts, inline, staged, deletes)
        self.state = self.state.committed(Timestamp(ts), batch)
        self.writes.append(ts)

    first_identity: dict[int, tuple[Source, int]] = field(default_factory=dict)

    def staged_names(self) -> set[Source]:
        return {name for name in self.contents if name.startswith("staged")}

    def make_batch(
        self, ts: int, inline: int, staged: tuple[int, ...], deletes: Deletes
    ) -> WriteBatch:
        keys = self.new_keys(inline)
        for index, key in enumerate(keys):
            row = ModelRow(key, ts, None, inline_source(Timestamp(ts)), index)
            self.rows.append(row)
            self.first_identity[id(row)] = (row.source, row.index)
        files = []
        for number, size in enumerate(staged):
            name = Source(f"staged-{ts}-{number}")
            self.contents[name] = self.new_keys(size)
            self.rows += [
                ModelRow(key, ts, None, name, index)
                for index, key in enumerate(self.contents[name])
            ]
            files.append(DataFile(name, size, 100, "{}"))
        return WriteBatch(rows_of(*keys) if inline else None, tuple(files), deletes)

    def flush(self, back: int) -> None:
        """Flush at a cut some commits back from now."""
        cut = self.now - back * STEP + 3
        if not self.state.dirty_at(Timestamp(cut)) or (self.state.cut or -1) >= cut:
            return
        self.state = self.state.flushed(self.make_version(cut))

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
                row.source, row.index = name, index
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
        st.integers(0, 1),
    ).filter(lambda action: bool(action[1] or action[2])),
    st.tuples(st.just("commit"), st.integers(1, 3), st.just(()), st.just([]), st.just(0)),
    st.tuples(st.just("flush"), st.integers(0, 3)),
    st.tuples(st.just("prune"), st.integers(0, 4)),
)


@given(st.lists(ACTIONS, max_size=25))
@settings(max_examples=150, deadline=None)
def test_every_timestamp_sees_what_the_model_says(actions: list[tuple]) -> None:
    model = Model()
    for name, *arguments in actions:
        getattr(model, name)(*arguments)
    model.check()


def committed(*batches: WriteBatch, step: int = STEP) -> ShardState:
    state = ShardState(SHARD, SCHEMA, Timestamp(0))
    for number, batch in enumerate(batches, start=1):
        state = state.committed(Timestamp(number * step), batch)
    return state


def insert(*keys: int) -> WriteBatch:
    return WriteBatch(rows_of(*keys))


def test_own_writes_lie_on_top() -> None:
    state = committed(insert(1, 2), insert(3))
    own = WriteBatch(rows_of(9), deletes={inline_source(Timestamp(10)): BitMap64([1])})
    view = state.view(Timestamp(20), own)
    shown = [(part.source, list(part.deleted)) for part in view.inline]
    assert shown == [("@10", [1]), ("@20", []), (OWN, [])]
    assert [list(part.deleted) for part in state.view(Timestamp(20)).inline] == [[], []]


def test_own_deletes_follow_their_rows_into_a_file() -> None:
    model = Model()
    model.commit(2, (), [], 0)
    model.commit(2, (), [], 0)
    own = WriteBatch(deletes={inline_source(Timestamp(20)): BitMap64([1])})
    model.flush(0)
    view = model.state.view(Timestamp(20), own)
    assert model.seen(view) == [0, 1, 2]


def test_own_deletes_of_rows_that_are_gone_with_their_file_are_ignored() -> None:
    model = Model()
    model.commit(1, (), [], 0)
    model.commit(1, (), [], 0)
    model.flush(0)
    last = model.state.versions[-1]
    empty = Version(last.number + 1, Timestamp(40), FileMap(), (), ())
    state = model.state.flushed(empty).pruned(Timestamp(50))
    own = WriteBatch(deletes={inline_source(Timestamp(10)): BitMap64([0])})
    assert state.view(Timestamp(50), own).files == ()
    with pytest.raises(AssertionError, match="V2"):
        state.resolve(own.deletes)


def test_before_since_is_refused() -> None:
    model = Model()
    for _ in range(3):
        model.commit(1, (), [], 0)
        model.flush(0)
    model.prune(0)
    with pytest.raises(AssertionError, match="V1"):
        model.state.view(Timestamp(5))
    assert model.state.wrote_between(Timestamp(0), Timestamp(5))


def test_commits_come_in_order() -> None:
    state = committed(insert(1))
    with pytest.raises(AssertionError, match="T2"):
        state.committed(Timestamp(10), insert(2))


def test_dirty_is_a_tail_or_a_missing_table() -> None:
    state = ShardState(SHARD, SCHEMA, Timestamp(5))
    assert state.dirty
    assert not state.dirty_at(Timestamp(4))
    assert state.dirty_at(Timestamp(5))
    state = state.flushed(Version(0, Timestamp(6), FileMap()))
    assert not state.dirty
    state = state.committed(Timestamp(10), insert(1, 2))
    assert state.dirty
    assert (state.dirty_at(Timestamp(9)), state.dirty_at(Timestamp(10))) == (False, True)
    assert state.tail_rows == 2
    assert state.tail_bytes > 16


def test_file_map_shares_and_keeps_order() -> None:
    def live(name: int) -> LiveFile:
        return staged_file(DataFile(Source(f"f{name}"), 1, 1, "{}"), Timestamp(1))

    first = FileMap(live(n) for n in range(300))
    dead = LiveFile(live(7).file, BitMap64([0]), Runs.single(Timestamp(1)))
    second = first.changed([dead, live(300)], drops=[Source("f299")])
    assert [*second] == [f"f{n}" for n in (*range(299), 300)]
    assert (first[Source("f7")].dead, second[Source("f7")].dead) == (False, True)
    assert (len(first), len(second)) == (300, 300)
    assert "f299" in first
    assert "f299" not in second
    assert [live.file.name for live in second.live_files()] == [*second]


def test_runs() -> None:
    runs = Runs((5, 8), (0, 3))
    assert [*runs] == [Run(Timestamp(5), 0), Run(Timestamp(8), 3)]
    limits = [runs.rows_until(Timestamp(ts), 10) for ts in (4, 5, 7, 8, 9)]
    assert limits == [0, 3, 3, 10, 10]
    assert [runs.first_row_at(Timestamp(ts)) for ts in (5, 6, 8)] == [0, None, 3]
    with pytest.raises(AssertionError, match="F1"):
        Runs((5, 5), (0, 1))
