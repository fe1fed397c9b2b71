"""The contract of `ingest/reader.py` for readers with a slot, of upstreams that go on to commit.

`test_source_reader.py` has the part that holds for readers without one as well. A reader that
breaks one of the promises is planted in `tests/ingest/postgres/test_planted_faults.py`.
"""

from __future__ import annotations

import asyncio

import pytest

from ingest.reader import ReaderFailure, ReadLimits, SourceProgress
from tests.ingest.subjects import (
    Follower,
    PostgresSubject,
    ScriptedSubject,
    Subject,
    assert_whole,
    fill,
)
from tests.ingest.upstream_database import run

ONE = ReadLimits(size=1, wait_ms=20)


@pytest.fixture(params=["scripted", "postgres", "parts"])
def subject(request: pytest.FixtureRequest) -> Subject:
    if request.param == "scripted":
        return ScriptedSubject()
    database = request.getfixturevalue("database")
    return PostgresSubject(database, parted=request.param == "parts")


def test_a_snapshot_and_the_stream_behind_it_are_the_table(subject: Subject) -> None:
    async def scenario() -> None:
        subject.commit([(1, "a"), (2, "b")])
        follower = Follower(subject.reader())
        await follower.load()
        assert follower.rows == subject.contents()
        subject.commit([(1, None), (2, "c"), (3, "d")])
        subject.commit([(3, "e")])
        await follower.catch_up()
        assert follower.rows == subject.contents() == {2: "c", 3: "e"}
        await follower.reader.release()

    run(scenario())


