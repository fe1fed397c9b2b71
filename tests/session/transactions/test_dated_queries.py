"""Queries of the past inside of a statement: compare with it, and restore from it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from psycopg import errors

from coordinator.execution.context import ExecutionLimits
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

LAST = "select meridian.last_commit_timestamp()"


@asynccontextmanager
async def changed() -> AsyncIterator[tuple[Connection, Connection, int]]:
    """Two connections and a timestamp; since then rows were changed, lost, and came."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (id int primary key, v text)")
        await one.execute("create view w as select id, upper(v) as v from t")
        await one.execute("create table other (id int)")
        await one.execute("insert into t values (1, 'a'), (2, 'b'), (3, 'c')")
        ((then,),) = await all_rows(one, LAST)
        await one.execute("update t set v = 'x' where id = 1")
        await one.execute("delete from t where id = 2")
        await one.execute("insert into t values (4, 'd')")
        yield one, other, then


QUERIES: list[tuple[str, list[tuple[object, ...]]]] = [
    ("select id, v from (select * from t as of {then}) p order by id",
     [(1, "a"), (2, "b"), (3, "c")]),
    ("select id from t except select id from (select * from t as of {then}) p", [(4,)]),
    ("select p.id, p.v, t.v from t join (select * from t as of {then}) p using (id)"
     " where t.v <> p.v", [(1, "a", "x")]),
    ("select id, v from t where id not in (select id from t as of {then})", [(4, "d")]),
    ("select (select count(*) from t as of {then}), count(*) from t where id > 1", [(3, 2)]),
    ("with p as (select * from t as of {then}) select v from p where id = 2", [("b",)]),
    ("with p as (select * from t as of {then}) select count(*) from p a join p b using (id)",
     [(3,)]),
    ("(select id from t where id = 2 as of {then}) union all select id from t where id = 4"
     " order by 1", [(2,), (4,)]),
    ("select v from (select v from w as of {then} order by id desc limit 2) p", [("C",), ("B",)]),
    ("select count(*) from (select * from t as of {then}) a, (select * from t as of {then} - 1) b",
     [(0,)]),
    ("select * from (select id from (select * from t as of {then}) p where id > 1"
     " as of at least {then}) q order by 1", [(2,), (3,)]),
    ("select exists(select from t where id = 2 as of {then}), exists(select from t where id = 2)",
     [(True, False)]),
    ("select (select meridian.query_timestamp() as of {then}) > 0", [(True,)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), QUERIES)
@on_a_loop
async def test_the_past_beside_the_present(query: str, expected: list[tuple[object, ...]]) -> None:
    async with changed() as (one, _, then):
        text = query.format(then=then)
        for _ in range(2):
            assert await all_rows(one, text) == expected
        async with one.transaction():
            await one.execute("insert into t values (9, 'own')")
            await one.execute("delete from t where id = 9")
            assert await all_rows(one, text) == expected


@on_a_loop
async def test_a_time_may_be_a_parameter() -> None:
    async with changed() as (one, _, then):
        query = "select id from (select * from t as of %s::bigint) p where id <> %s order by 1"
        for id_ in (1, 2, 1):
            found = await (await one.execute(query, (then, id_))).fetchall()
            assert found == [(number,) for number in (1, 2, 3) if number != id_]
        query = "select count(*) from (select * from t as of now() - interval '1 microsecond') p"
        assert await all_rows(one, query) == [(3,)]


@on_a_loop
async def test_what_was_lost_is_restored() -> None:
    async with changed() as (one, _, then):
        await one.execute(f"create table kept as select * from t as of {then}".encode())
        assert await all_rows(one, "select * from kept order by id") == [
            (1, "a"), (2, "b"), (3, "c")
        ]  # fmt: skip
        restored = await one.execute(
            f"insert into t select * from t as of {then} on conflict (id) do nothing"
            " returning id".encode()
        )
        assert await restored.fetchall() == [(2,)]
        await one.execute(
            f"update t set v = p.v from (select * from t as of {then}) p where p.id = t.id".encode()
        )
        await one.execute(f"delete from t where id not in (select id from t as of {then})".encode())
        assert await all_rows(one, "select * from t order by id") == [
            (1, "a"), (2, "b"), (3, "c")
        ]  # fmt: skip
        await one.execute("truncate t")
        await one.execute(
            f"merge into t using (select * from t as of {then}) p on p.id = t.id"
            " when not matched then insert values (p.id, p.v)".encode()
        )
        assert await all_rows(one, "select count(*) from t") == [(3,)]
        copied = f"copy (select id from (select * from t as of {then}) p order by 1) to stdout"
        async with one.cursor().copy(copied) as copy:
            assert b"".join([bytes(part) async for part in copy]) == b"1\n2\n3\n"


@on_a_loop
async def test_many_rows_of_the_past_and_too_many() -> None:
    limits = ExecutionLimits(returning_bytes_max=20_000)
    async with running(limits=limits) as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (id int primary key, v text)")
        await one.execute("insert into t select g, 'v' from generate_series(1, 600) g")
        ((then,),) = await all_rows(one, LAST)
        await one.execute("delete from t where id % 2 = 0")
        lost = f"select count(*) from (select id from t as of {then}) p"
        assert await all_rows(one, lost) == [(600,)]
        missing = f"{lost} where not exists (select from t where t.id = p.id)"
        assert await all_rows(one, missing) == [(300,)]
        await one.execute(f"insert into t select * from t as of {then} on conflict do nothing")
        assert await all_rows(one, "select count(*), max(v) from t") == [(600, "v")]
        wide = f"select count(*) from (select id, repeat(v, 100) from t as of {then}) p"
        with pytest.raises(errors.ProgramLimitExceeded):
            await one.execute(wide.encode())


@on_a_loop
async def test_the_past_is_outside_of_validation() -> None:
    """What others change in the table is no conflict; the present of the same table is one."""
    async with changed() as (one, other, then):
        for source, refused in ((f"(select id from t as of {then})", False), ("t", True)):
            await one.execute("begin isolation level serializable")
            await one.execute(f"insert into other select id from {source} p".encode())
            await other.execute("update t set v = v || '!' where id = 3")
            if refused:
                with pytest.raises(errors.SerializationFailure):
                    await one.execute("commit")
            else:
                await one.execute("commit")


@on_a_loop
async def test_what_is_refused() -> None:
    async with changed() as (one, _, then):
        for text in (
            "create view v as select * from (select * from t as of {then}) p",
            "create table n (a int default (select max(id) from t as of {then}))",
            "create table n (a int check (a in (select id from t as of {then})))",
            "prepare p as select * from (select * from t as of {then}) p",
            "select (select p.v from t p where p.id = t.id as of {then}) from t",
            "select * from t, lateral (select * from t p where p.id = t.id as of {then}) p",
            "select * from (select * from t as of {then}) p as of {then}",
            "select * from (select * from t as of (select {then})) p",
            "select * from (select * from t for update as of {then}) p",
            "select * into n from t as of {then}",
            "select abs(id as of {then}) from t",
            "select * from ((select 1) as of {then}) p",
        ):
            with pytest.raises(errors.FeatureNotSupported):
                await one.execute(text.format(then=then).encode())
        with pytest.raises(errors.DatabaseError) as old:
            await one.execute("select * from (select * from t as of 5) p")
        assert old.value.sqlstate == "72000"
        query = "select * from (select * from other as of {}) p"
        await one.execute("create table late (a int)")
        with pytest.raises(errors.UndefinedTable):
            await one.execute(f"select * from (select * from late as of {then}) p".encode())
        await one.execute("alter table other add b int")
        with pytest.raises(errors.FeatureNotSupported, match="defined otherwise"):
            await one.execute(query.format(then).encode())
        # One moment is still told apart from the next.
        assert await all_rows(one, "select * from (select * from t as of now()) p where id = 4")
