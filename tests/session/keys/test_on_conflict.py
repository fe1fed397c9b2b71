"""ON CONFLICT among many: no duplicate, no lost update, and who decided on what changed retries."""

import asyncio

import psycopg
import pytest

from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import WITHOUT_LOCKS, running

FRESH = "create table k (id int primary key, n int not null)"
COUNT_UP = "insert into k values (%s, 1) on conflict (id) do update set n = k.n + excluded.n"
CLIENTS = 8
ROUNDS = 6


@on_a_loop
async def test_counting_loses_nothing() -> None:
    async with running() as stack, connected(stack, CLIENTS) as clients:
        await clients[0].execute(FRESH)

        async def count(client: Connection) -> None:
            for round_ in range(ROUNDS):
                await client.execute(COUNT_UP, (round_ % 2,))

        await asyncio.gather(*(count(client) for client in clients))
        assert await all_rows(clients[0], "select sum(n), count(*) from k") == [
            (CLIENTS * ROUNDS, 2)
        ]


@on_a_loop
async def test_one_of_many_inserts() -> None:
    async with running() as stack, connected(stack, CLIENTS) as clients:
        await clients[0].execute(FRESH)
        once = "insert into k values (%s, 1) on conflict do nothing"
        for key in range(ROUNDS):
            done = await asyncio.gather(*(client.execute(once, (key,)) for client in clients))
            assert sorted(cursor.rowcount for cursor in done) == [0] * (CLIENTS - 1) + [1]
        assert await all_rows(clients[0], "select count(*) from k") == [(ROUNDS,)]


@pytest.mark.parametrize("level", ["serializable", "read committed"])
@on_a_loop
async def test_who_comes_second_is_told_to_retry(level: str) -> None:
    """Not that there is a duplicate: with ON CONFLICT that is never the statement's error."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute(FRESH)
        await one.execute(f"set default_transaction_isolation = '{level}'".encode())
        for statement in (COUNT_UP, "insert into k values (%s, 5) on conflict (id) do nothing"):
            key = len(await all_rows(one, "select * from k"))
            await one.execute("begin")
            await one.execute(statement.encode(), (key,))
            await other.execute(COUNT_UP, (key,))
            with pytest.raises(psycopg.errors.SerializationFailure):
                await one.execute("commit")
        assert await all_rows(one, "select id, n from k order by id") == [(0, 1), (1, 1)]


@on_a_loop
async def test_a_row_that_kept_another_from_being_inserted() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute(FRESH)
        await one.execute("create table told (what text)")
        await one.execute("insert into k values (1, 1)")
        await one.execute("begin")
        done = await one.execute("insert into k values (1, 2) on conflict do nothing")
        assert done.rowcount == 0
        await one.execute("insert into told values ('it is there')")
        await other.execute("delete from k where id = 1")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        # Other keys are nobody's business.
        await one.execute("insert into k values (1, 1)")
        await one.execute("begin")
        await one.execute("insert into k values (1, 2) on conflict do nothing")
        await one.execute("insert into told values ('it is there')")
        await other.execute("insert into k values (2, 2)")
        await one.execute("commit")


@on_a_loop
async def test_merge_that_inserts_what_another_has_inserted() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute(FRESH)
        merge = (
            "merge into k using (values (7)) v(id) on k.id = v.id"
            " when matched then update set n = n + 1 when not matched then insert values (7, 1)"
        )
        await one.execute("begin")
        await one.execute(merge)
        await other.execute(merge)
        with pytest.raises((psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)):
            await one.execute("commit")
        await asyncio.gather(one.execute(merge), other.execute(merge))
        assert await all_rows(one, "select * from k") == [(7, 3)]


@on_a_loop
async def test_truncate_conflicts_with_who_inserts() -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (one, other):
        await one.execute(FRESH)
        await one.execute("insert into k values (1, 1)")
        await one.execute("begin")
        await one.execute("truncate k")
        await other.execute("insert into k values (2, 2)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        await one.execute("truncate k")
        assert await all_rows(one, "select * from k") == []
