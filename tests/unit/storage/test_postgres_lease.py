"""Who leads a stash in PostgreSQL, and who takes over when."""

import asyncio

import asyncpg
import pytest

from storage.errors import Fenced, NewerFormat
from storage.postgres_lease import CONNECTS_S, FREE_S, HELD_S, LeaderWatch, Sign, observe_leader
from storage.postgres_link import Link
from storage.stash import FORMAT, Put
from storage.stash_postgres import PostgresStash
from storage.types import Epoch
from tests.unit.storage.postgres_scene import (
    A_WAITS,
    backends,
    blocked,
    outcome,
    put,
    tell,
    terminate,
    until_led,
)


def test_a_take_over_waits_for_the_transaction_under_way(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        old = await stash.fence()
        await put(stash, old, "a", b"older")
        other = await PostgresStash.open(dsn)
        try:
            async with blocked(dsn, A_WAITS) as release, asyncio.TaskGroup() as tasks:
                under_way = tasks.create_task(outcome(put(stash, old, "a", b"old")))
                await backends(dsn, "meridian stash", waiting=1)
                taking = tasks.create_task(other.fence())
                await backends(dsn, "meridian stash", waiting=2)
                assert not taking.done()
                await release()
                assert await under_way is None
                assert await taking == old + 1
            assert await other.read("c", "a") == b"old"
            assert await outcome(put(stash, old, "a", b"late")) is Fenced
            assert await outcome(stash.confirm(old)) is Fenced
        finally:
            await other.close()

    tell(story, dsn)


def test_a_transaction_that_waits_for_a_take_over_is_fenced(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        old = await stash.fence()
        await put(stash, old, "a", b"old")
        taking = "UPDATE meridian.stash SET epoch = epoch + 1, known_epoch = epoch + 1, session = 1"
        async with blocked(dsn, taking) as release, asyncio.TaskGroup() as tasks:
            late = tasks.create_task(outcome(put(stash, old, "a", b"late")))
            await backends(dsn, "meridian stash", waiting=1)
            await release()
            assert await late is Fenced
        assert await stash.read("c", "a") == b"old"

    tell(story, dsn)


def test_of_two_who_stand_by_one_takes_over_from_a_leader_that_is_gone(dsn: str) -> None:
    async def story(leader: PostgresStash, dsn: str) -> None:
        first = await leader.fence()
        await until_led(leader)
        waiting = [await PostgresStash.open(dsn) for _ in range(2)]
        try:
            async with asyncio.TaskGroup() as tasks:
                takers = [tasks.create_task(stash.stand_by()) for stash in waiting]
                await backends(dsn, "meridian watch")
                await leader.confirm(first)
                assert not any(taker.done() for taker in takers)
                await leader.close()
                await asyncio.wait(takers, return_when=asyncio.FIRST_COMPLETED)
                done = [taker.done() for taker in takers]
                assert sum(done) == 1
                new = waiting[done.index(True)]
                await new.confirm(Epoch(first + 1))
                second = await new.fence()
                assert second == first + 2
                for taker in takers:
                    taker.cancel()
            await new.confirm(second)
        finally:
            for stash in waiting:
                await stash.close()

    tell(story, dsn)


def test_a_leader_takes_its_lock_again(dsn: str) -> None:
    async def story(leader: PostgresStash, dsn: str) -> None:
        await leader.fence()
        for _ in range(3):
            await until_led(leader)
            await terminate(dsn, await backends(dsn, "meridian lease"))
        await until_led(leader)

    tell(story, dsn)


def test_a_new_leader_takes_the_lock_from_one_that_only_seems_to_live(dsn: str) -> None:
    """A paused process, or one behind a cut network: its connection stays, with the lock."""

    async def story(leader: PostgresStash, dsn: str) -> None:
        old = await leader.fence()
        await until_led(leader)
        (held_by,) = await backends(dsn, "meridian lease")
        # It does not beat any more, and lets go of nothing.
        assert leader._lease._beating is not None
        leader._lease._beating.cancel()
        other = await PostgresStash.open(dsn)
        try:
            new = await other.fence()
            while held_by in await backends(dsn, "meridian lease"):
                pass
            await until_led(other)
            await other.confirm(new)
            assert await outcome(leader.confirm(old)) is Fenced
        finally:
            await other.close()

    tell(story, dsn)


def test_who_only_looks_is_told_that_somebody_leads(dsn: str) -> None:
    async def story(leader: PostgresStash, dsn: str) -> None:
        await leader.refuse_if_led()
        await leader.fence()
        other = await PostgresStash.open(dsn, make=False)
        try:
            await until_led(other)
        finally:
            await other.close()

    tell(story, dsn)


def sign(epoch: int, beat: int, *, held: bool, beaten: int | None = None) -> Sign:
    """`beaten`: the epoch that has beaten last; by default the one that leads."""
    return Sign(Epoch(epoch), beat, held, Epoch(epoch if beaten is None else beaten))


def test_a_leader_is_gone_after_a_silence() -> None:
    watch = LeaderWatch()
    assert not watch.is_vacant(sign(1, 1, held=True), 100.0)
    assert not watch.is_vacant(sign(1, 1, held=False), 100.0 + FREE_S - 0.01)
    assert watch.is_vacant(sign(1, 1, held=False), 100.0 + FREE_S)


def test_a_lock_buys_time_but_not_for_ever() -> None:
    watch = LeaderWatch()
    assert not watch.is_vacant(sign(1, 1, held=True), 100.0)
    assert not watch.is_vacant(sign(1, 1, held=True), 100.0 + HELD_S - 0.01)
    assert watch.is_vacant(sign(1, 1, held=True), 100.0 + HELD_S)


@pytest.mark.parametrize("alive", [sign(1, 2, held=False), sign(2, 1, held=False)])
def test_a_beat_or_another_leader_begins_the_silence_anew(alive: Sign) -> None:
    watch = LeaderWatch()
    assert not watch.is_vacant(sign(1, 1, held=True), 100.0)
    assert not watch.is_vacant(alive, 100.0 + 2 * HELD_S)
    assert not watch.is_vacant(alive, 100.0 + 2 * HELD_S + FREE_S - 0.01)
    assert watch.is_vacant(alive, 100.0 + 2 * HELD_S + FREE_S)


@pytest.mark.parametrize("before", [[], [sign(1, 1, held=True)]], ids=["new", "of before"])
def test_a_new_leader_has_time_to_connect(before: list[Sign]) -> None:
    """Also if the watcher is as new, and has seen no other leader."""
    watch = LeaderWatch()
    for seen in before:
        assert not watch.is_vacant(seen, 99.0)
    new = sign(2, 1, held=False, beaten=1)
    assert not watch.is_vacant(new, 100.0)
    assert not watch.is_vacant(new, 100.0 + FREE_S)
    assert not watch.is_vacant(new, 100.0 + CONNECTS_S - 0.01)
    assert watch.is_vacant(new, 100.0 + CONNECTS_S)


def test_a_new_leader_that_has_connected_is_one_as_any() -> None:
    watch = LeaderWatch()
    assert not watch.is_vacant(sign(2, 1, held=False, beaten=1), 100.0)
    beats = sign(2, 2, held=False)
    assert not watch.is_vacant(beats, 100.0 + CONNECTS_S - 0.01)
    assert not watch.is_vacant(beats, 100.0 + CONNECTS_S - 0.01 + FREE_S - 0.01)
    assert watch.is_vacant(beats, 100.0 + CONNECTS_S - 0.01 + FREE_S)


def test_the_sign_of_a_leader_says_whether_it_has_beaten(dsn: str) -> None:
    async def story(leader: PostgresStash, dsn: str) -> None:
        first = await leader.fence()
        await until_led(leader)
        await leader.close()
        other = await asyncpg.connect(dsn)
        link = Link(dsn, name="meridian watch")
        try:
            await link.open(asyncio.get_running_loop().time() + 10)
            assert not (seen := await observe_leader(link)).connects
            await other.execute(
                "UPDATE meridian.stash SET epoch = epoch + 1, known_epoch = epoch + 1"
            )
            assert await observe_leader(link) == Sign(
                Epoch(first + 1), seen.beat, held=False, beaten=first
            )
            assert (await observe_leader(link)).connects
        finally:
            await link.close()
            await other.close()

    tell(story, dsn)


def test_a_watcher_that_saw_nothing_for_a_while_begins_anew() -> None:
    watch = LeaderWatch()
    assert not watch.is_vacant(sign(1, 1, held=False), 100.0)
    watch.blinded()
    assert not watch.is_vacant(sign(1, 1, held=False), 100.0 + HELD_S)


FORMER_LAYOUT = """
DROP SCHEMA meridian CASCADE;
CREATE SCHEMA meridian;
CREATE TABLE meridian.stash (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    format integer NOT NULL, epoch bigint NOT NULL, session bigint NOT NULL);
CREATE TABLE meridian.entries (
    collection text COLLATE "C", key text COLLATE "C", value bytea NOT NULL,
    checksum bigint NOT NULL, PRIMARY KEY (collection, key));
CREATE TABLE meridian.lease (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch bigint NOT NULL, beat bigint NOT NULL);
INSERT INTO meridian.stash (format, epoch, session) VALUES (1, 0, 0);
INSERT INTO meridian.lease (epoch, beat) VALUES (0, 0);
"""
FORMER_TAKE_OVER = """
UPDATE meridian.stash SET epoch = epoch + 1, session = 1
WHERE NULL::bigint IS NULL OR epoch = NULL RETURNING epoch
"""


def test_a_program_of_before_does_not_take_over_what_was_upgraded(dsn: str) -> None:
    """It has stood by since before, and looks at no format when it takes over."""

    async def story(_: PostgresStash, dsn: str) -> None:
        former = await asyncpg.connect(dsn)
        await former.execute(FORMER_LAYOUT)
        stash = await PostgresStash.open(dsn)
        try:
            assert await stash.read_format() == 1
            epoch = await stash.fence()
            # Until the upgrade it may: nothing is there that it does not know.
            assert await former.fetchval(FORMER_TAKE_OVER) == epoch + 1
            with pytest.raises(Fenced):
                await stash.upgrade(epoch, [Put("c", "a", b"1")])
            assert await stash.scan("c") == {}
            assert await stash.read_format() == 1
            epoch = await stash.fence()
            await stash.upgrade(epoch, [Put("c", "a", b"1")])
            assert await stash.scan("c") == {"a": b"1"}
            assert await stash.read_format() == FORMAT
            with pytest.raises(asyncpg.CheckViolationError):
                await former.fetchval(FORMER_TAKE_OVER)
            await stash.confirm(epoch)
            assert await stash.fence() == epoch + 1
        finally:
            await stash.close()
            await former.close()

    tell(story, dsn)


def test_who_does_not_know_the_format_does_not_take_over(dsn: str) -> None:
    async def story(leader: PostgresStash, dsn: str) -> None:
        await leader.fence()
        await until_led(leader)
        waiting = await PostgresStash.open(dsn)
        try:
            async with asyncio.TaskGroup() as tasks:
                taker = tasks.create_task(outcome(waiting.stand_by()))
                await backends(dsn, "meridian watch")
                administrator = await asyncpg.connect(dsn)
                await administrator.execute("UPDATE meridian.stash SET format = 1000")
                await leader.close()
                assert await taker is NewerFormat
            assert await outcome(waiting.fence()) is NewerFormat
            assert await administrator.fetchval("SELECT epoch FROM meridian.stash") == 1
            await administrator.close()
        finally:
            await waiting.close()

    tell(story, dsn)
