"""Vacuum deletes what nobody can read any more, and nothing else; the log stays readable."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from coordinator.driver.maintenance_effects import MaintenanceEffects
from storage.batch import ShardView
from storage.check import ShardRecord, check_shard
from storage.delta.layout import checkpoint_path, checksum_path, commit_path, data_path
from storage.delta.maintenance import write_checkpoint
from storage.delta.recovery import list_log
from storage.delta.vacuum import Vacuumed, nobody_else, vacuum_shard
from storage.delta.vacuum_plan import Vacuuming, names_in_use
from storage.errors import Indeterminate
from storage.memory import MemoryStash
from storage.shard import Version
from storage.txns import TxnsShard
from storage.types import Epoch, ShardId, Timestamp, inline_source
from tests.unit.storage.delta.faulty_store import TORN
from tests.unit.storage.delta.model import SCHEMA, SHARD, STEP
from tests.unit.storage.delta.test_flush import STEPS, FlushedModel, delete

T = TypeVar("T")


async def at_once(work: Callable[[], T]) -> T:
    return work()


@dataclass
class VacuumedModel(FlushedModel):
    """The model over a table that promises nothing beyond since; views read the store itself."""

    suspects: frozenset[str] = frozenset()
    deleted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = replace(self.state, retention_us=0)

    def seen(self, view: ShardView) -> list[int]:
        for part in view.files:
            self.read(part.file.name)
        return super().seen(view)

    def vacuum(self) -> None:
        with contextlib.suppress(Indeterminate):
            done = asyncio.run(vacuum_shard(self.store, self.vacuuming(), run_blocking=at_once))
            self.suspects = done.unnamed
            self.deleted += done.deleted

    def vacuuming(self) -> Vacuuming:
        self.state = self.state.pruned(Timestamp(self.since))
        version = self.state.versions[-1] if self.state.versions else None
        return Vacuuming(
            SHARD,
            number=-1 if version is None else version.number,
            cut=Timestamp(-1) if version is None else version.cut,
            since=self.state.needed_since(Timestamp(self.since)),
            frontier=Timestamp(self.now + STEP),
            ticks_per_ms=1_000,
            in_use=names_in_use(self.state, self.rewritten, ()),
            suspects=self.suspects,
        )


VACUUM_STEPS = st.tuples(
    STEPS,
    st.sampled_from(
        [(), (("vacuum",),), (("prune", 1), ("vacuum",)), (("checkpoint",), ("prune", 0))]
    ),
).map(lambda parts: [*parts[0], *parts[1]])


@given(st.lists(VACUUM_STEPS, min_size=2, max_size=8))
@settings(max_examples=100, deadline=None)
def test_vacuum_changes_no_answer(steps: list[list[tuple]]) -> None:
    """Y1, Y2, Y4: at every timestamp from since on, after crashes in the middle, after restarts."""
    model = VacuumedModel()
    for name, *arguments in (action for step in steps for action in step):
        getattr(model, name)(*arguments)
        if name == "vacuum":
            model.check()
    model.faults([])
    model.commit(1, (), [3, 7], 2)
    model.flush(0)
    model.checkpoint()
    model.prune(0)
    model.vacuum()
    model.vacuum()
    model.check()
    assert errors(model) == []
    model.restart()
    model.check()


def test_vacuum_keeps_what_tells_where_a_commit_of_the_tail_deletes() -> None:
    """V8: its rows were flushed and rewritten between its read and its commit; then a crash."""
    model = VacuumedModel()
    model.commit(1, (), [], 0)
    model.flush(0)
    model.compact([0])
    model.commit(1, (), [], 0)
    model.flush(0)
    model.commit(1, (), [], 0)
    model.commit(1, (), [0], 2)
    model.prune(0)
    model.vacuum()
    model.restart()
    model.check()


def errors(model: VacuumedModel) -> list[str]:
    present = Timestamp(model.now + STEP)
    record = ShardRecord(SHARD, SCHEMA, Timestamp(0), Timestamp(0), present=present)
    return [str(f) for f in asyncio.run(check_shard(model.store, record)) if f.severity == "error"]


def compacted_model() -> VacuumedModel:
    """Two files rewritten into one, and a reader who may still read before it."""
    model = VacuumedModel()
    for _ in range(2):
        model.commit(2, (), [], 0)
        model.flush(0)
    model.compact([0, 1])
    model.commit(1, (), [], 0)
    model.flush(0)
    return model


def data_files(model: VacuumedModel) -> set[str]:
    return {name for name in asyncio.run(model.store.list(SHARD)) if "_delta_log" not in name}


def vacuumed(model: VacuumedModel, vacuuming: Vacuuming) -> Vacuumed:
    return asyncio.run(vacuum_shard(model.store, vacuuming, run_blocking=at_once))


def test_files_of_a_compaction_stay_while_somebody_may_read_before_it() -> None:
    model = compacted_model()
    before = data_files(model)
    model.since = 2 * STEP
    model.vacuum()
    assert data_files(model) == before
    model.check()
    model.since = model.now + STEP
    model.vacuum()
    assert len(before - data_files(model)) == 2
    model.check()


def test_what_the_table_promises_foreign_readers_is_kept() -> None:
    model = VacuumedModel()
    model.state = replace(model.state, retention_us=60_000_000)
    for _ in range(2):
        model.commit(2, (), [], 0)
        model.flush(0)
    model.compact([0, 1])
    model.commit(1, (), [], 0)
    model.flush(0)
    before = data_files(model)
    model.since = model.now + STEP
    model.vacuum()
    assert data_files(model) == before
    model.now += 61_000_000
    model.since = model.now
    model.vacuum()
    assert len(before - data_files(model)) == 2


def test_orphans_go_the_second_time_and_strangers_never() -> None:
    model = compacted_model()
    strangers = ["part-00000-0c4e-c000.snappy.parquet", "notes.txt", "part-x.parquet"]
    ours = ["part-5-0123456789abcdef.parquet", "part-c7-0123456789abcdef.parquet"]
    ours += ["part-0123456789abcdef0123456789abcdef.parquet"]
    ours += ["part-0123456789abcdef01234567-00001.parquet", ".0123456789abcdef01234567/part-0"]
    flushing = f"part-{model.now + STEP}-0123456789abcdef.parquet"
    for name in (*strangers, *ours, flushing):
        asyncio.run(model.store.create(data_path(SHARD, name), b"x"))
    first = vacuumed(model, model.vacuuming())
    assert (set(first.deleted), first.unnamed) == (set(), frozenset(ours))
    held = replace(model.vacuuming(), suspects=first.unnamed, in_use=frozenset(ours[:1]))
    held = replace(held, in_use=held.in_use | model.vacuuming().in_use)
    second = vacuumed(model, held)
    assert set(second.deleted) == {data_path(SHARD, name) for name in ours[1:]}
    assert {data_path(SHARD, name) for name in (*strangers, ours[0], flushing)} <= data_files(model)


def six_versions(checkpoint_at: int) -> VacuumedModel:
    """A log of six versions with a checkpoint at one of them, counted from 1."""
    model = VacuumedModel()
    for _ in range(6):
        model.commit(1, (), [], 0)
        model.flush(0)
        if model.now == checkpoint_at * STEP:
            model.checkpoint()
    return model


def test_the_log_is_cleaned_up_to_a_checkpoint_and_stays_readable() -> None:
    model = six_versions(checkpoint_at=3)
    model.checkpoint()
    model.since = 4 * STEP
    model.vacuum()
    assert asyncio.run(list_log(model.store, SHARD)) == ([2, 3, 4, 5], [2, 5])
    assert errors(model) == []
    model.restart()
    model.check()
    # Asked for more history than there is: readable from the checkpoint on.
    model.since = 0
    state = model.loaded()
    assert (state.since, [v.number for v in state.versions]) == (33_000, [2, 3, 4, 5])


def cleaned_model() -> tuple[VacuumedModel, dict[str, bytes]]:
    """A log that begins at version 2, and what a vacuum took of it."""
    model = six_versions(checkpoint_at=2)
    names = asyncio.run(model.store.list(SHARD))
    taken = {name: asyncio.run(model.store.read(name)) for name in names}
    model.since = 4 * STEP
    model.vacuum()
    assert asyncio.run(list_log(model.store, SHARD)) == ([2, 3, 4, 5], [2])
    left = asyncio.run(model.store.list(SHARD))
    return model, {name: content for name, content in taken.items() if name not in left}


def test_a_checkpoint_that_comes_after_its_log_was_cleaned_is_passed_over() -> None:
    """One that was slow, or on the way of a coordinator that was deposed."""
    model, taken = cleaned_model()
    late = checkpoint_path(SHARD, 1)
    asyncio.run(model.store.create(late, taken[late]))
    for model.since in (0, 2 * STEP):
        assert [version.number for version in model.loaded().versions] == [2, 3, 4, 5]
    assert errors(model) == []


def told_damaged(model: VacuumedModel, version: Version) -> list[ShardId]:
    """What checkpoints and checksums call damaged that come after a version."""
    damaged: list[ShardId] = []
    store, stash = model.store, MemoryStash()
    txns = TxnsShard(stash, Epoch(1))
    upkeep = MaintenanceEffects(store, stash, txns, at_once, nobody_else, damaged.append, True)
    asyncio.run(upkeep.after_flush({SHARD: version}))
    return damaged


def test_a_checksum_that_is_slower_than_a_vacuum_calls_nothing_damaged() -> None:
    """Seed 7343 of the simulation of user types."""
    model, _ = cleaned_model()
    first = Version(0, Timestamp(STEP), model.state.versions[-1].files)
    assert told_damaged(model, first) == []
    assert told_damaged(model, model.state.versions[-1]) == []
    assert checksum_path(SHARD, 5) in asyncio.run(model.store.list(SHARD))
    asyncio.run(model.store.delete(commit_path(SHARD, 5)))
    asyncio.run(model.store.delete(commit_path(SHARD, 4)))
    assert told_damaged(model, model.state.versions[-1]) == [SHARD]


def test_a_checkpoint_that_cannot_be_read_is_no_reason_to_clean() -> None:
    model = VacuumedModel()
    for _ in range(3):
        model.commit(1, (), [], 0)
        model.flush(0)
    asyncio.run(model.store.create(checkpoint_path(SHARD, 2), TORN))
    model.since = model.now + STEP
    model.vacuum()
    assert asyncio.run(list_log(model.store, SHARD))[0] == [0, 1, 2]
    model.restart()
    model.check()


def test_a_cleaned_log_that_is_younger_than_promised_is_a_finding() -> None:
    model = VacuumedModel()
    model.state = replace(model.state, retention_us=60_000_000)
    for _ in range(2):
        model.commit(1, (), [], 0)
        model.flush(0)
    asyncio.run(write_checkpoint(model.store, SHARD, 1))
    asyncio.run(model.store.delete(commit_path(SHARD, 0)))
    assert any("should have" in problem for problem in errors(model))


def test_vectors_of_an_old_version_go_and_their_name_never_comes_back() -> None:
    model = VacuumedModel()
    model.commit(4_000, (), [], 0)
    model.flush(0)
    for part in range(2):
        rows = BitMap64(range(part, 4_000, 3))
        delete(model, {inline_source(Timestamp(STEP)): rows})
        model.flush(0)
    vectors = {name for name in data_files(model) if "deletion_vector" in name}
    assert len(vectors) == 2
    model.since = model.now + STEP
    model.vacuum()
    left = {name for name in data_files(model) if "deletion_vector" in name}
    assert len(left) == 1
    assert errors(model) == []
    assert model.loaded().versions[-1].files == model.state.versions[-1].files
