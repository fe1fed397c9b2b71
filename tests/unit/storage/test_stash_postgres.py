"""The stash in PostgreSQL where it can go wrong: lost connections, late statements, unfit servers.

What it promises as every stash does is in `tests/conformance/test_stash.py`.
"""

import asyncio
from typing import cast

import asyncpg
import psycopg
import pytest

from storage import postgres_tables, stash_postgres
from storage.errors import Corrupt, Determinate, Indeterminate, NewerFormat, RequireFailed
from storage.postgres_link import UnfitServer
from storage.stash import Put, Require
from storage.stash_postgres import PostgresStash
from tests.support.proxy import proxy
from tests.support.servers import Postgres, fresh_database
from tests.unit.storage.postgres_scene import (
    A_WAITS,
    EPOCH_WAITS,
    backends,
    blocked,
    outcome,
    put,
    tell,
    terminate,
    until,
)

# --- lost connections ----------------------------------------------------------------------------


def test_a_connection_lost_between_transactions_is_not_noticed(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, "a", b"1")
        await terminate(dsn, await backends(dsn, "meridian stash"))
        assert await stash.read("c", "a") == b"1"
        await terminate(dsn, await backends(dsn, "meridian stash"))
        await put(stash, epoch, "a", b"2")
        assert await stash.read("c", "a") == b"2"

    tell(story, dsn)


def test_a_connection_lost_within_a_transaction_leaves_it_unknown(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, "a", b"1")
        async with blocked(dsn, A_WAITS), asyncio.TaskGroup() as tasks:
            under_way = tasks.create_task(outcome(put(stash, epoch, "a", b"2")))
            await terminate(dsn, await backends(dsn, "meridian stash", waiting=1))
            assert await under_way is Indeterminate
        assert await stash.read("c", "a") == b"1"
        await put(stash, epoch, "a", b"3")
        assert await stash.read("c", "a") == b"3"

    tell(story, dsn)


@pytest.mark.parametrize("lock", [A_WAITS, EPOCH_WAITS])
def test_a_transaction_on_a_lost_connection_does_not_come_late(dsn: str, lock: str) -> None:
    """The server has not noticed that we are gone, and finishes what it was asked: before (S3)."""

    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, "a", b"old")
        async with blocked(dsn, lock) as release, asyncio.TaskGroup() as tasks:
            first = tasks.create_task(outcome(put(stash, epoch, "a", b"first")))
            await backends(dsn, "meridian stash", waiting=1)
            # Only our side of the connection: the server's goes on.
            stash._work.drop()
            assert await first is Indeterminate
            second = tasks.create_task(put(stash, epoch, "a", b"second"))
            await backends(dsn, "meridian stash", waiting=2)
            await release()
            await second
        assert await stash.read("c", "a") == b"second"
        # Also when all that the server had under way has ended.
        async with blocked(dsn, "LOCK TABLE meridian.entries IN EXCLUSIVE MODE"):
            assert await stash.read("c", "a") == b"second"

    tell(story, dsn)


def test_a_requirement_sees_what_a_lost_connection_has_still_written(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, "a", b"old")
        still_old = [Require("c", "a", b"old")]
        async with blocked(dsn, A_WAITS) as release, asyncio.TaskGroup() as tasks:
            first = tasks.create_task(outcome(put(stash, epoch, "a", b"first")))
            await backends(dsn, "meridian stash", waiting=1)
            stash._work.drop()
            assert await first is Indeterminate
            second = tasks.create_task(
                outcome(stash.transact(epoch, [Put("c", "b", b"")], requires=still_old))
            )
            await backends(dsn, "meridian stash", waiting=2)
            await release()
            assert await second is RequireFailed
        assert await stash.scan("c") == {"a": b"first"}

    tell(story, dsn)


