"""`check_shard` finds nothing in what flushes write, and everything that is broken afterwards."""

import asyncio
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from storage.batch import DataFile, WriteBatch
from storage.check import Finding, ShardRecord, check_shard
from storage.delta.layout import checkpoint_path, commit_path, data_path, last_checkpoint_path
from storage.types import Source, Timestamp, inline_source
from tests.unit.storage.delta.model import ACTIONS, SCHEMA, SHARD, STEP
from tests.unit.storage.delta.test_flush import FlushedModel


def findings(model: FlushedModel, *, applied: int = 0) -> list[Finding]:
    batches = [(Timestamp(ts), batch) for ts, batch in model.durable if ts > applied]
    record = ShardRecord(
        SHARD, SCHEMA, Timestamp(0), Timestamp(applied), batches, present=Timestamp(model.now)
    )
    return asyncio.run(check_shard(model.store, record))


def problems(model: FlushedModel, *, applied: int = 0) -> list[tuple[str, str]]:
    return [
        (f.severity, f"{f.place.removeprefix(SHARD + '/')}: {f.problem}")
        for f in findings(model, applied=applied)
    ]


@given(st.lists(st.one_of(ACTIONS, st.tuples(st.just("checkpoint"))), max_size=20))
@settings(max_examples=40, deadline=None)
def test_what_flushes_write_is_sound(actions: list[tuple]) -> None:
    model = FlushedModel()
    model.commit(2, (), [], 0)
    model.flush(0)
    for name, *arguments in actions:
        getattr(model, name)(*arguments)
    cut = model.state.cut
    assert cut is not None
    assert problems(model) == []
    assert problems(model, applied=cut) == []


def sound_model() -> FlushedModel:
    """Two data files, one of them staged; deletes inline and in a file; a checkpoint."""
    model = FlushedModel()
    model.commit(3_000, (4,), [], 0)
    model.flush(0)
    model.now += STEP
    rows = {inline_source(Timestamp(STEP)): BitMap64(range(0, 3_000, 7))}
    batch = model.make_batch(model.now, 0, (), rows)
    model.state = model.state.committed(Timestamp(model.now), batch)
    model.flush(0)
    model.checkpoint()
    assert problems(model) == []
    return model


def names(model: FlushedModel, *, part: str) -> str:
    (name,) = [n for n in asyncio.run(model.store.list(SHARD)) if f"/{part}" in n]
    return name


def replace(model: FlushedModel, name: str, change: Callable[[bytes], bytes]) -> None:
    content = asyncio.run(model.store.read(name))
    asyncio.run(model.store.delete(name))
    asyncio.run(model.store.create(name, change(content)))


def only_error(model: FlushedModel, *, applied: int = 0) -> str:
    ((severity, problem),) = problems(model, applied=applied)
    assert severity == "error"
    return problem


def errors(model: FlushedModel) -> str:
    return " | ".join(problem for severity, problem in problems(model) if severity == "error")


@pytest.mark.parametrize("part", ["part-", "staged-", "deletion_vector"])
def test_a_missing_file(part: str) -> None:
    model = sound_model()
    asyncio.run(model.store.delete(names(model, part=part)))
    assert "NotFound" in only_error(model) or "are gone" in only_error(model)


@pytest.mark.parametrize("part", ["part-", "staged-"])
def test_a_torn_data_file(part: str) -> None:
    model = sound_model()
    replace(model, names(model, part=part), lambda content: content[:-20])
    assert ["bytes instead of" in p or "cannot be read" in p for _, p in problems(model)] == [
        True,
        True,
    ]


def test_flipped_deletion_vector() -> None:
    model = sound_model()
    replace(model, names(model, part="deletion"), lambda c: c[:100] + bytes([c[100] ^ 1]) + c[101:])
    assert "checksum is wrong" in only_error(model)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (rb"\"k\":2999}", rb"\"k\":2998}", "outside its bounds"),
        (rb"\"nullCount\":{\"k\":0}", rb"\"nullCount\":{\"k\":1}", "nulls instead of"),
        (rb"\"numRecords\":3000", rb"\"numRecords\":3001", "rows instead of"),
        (b'"inCommitTimestamp":13', b'"inCommitTimestamp":14', "C1"),
    ],
)
def test_statistics_that_do_not_bound_the_data(old: bytes, new: bytes, problem: str) -> None:
    model = FlushedModel()
    model.commit(3_000, (), [], 0)
    model.flush(0)
    # What was written wrong from the start: a checksum is no help against it.
    replace(
        model,
        commit_path(SHARD, 0),
        lambda content: re.sub(rb',"checksum":\d+', b"", content).replace(old, new),
    )
    assert problem in errors(model)


