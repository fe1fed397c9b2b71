"""Flush and recovery against the model: real logs, lost requests, lost replies, restarts."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, ShardView, WriteBatch
from storage.cuts import flush
from storage.delta.checkpoint import decode_checkpoint
from storage.delta.compaction import rewrite_files
from storage.delta.compaction_plan import CompactionLimits
from storage.delta.deletion_vectors import INLINE_BYTES_MAX
from storage.delta.files import decode_parquet, encode_file
from storage.delta.flush_plan import FlushPlan
from storage.delta.layout import checkpoint_path, commit_path, data_path
from storage.delta.log import decode_commit
from storage.delta.maintenance import write_checkpoint
from storage.delta.recovery import load_shard
from storage.errors import Corrupt, ForeignWriter, Indeterminate
from storage.live_files import LiveFile
from storage.memory import MemoryObjectStore
from storage.row_versions import version_columns, with_version_columns
from storage.shard import ShardState, Version
from storage.types import Source, Timestamp, inline_source, inline_ts, is_file
from tests.unit.storage.delta.faulty_store import TORN, FaultyStore, check_log_times
from tests.unit.storage.delta.model import ACTIONS, SCHEMA, SHARD, STEP, Model, rows_of


async def at_once(work: Callable[[], FlushPlan]) -> FlushPlan:
    return work()


async def blocking(work: Callable[[], None]) -> None:
    work()


@dataclass
class FlushedModel(Model):
    """The model with real flushes; `durable` is what the txns shard would hold."""

    store: FaultyStore = field(default_factory=lambda: FaultyStore(MemoryObjectStore()))
    durable: list[tuple[int, WriteBatch]] = field(default_factory=list)
    tried: int = -1
    rewritten: tuple[LiveFile, ...] = ()
    compactions: int = 0
    tables: dict[Source, pa.Table] = field(default_factory=dict)

    def make_batch(
        self, ts: int, inline: int, staged: tuple[int, ...], deletes: Deletes
    ) -> WriteBatch:
        batch = super().make_batch(ts, inline, staged, deletes)
        self.durable.append((ts, batch))
        return batch

    def stage(self, name: str, keys: list[int]) -> DataFile:
        encoded = encode_file(rows_of(*keys), name)
        asyncio.run(self.store.inner.create(data_path(SHARD, encoded.file.name), encoded.content))
        self.contents[encoded.file.name] = keys
        return encoded.file

    def flush(self, back: int) -> None:
        """A flush whose outcome is unknown is left; a later one, at a later cut, finds out."""
        if self.now - back * STEP > self.tried:
            with contextlib.suppress(Indeterminate):
                super().flush(back)

    def make_version(self, cut: int) -> Version:
        self.tried = cut
        version = asyncio.run(
            flush(
                self.store,
                self.state,
                Timestamp(cut),
                rewritten=self.rewritten,
                run_blocking=at_once,
            )
        )
        if version.rewritten:
            self.rewritten = ()
            self.compactions += 1
        self.follow(self.state.flushed(version))
        return version

    def wants_flush(self, cut: int) -> bool:
        return bool(self.rewritten) or super().wants_flush(cut)

    def compact(self, chosen: list[int]) -> None:
        """Rewrite some files of the newest version; they land with some later flush."""
        if self.rewritten or not self.state.versions:
            return
        files = [live for live in self.state.versions[-1].files.live_files() if not live.dead]
        names = {files[n % len(files)].file.name for n in chosen if files}
        sources = [live for live in files if live.file.name in names]
        limits = CompactionLimits(output_bytes=900)
        with contextlib.suppress(Indeterminate):
            self.rewritten = asyncio.run(
                rewrite_files(self.store, self.state, sources, limits, run_blocking=blocking)
            )

    def follow(self, after: ShardState) -> None:
        """Learn where the rows are now."""
        cut = after.cut if after.cut is not None else -1
        for row in self.rows:
            if row.born <= cut and (row.died is None or row.died > cut):
                place = after.resolve({row.source: BitMap64([row.index])})
                ((source, bitmap),) = place.items()
                if (source, bitmap[0]) != (row.source, row.index):
                    row.move(source, bitmap[0], cut)
        for version in after.versions:
            for name in version.files.keys() - self.contents.keys():
                self.contents[name] = self.read(name)

    def check(self) -> None:
        super().check()
        check_log_times(self.store.inner)
        for ts in range(self.since, self.now + 2 * STEP, STEP):
            self.check_versions(self.state.view(Timestamp(ts)))

    def check_versions(self, view: ShardView) -> None:
        """W1, W2 of `row_versions.py`: the n-th row ever has id n and its own commit, anywhere."""
        expected = {row.key: (number, row.born) for number, row in enumerate(self.rows)}
        seen = self.seen_versions(view)
        assert seen == {key: expected[key] for key in seen}

    def seen_versions(self, view: ShardView) -> dict[int, tuple[int, int]]:
        """Id and commit of the rows of a view, by key."""
        found: dict[int, tuple[int, int]] = {}
        for part in view.files:
            stored = self.stored(part.file.name)
            assert part.file.origins is not None
            versions = version_columns(stored, part.file.origins)
            live = [i not in part.deleted for i in range(part.row_limit)]
            rows = with_version_columns(stored.select(["k"]), versions).slice(0, part.row_limit)
            columns = [column.to_pylist() for column in rows.filter(pa.array(live)).columns]
            found |= {key: (id_, ts) for key, id_, ts in zip(*columns, strict=True)}
        for inline in view.inline:
            assert inline.first_id is not None
            ts = inline_ts(inline.source)
            for index, key in enumerate(inline.rows.column("k").to_pylist()):
                if index not in inline.deleted:
                    found[key] = inline.first_id + index, ts
        return found

    def stored(self, name: Source) -> pa.Table:
        """All columns of a file, which never changes."""
        known = self.tables.get(name)
        if known is None:
            content = asyncio.run(self.store.inner.read(data_path(SHARD, name)))
            known = self.tables[name] = pq.ParquetFile(pa.BufferReader(content)).read()
        return known

    def read(self, name: Source) -> list[int]:
        content = asyncio.run(self.store.read(data_path(SHARD, name)))
        return decode_parquet(content, SCHEMA).column("k").to_pylist()

    def faults(self, coins: list[str | None]) -> None:
        self.store.coins = coins

    def restart(self) -> None:
        """Recover from the log, as far back as those batches of the txns shard that no version has
        name their rows (`_oldest_named` of `coordinator/server/recovery.py`), then these batches.
        """
        state = self.loaded()
        cut = state.cut if state.cut is not None else -1
        left = [(ts, batch) for ts, batch in self.durable if ts > cut]
        named = [
            inline_ts(source) - 1
            for _, batch in left
            for source in batch.deletes
            if not is_file(source)
        ]
        state = self.loaded(min([self.since, *named]))
        for ts, batch in left:
            state = state.committed(Timestamp(ts), batch)
        self.state = state
        self.rewritten = ()
        self.follow(state)

    def loaded(self, since: int | None = None) -> ShardState:
        """What the log says of this time and what came behind it."""
        since = self.since if since is None else since
        return asyncio.run(
            load_shard(self.store, ShardState(SHARD, SCHEMA, Timestamp(0)), Timestamp(since))
        )

    def checkpoint(self) -> None:
        if self.state.versions:
            with contextlib.suppress(Indeterminate):
                self.write_checkpoint()

    def write_checkpoint(self) -> None:
        number = self.state.versions[-1].number
        asyncio.run(write_checkpoint(self.store, SHARD, number, run_blocking=at_once))


STORE_ACTIONS = st.one_of(
    ACTIONS,
    st.tuples(st.just("restart")),
    st.tuples(st.just("checkpoint")),
    st.tuples(
        st.just("faults"),
        st.lists(st.sampled_from([None, "before", "after"]), max_size=4),
    ),
)


@given(st.lists(STORE_ACTIONS, max_size=25))
@settings(max_examples=150, deadline=None)
def test_flushes_restarts_and_lost_replies_change_no_answer(actions: list[tuple]) -> None:
    model = FlushedModel()
    for name, *arguments in actions:
        getattr(model, name)(*arguments)
    model.check()
    model.faults([])
    model.restart()
    model.check()
    model.flush(0)
    model.checkpoint()
    model.prune(0)
    model.restart()
    model.check()


COMPACT = st.tuples(st.just("compact"), st.lists(st.integers(0, 20), min_size=1, max_size=5))
COMMIT = st.tuples(
    st.just("commit"),
    st.integers(1, 3),
    st.lists(st.integers(1, 3), max_size=1).map(tuple),
    st.lists(st.integers(0, 50), max_size=3),
    st.integers(0, 3),
)
# Commits that delete rows by names which a flush or a compaction has changed meanwhile.
STEPS = st.tuples(
    st.lists(COMMIT, min_size=1, max_size=3),
    st.one_of(
        st.just([("flush", 0)]), st.just([("flush", 0)]), st.lists(STORE_ACTIONS, max_size=3)
    ),
    st.lists(COMPACT, max_size=1),
).map(lambda parts: [action for part in parts for action in part])


@given(st.lists(STEPS, min_size=2, max_size=8))
@settings(max_examples=150, deadline=None)
def test_compactions_change_no_answer(steps: list[list[tuple]]) -> None:
    """V5: whatever a delete calls its rows, at every timestamp, after restarts too."""
    model = FlushedModel()
    for name, *arguments in (action for step in steps for action in step):
        getattr(model, name)(*arguments)
        if name == "flush":
            model.check()
    model.faults([])
    model.commit(1, (), [3, 7], 2)
    model.flush(0)
    model.check()
    model.restart()
    model.check()
    model.checkpoint()
    model.prune(0)
    model.restart()
    model.check()


@given(st.lists(ACTIONS, max_size=20))
@settings(max_examples=60, deadline=None)
def test_a_restart_reads_the_very_versions_that_were_flushed(actions: list[tuple]) -> None:
    """R1."""
    model = FlushedModel()
    for name, *arguments in actions:
        getattr(model, name)(*arguments)
    # Versions that a commit of the tail was named by stay beyond since (V8).
    since = model.state.needed_since(Timestamp(model.since))
    assert model.loaded(since).versions == model.state.pruned(since).versions


def flushed_model(*sizes: int) -> FlushedModel:
    model = FlushedModel()
    for size in sizes:
        model.commit(size, (), [], 0)
        model.flush(0)
    return model


def delete(model: FlushedModel, rows: Deletes) -> None:
    model.now += STEP
    model.state = model.state.committed(Timestamp(model.now), WriteBatch(deletes=rows))


def log_lines(model: FlushedModel, version: int) -> list[str]:
    content = asyncio.run(model.store.read(commit_path(SHARD, version)))
    return [type(action).__name__ for action in decode_commit(content)]


def names(model: FlushedModel) -> list[str]:
    return [n for n in asyncio.run(model.store.list(SHARD)) if "_delta_log" not in n]


def test_a_retry_writes_nothing_twice() -> None:
    model = FlushedModel()
    model.commit(2, (), [0], 0)
    model.faults(["after", None, "after"])
    for _ in range(3):
        model.flush(0)
        model.now += STEP
    assert len(names(model)) == 1
    (loaded,), (kept,) = model.loaded().versions, model.state.versions
    assert loaded == kept


def test_a_retry_at_a_later_cut_adds_only_what_is_new() -> None:
    model = FlushedModel()
    model.commit(2, (), [], 0)
    model.faults([None, "after"])
    model.flush(0)
    assert model.state.versions == ()
    model.commit(1, (), [0, 1], 1)
    model.flush(0)
    assert [v.number for v in model.state.versions] == [1]
    assert [v.number for v in model.loaded().versions] == [0, 1]
    model.check()
    # The file that died with the second attempt leaves the table in the next version.
    model.commit(1, (), [], 0)
    model.flush(0)
    assert log_lines(model, 2) == ["CommitInfo", "Txn", "Txn", "RemoveFile", "AddFile"]
    model.restart()
    model.check()


def test_a_foreign_version_is_never_overwritten() -> None:
    model = flushed_model(2)
    entry = b'{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n'
    path = commit_path(SHARD, 1)
    asyncio.run(model.store.create(path, entry))
    model.commit(1, (), [], 0)
    with pytest.raises(ForeignWriter):
        model.flush(0)
    assert asyncio.run(model.store.read(path)) == entry
    loaded = model.loaded()
    assert loaded.fenced
    assert loaded.versions[-1].number == 0


def test_a_version_with_other_rows_is_a_foreign_writers() -> None:
    model = flushed_model(2)
    other = model.state.committed(Timestamp(model.now + STEP), WriteBatch(rows_of(1, 2, 3)))
    cut = Timestamp(model.now + STEP)
    asyncio.run(flush(model.store, other, cut, run_blocking=at_once))
    model.commit(1, (), [], 0)
    with pytest.raises(ForeignWriter):
        model.flush(0)


def test_a_deleted_row_gets_a_vector_and_no_file() -> None:
    model = flushed_model(3)
    model.commit(0, (), [1], 0)
    model.flush(0)
    # The table's first vector comes with the feature (G4), the second finds it told.
    told = ["CommitInfo", "Protocol", "Metadata", "Txn", "RemoveFile", "AddFile"]
    assert log_lines(model, 1) == told
    model.commit(0, (), [2], 0)
    model.flush(0)
    assert log_lines(model, 2) == ["CommitInfo", "Txn", "RemoveFile", "AddFile"]
    assert len(names(model)) == 1


def test_large_vectors_have_a_file() -> None:
    model = flushed_model(4_000)
    delete(model, {inline_source(Timestamp(STEP)): BitMap64(range(0, 4_000, 3))})
    model.flush(0)
    vector = next(model.state.versions[-1].files.live_files()).vector
    assert vector is not None
    assert vector.size_bytes > INLINE_BYTES_MAX
    assert data_path(SHARD, vector.file_name) in names(model)
    asyncio.run(write_checkpoint(model.store, SHARD, 1))
    model.since = model.now * 2
    assert [len(f.deleted) for f in model.loaded().versions[0].files.live_files()] == [1_334]


def test_a_dead_file_leaves_the_table() -> None:
    model = flushed_model(2, 1)
    delete(model, {inline_source(Timestamp(STEP)): BitMap64([0, 1])})
    model.flush(0)
    assert log_lines(model, 2) == ["CommitInfo", "Txn", "RemoveFile"]
    assert len(model.state.versions[-1].files) == 1


def test_a_file_that_was_dead_on_arrival_leaves_however_late_the_next_flush_is() -> None:
    model = flushed_model(2)
    model.commit(2, (), [], 0)
    delete(model, {inline_source(Timestamp(model.now)): BitMap64([0, 1])})
    model.flush(0)
    assert [live.dead for live in model.state.versions[-1].files.live_files()] == [False, True]
    model.now += STEP
    model.prune(0)
    assert not model.state.versions[-1].added
    model.commit(1, (), [], 0)
    model.flush(0)
    assert [live.dead for live in model.state.versions[-1].files.live_files()] == [False, False]
    assert model.loaded() == model.state


def test_an_empty_table_has_a_first_version() -> None:
    model = FlushedModel()
    model.flush(0)
    assert log_lines(model, 0) == ["CommitInfo", "Protocol", "Metadata", "Txn", "Txn"]
    assert model.loaded() == model.state


def test_checkpoints_shorten_recovery() -> None:
    model = flushed_model(*[1] * 12)
    model.checkpoint()
    model.commit(1, (), [3], 0)
    model.flush(0)
    model.prune(0)
    state = model.loaded()
    assert [v.number for v in state.versions] == [11, 12]
    reads: list[str] = []
    inner_read = model.store.inner.read

    async def recorded(name: str) -> bytes:
        reads.append(name)
        return await inner_read(name)

    model.store.inner.read = recorded  # type: ignore[method-assign]
    assert model.loaded() == state
    assert reads == [checkpoint_path(SHARD, 11), commit_path(SHARD, 12)]


def test_a_checkpoint_after_since_is_not_used() -> None:
    model = flushed_model(1, 1, 1)
    model.checkpoint()
    assert [v.number for v in model.loaded().versions] == [0, 1, 2]


def test_a_torn_checkpoint_is_passed_over() -> None:
    model = flushed_model(1, 1, 1)
    asyncio.run(model.store.create(checkpoint_path(SHARD, 2), TORN))
    model.prune(-1)
    assert model.loaded().versions == model.state.versions


def test_a_torn_log_entry_is_refused() -> None:
    model = flushed_model(1)
    asyncio.run(model.store.create(commit_path(SHARD, 1), b'{"commitInfo":{"timesta'))
    with pytest.raises(Corrupt):
        model.loaded()


def test_a_gap_in_the_log_is_refused() -> None:
    model = flushed_model(1, 1, 1)
    asyncio.run(model.store.delete(commit_path(SHARD, 1)))
    with pytest.raises(Corrupt, match="gap"):
        model.loaded()


def test_another_schema_is_refused() -> None:
    model = flushed_model(1)
    other = pa.schema([("k", pa.string())])
    with pytest.raises(Corrupt, match="schema"):
        asyncio.run(load_shard(model.store, ShardState(SHARD, other, Timestamp(0)), Timestamp(0)))


def test_checkpoints_keep_tombstones_until_they_expire() -> None:
    model = flushed_model(2, 2)
    delete(model, {inline_source(Timestamp(STEP)): BitMap64([0])})
    model.flush(0)
    model.checkpoint()
    content = asyncio.run(model.store.read(checkpoint_path(SHARD, 2)))
    state = decode_checkpoint(content)
    assert len(state.removes) == 1
    assert all(not add.data_change for add in state.adds.values())