def test_a_server_that_stops_and_starts_is_found_again(
    dsn: str, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A loaded machine starts servers slowly.
    monkeypatch.setattr(stash_postgres, "RECONNECT_S", 120.0)

    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        for number, mode in enumerate(["fast", "immediate"]):
            value = f"{number}".encode()
            await put(stash, epoch, "a", value)
            await asyncio.to_thread(server.stop, mode)
            async with asyncio.TaskGroup() as tasks:
                waits = tasks.create_task(stash.read("c", "a"))
                await asyncio.to_thread(server.start)
                assert await waits == value
            await stash.confirm(epoch)

    tell(story, dsn)


def test_what_cannot_be_sent_did_not_happen(
    dsn: str, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        with proxy("127.0.0.1", server.port) as between:
            far = await PostgresStash.open(dsn.replace(f":{server.port}/", f":{between.port}/"))
            try:
                await put(far, epoch, "a", b"1")
                monkeypatch.setattr(stash_postgres, "RECONNECT_S", 0.2)
                between.cut()
                await until(lambda: not far._work.is_open)
                assert await outcome(put(far, epoch, "a", b"2")) is Determinate
                assert await outcome(far.read("c", "a")) is Determinate
                assert await outcome(far.confirm(epoch)) is Determinate
                assert await stash.read("c", "a") == b"1"
                between.mend()
                monkeypatch.undo()
                await put(far, epoch, "a", b"3")
                assert await stash.read("c", "a") == b"3"
            finally:
                await far.close()

    tell(story, dsn)


def test_no_answer_in_time_is_unknown_for_a_write_and_a_failure_for_a_question(
    dsn: str, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network stands still, and both ends believe that they are connected."""

    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        with proxy("127.0.0.1", server.port) as between:
            far = await PostgresStash.open(dsn.replace(f":{server.port}/", f":{between.port}/"))
            try:
                await put(far, epoch, "a", b"1")
                await far.confirm(epoch)
                monkeypatch.setattr(postgres_tables, "STATEMENT_S", 0.2)
                monkeypatch.setattr(stash_postgres, "RECONNECT_S", 0.2)
                between.freeze()
                assert await outcome(put(far, epoch, "a", b"2")) is Indeterminate
                assert await outcome(far.confirm(epoch)) is Determinate
                assert await outcome(far.read("c", "a")) is Determinate
                monkeypatch.undo()
                between.mend()
                await put(far, epoch, "a", b"3")
                assert await stash.read("c", "a") == b"3"
            finally:
                await far.close()

    tell(story, dsn)


# --- what is found -------------------------------------------------------------------------------


def test_several_that_start_at_once_make_one_stash(server: Postgres) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        for _ in range(5):
            fresh = await asyncio.to_thread(fresh_database, dsn)
            opened = await asyncio.gather(*(PostgresStash.open(fresh) for _ in range(6)))
            epochs = await asyncio.gather(*(one.fence() for one in opened))
            assert sorted(epochs) == [1, 2, 3, 4, 5, 6]
            await asyncio.gather(*(one.close() for one in opened))

    tell(story, server.dsn)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("synchronous_commit", "off"), ("synchronous_commit", "local")],
)
def test_a_database_that_loses_commits_is_refused(dsn: str, setting: str, value: str) -> None:
    name = dsn.rpartition("/")[2]
    with psycopg.connect(dsn, autocommit=True) as administrator:
        administrator.execute(f"ALTER DATABASE {name} SET {setting} = {value}".encode())
    with pytest.raises(UnfitServer, match=f"{setting} is {value}"):
        asyncio.run(PostgresStash.open(dsn))


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_is_lossy_after_a_restart_is_refused_in_service(
    dsn: str, server: Postgres, setting: str
) -> None:
    def alter(action: str) -> None:
        with psycopg.connect(server.dsn, autocommit=True) as administrator:
            administrator.execute(f"ALTER SYSTEM {action}".encode())
            administrator.execute("SELECT pg_reload_conf()")
        with psycopg.connect(server.dsn, autocommit=True) as administrator:
            wanted = "on" if action.startswith("RESET") else "off"
            while administrator.execute(f"SHOW {setting}".encode()).fetchone() != (wanted,):
                pass

    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, "a", b"1")
        await asyncio.to_thread(alter, f"SET {setting} = off")
        try:
            await terminate(dsn, await backends(dsn, "meridian stash"))
            with pytest.raises(UnfitServer, match=f"{setting} is off"):
                await put(stash, epoch, "a", b"2")
        finally:
            await asyncio.to_thread(alter, f"RESET {setting}")
        await put(stash, epoch, "a", b"3")

    tell(story, dsn)


def test_an_address_that_makes_no_sense_is_refused_at_once() -> None:
    with pytest.raises(Determinate):
        asyncio.run(PostgresStash.open("postgresql://127.0.0.1:notaport/x"))


def test_a_newer_format_is_left_alone(dsn: str) -> None:
    asyncio.run(opened_and_closed(dsn))
    with psycopg.connect(dsn, autocommit=True) as administrator:
        administrator.execute("UPDATE meridian.stash SET format = 1000")
    with pytest.raises(NewerFormat, match="format 1000"):
        asyncio.run(opened_and_closed(dsn))


def test_nothing_is_made_by_who_only_looks(dsn: str) -> None:
    with pytest.raises(Corrupt, match="no stash"):
        asyncio.run(opened_and_closed(dsn, make=False))
    with psycopg.connect(dsn) as administrator:
        found = administrator.execute("SELECT to_regnamespace('meridian') IS NULL").fetchone()
        assert found == (True,)


async def opened_and_closed(dsn: str, *, make: bool = True) -> None:
    await (await PostgresStash.open(dsn, make=make)).close()


def test_a_value_that_changed_under_its_key_is_never_served(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, "a", b"1")
        await put(stash, epoch, "b", b"1")
        assert await stash.verify() == []
        administrator = await asyncpg.connect(dsn)
        try:
            await administrator.execute("UPDATE meridian.entries SET value = '2' WHERE key = 'a'")
        finally:
            await administrator.close()
        with pytest.raises(Corrupt, match="c/a"):
            await stash.read("c", "a")
        with pytest.raises(Corrupt, match="c/a"):
            await stash.scan("c")
        assert await stash.read("c", "b") == b"1"
        assert len(await stash.verify()) == 1

    tell(story, dsn)


def test_sessions_of_one_epoch_do_not_lock_each_other_out(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        other = await PostgresStash.open(dsn)
        try:
            for number in range(3):
                await put(stash, epoch, "a", f"{number}".encode())
                await put(other, epoch, "b", f"{number}".encode())
            assert await other.scan("c") == {"a": b"2", "b": b"2"}
        finally:
            await other.close()

    tell(story, dsn)


def test_plans_stay_by_key_when_the_tables_grow(dsn: str) -> None:
    async def story(stash: PostgresStash, dsn: str) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, "a", b"1")
        ((plan, *_), *rows) = await stash._work.rows(
            f"EXPLAIN {postgres_tables._TRANSACT}",
            *(epoch, 1, ["c"], ["a"], [b""], ["c"], ["a"], ["c"], ["b"], [b""], [0]),
            seconds=5.0,
        )
        text = "\n".join([cast(str, plan), *(cast(str, row[0]) for row in rows)])
        assert "Seq Scan on entries" not in text
        assert "Index Scan using entries_pkey" in text

    tell(story, dsn)