def test_what_is_committed_before_the_stream_begins_is_read(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        follower.tables = list((await follower.reader.inspect()).tables)
        progress = await follower.reader.prepare(follower.tables)
        subject.commit([(1, "a")])
        rows = [part.rows.num_rows async for part in follower.reader.snapshot()]
        assert sum(rows) == 0, "the snapshot is at the position of the slot"
        await follower.start(follower.reader, progress)
        await follower.catch_up()
        assert follower.rows == {1: "a"}
        await follower.reader.release()

    run(scenario())


def test_reading_again_gives_the_same_whatever_the_limits(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        start = follower.progress
        fill(subject)
        await follower.catch_up(ReadLimits())
        for size in (1, 150, 1 << 20):
            again = Follower(subject.reader())
            again.tables = follower.tables
            await again.start(again.reader, start)
            await again.catch_up(ReadLimits(size=size, wait_ms=20))
            assert again.changes() == follower.changes()
            assert_whole(again)
        await again.reader.release()

    run(scenario())


def test_beyond_the_limit_a_batch_has_one_transaction(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        fill(subject)
        await follower.catch_up(ONE)
        for batch in follower.batches:
            marks = {change.new[1] for rows in batch.changes.values() for change in rows}
            assert len(marks) <= 1
        assert_whole(follower)
        await follower.reader.release()

    run(scenario())


def test_reading_goes_on_behind_every_position(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        start = follower.progress
        fill(subject)
        await follower.catch_up(ONE)
        everything = follower.changes()
        read = 0
        for batch in follower.batches:
            read += sum(map(len, batch.changes.values()))
            again = Follower(subject.reader())
            again.tables = follower.tables
            await again.start(again.reader, SourceProgress(batch.upto, start.identity))
            await again.catch_up(ReadLimits())
            assert again.changes() == everything[read:]
        await again.reader.release()

    run(scenario())


def test_positions_only_advance_and_an_empty_read_returns(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        before = follower.progress.position["lsn"]
        for _ in range(3):
            batch = await follower.read(ReadLimits(wait_ms=1))
            assert not batch.changes
            assert batch.upto["lsn"] >= before
            before = batch.upto["lsn"]
        await follower.reader.release()

    run(scenario())


def test_nothing_is_acknowledged_that_was_not_given(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        fill(subject)
        first = subject.acknowledged()
        await follower.catch_up(ONE)
        assert subject.acknowledged() == first, "reading acknowledges nothing"
        beyond = {"lsn": follower.progress.position["lsn"] + 1}
        with pytest.raises(AssertionError, match="given"):
            await follower.reader.acknowledge(beyond)
        upto = follower.batches[1].upto
        await follower.reader.acknowledge(upto)
        # The answer to this comes after upstream has heard the acknowledgement.
        await follower.catch_up()
        assert (subject.acknowledged() or 0) <= follower.progress.position["lsn"]
        await follower.reader.release()

    run(scenario())


def test_lost_positions_need_a_person(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        fill(subject)
        await follower.reader.close()
        subject.lose()
        with pytest.raises(ReaderFailure) as failed:
            await follower.start(subject.reader(), follower.progress)
        assert failed.value.broken
        await follower.reader.release()

    run(scenario())


def test_another_upstream_behind_the_same_name_is_noticed(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        other = {**follower.progress.identity, "system": "7"}
        with pytest.raises(ReaderFailure) as failed:
            await follower.start(
                subject.reader(), SourceProgress(follower.progress.position, other)
            )
        assert failed.value.broken
        await follower.reader.release()

    run(scenario())


def test_a_position_that_upstream_has_not_reached_is_noticed(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        ahead = {"lsn": (await follower.reader.newest())["lsn"] + (1 << 30)}
        with pytest.raises(ReaderFailure) as failed:
            await follower.start(
                subject.reader(), SourceProgress(ahead, follower.progress.identity)
            )
        assert failed.value.broken
        await follower.reader.release()

    run(scenario())


def test_without_a_slot_nothing_starts(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        await follower.reader.release()
        with pytest.raises(ReaderFailure) as failed:
            await follower.start(subject.reader(), follower.progress)
        assert failed.value.broken

    run(scenario())


def test_release_leaves_nothing_however_often_it_is_called(subject: Subject) -> None:
    async def scenario() -> None:
        reader = subject.reader()
        await reader.release()
        follower = Follower(reader)
        await follower.load()
        assert subject.acknowledged() is not None
        # Another one, as after a crash, while the slot is in use.
        await subject.reader().release()
        assert subject.acknowledged() is None
        await reader.release()
        await reader.release()

    run(scenario())


def test_preparing_again_takes_the_place_of_the_first_try(subject: Subject) -> None:
    async def scenario() -> None:
        subject.commit([(1, "a")])
        first = Follower(subject.reader())
        await first.load()
        subject.commit([(2, "b")])
        second = Follower(subject.reader())
        await second.load()
        assert second.rows == {1: "a", 2: "b"}
        subject.commit([(3, "c")])
        await second.catch_up()
        assert second.rows == subject.contents()
        await second.reader.release()
        await first.reader.close()

    run(scenario())


def test_a_successor_takes_the_slot_from_a_paused_leader(subject: Subject) -> None:
    async def scenario() -> None:
        paused = Follower(subject.reader())
        await paused.load()
        successor = Follower(subject.reader())
        successor.tables = paused.tables
        await successor.start(successor.reader, paused.progress)
        subject.commit([(1, "a")])
        await successor.catch_up()
        assert successor.rows == {1: "a"}
        failure = await paused.read_until_failure(ReadLimits(wait_ms=500))
        assert not failure.broken, "the old leader may try again, and finds out who leads"
        await paused.reader.close()
        await successor.reader.release()

    run(scenario())


def test_the_newest_position_of_an_idle_upstream_is_reached(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        subject.commit([(1, "a")])
        for _ in range(3):
            await follower.catch_up()
            assert follower.rows == {1: "a"}
        await follower.reader.release()

    run(scenario())


def test_the_newest_position_is_asked_while_a_read_waits(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()

        async def read_up_to(asked: asyncio.Future[int]) -> None:
            while not asked.done() or follower.progress.position["lsn"] < asked.result():
                await follower.read(ReadLimits(wait_ms=200))

        asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as group:
            group.create_task(read_up_to(asked))
            subject.commit([(1, "a")])
            asked.set_result((await follower.reader.newest())["lsn"])
        assert follower.rows == {1: "a"}
        await follower.reader.release()

    run(scenario())


def test_closing_ends_a_read_that_waits(subject: Subject) -> None:
    async def scenario() -> None:
        follower = Follower(subject.reader())
        await follower.load()
        await follower.catch_up()

        async def read() -> None:
            failure = await follower.read_until_failure(ReadLimits(wait_ms=60_000))
            assert not failure.broken

        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            await asyncio.sleep(0)
            await follower.reader.close()
        await subject.reader().release()

    run(scenario())