def test_a_commit_that_was_tidied_but_never_flushed() -> None:
    model = sound_model()
    asyncio.run(model.store.delete(commit_path(SHARD, 0)))
    assert "log entries are missing" in errors(model)


def test_a_whole_log_that_is_gone() -> None:
    model = sound_model()
    for number in (0, 1):
        asyncio.run(model.store.delete(commit_path(SHARD, number)))
    assert "log entries are missing" in errors(model)
    asyncio.run(model.store.delete(checkpoint_path(SHARD, 1)))
    assert "counts as applied" not in errors(model)
    found = [p for s, p in problems(model, applied=model.now + STEP) if s == "error"]
    assert found == ["_delta_log: the table has no log, but a cut has been applied"]


def test_a_lost_newest_version() -> None:
    model = sound_model()
    asyncio.run(model.store.delete(commit_path(SHARD, 1)))
    assert "newer than every log entry" in errors(model)


def test_an_applied_commit_that_is_not_in_the_log() -> None:
    model = sound_model()
    model.commit(1, (), [], 0)
    record = ShardRecord(
        SHARD, SCHEMA, Timestamp(0), Timestamp(model.now), [(Timestamp(model.now), WriteBatch())]
    )
    (finding,) = asyncio.run(check_shard(model.store, record))
    assert "counts as applied, but is not" in finding.problem


def test_a_flushed_commit_with_other_rows() -> None:
    model = sound_model()
    ts, batch = model.durable[0]
    assert batch.inserts is not None
    model.durable[0] = (ts, WriteBatch(batch.inserts.slice(1), batch.staged))
    assert f"the commit at {ts} is not in the log" in only_error(model)


def test_staged_files_of_waiting_batches_are_checked_and_no_orphans() -> None:
    model = sound_model()
    model.commit(0, (5,), [], 0)
    assert problems(model) == []
    missing = DataFile(Source("staged-lost.parquet"), 1, 1, "{}")
    model.durable.append((model.now + STEP, WriteBatch(staged=(missing,))))
    assert "staged-lost" in only_error(model)


def test_orphans_are_listed() -> None:
    model = sound_model()
    asyncio.run(model.store.create(data_path(SHARD, "part-lost.parquet"), b""))
    asyncio.run(model.store.create(f"{last_checkpoint_path(SHARD)}.tmp", b""))
    assert problems(model) == [
        ("orphan", "_delta_log/_last_checkpoint.tmp: no version names this file"),
        ("orphan", "part-lost.parquet: no version names this file"),
    ]


def test_a_checkpoint_that_differs_from_the_log() -> None:
    model = sound_model()
    other = FlushedModel()
    other.commit(2, (), [], 0)
    other.flush(0)
    other.commit(2, (), [], 0)
    other.flush(0)
    other.checkpoint()
    path = checkpoint_path(SHARD, 1)
    foreign = asyncio.run(other.store.read(path))
    replace(model, path, lambda _: foreign)
    assert "something else than the log" in only_error(model)


def test_every_flipped_bit_of_the_values_and_of_the_log_is_found() -> None:
    """Also those that leave values within their bounds, and JSON that can be read."""
    log = asyncio.run(sound_model().store.read(commit_path(SHARD, 0)))
    rng = random.Random(7)
    for position in rng.sample(range(len(log)), 60):
        model = sound_model()
        replace(model, commit_path(SHARD, 0), lambda content, at=position: flipped(content, at))
        # The name of the checksum is the one thing that it cannot cover.
        if b'"checksum":' in asyncio.run(model.store.read(commit_path(SHARD, 0))):
            assert errors(model), position
    name = names(sound_model(), part="part-")
    for position in rng.sample(range(200, 2_000), 20):
        model = sound_model()
        replace(model, name, lambda content, at=position: flipped(content, at))
        assert errors(model), position


def flipped(content: bytes, position: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 1
    return bytes(changed)
