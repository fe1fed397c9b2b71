"""Unique indexes that are partial or over expressions: enforced for everybody, at every level.

What one session sees is compared with PostgreSQL in `tests/postgres/ddl/testdata`.
"""

import asyncio
import random
from typing import Any

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from coordinator.execution.context import ExecutionLimits
from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.keys.test_keys import LEVELS, refused
from tests.support.connections import all_rows, connected, cut, on_a_loop
from tests.support.stack import WITHOUT_LOCKS, running

TABLE = "create table p (id int primary key, name text, live bool, n int)"
INDEX = "create unique index p_name on p (lower(name)) where live"
DUPLICATES = "select lower(name) from p where live group by 1 having count(*) > 1"

STORIES: dict[str, tuple[list[str], str, str | None]] = {
    "another case": (["(1, 'Ada', true)"], "insert into p values (2, 'aDA', true)", "ada"),
    "outside of the predicate": (["(1, 'Ada', true)"], "insert into p values (2, 'ada')", None),
    "both outside": (["(1, 'ada')"], "insert into p values (2, 'ada', false)", None),
    "a row moves into the predicate": (
        ["(1, 'Ada', true), (2, 'ada', false)"],
        "update p set live = true where id = 2",
        "ada",
    ),
    "a row leaves it": (
        ["(1, 'Ada', true), (2, 'ada', false)"],
        "update p set live = not live",
        None,
    ),
    "beside the key": (["(1, 'Ada', true), (2, 'bob', true)"], "update p set n = 7", None),
    "NULL": (["(1, null, true)"], "insert into p values (2, null, true)", None),
    "twice in one statement": (
        [],
        "insert into p values (1, 'Ada', true), (2, 'x', true), (3, 'ADA', true)",
        "ada",
    ),
    "all at once": (
        ["(1, 'a', true), (2, 'b', true)"],
        "update p set name = case name when 'a' then 'B' else 'A' end",
        None,
    ),
    "merge": (
        ["(1, 'a', true)"],
        "merge into p using (values (2, 'A')) s(i, t) on p.id = s.i "
        "when not matched then insert values (s.i, s.t, true)",
        "a",
    ),
    "a row that is deleted by the same statement": (
        ["(1, 'a', true)"],
        "with gone as (delete from p where id = 1 returning name) "
        "insert into p select 2, upper(name), true from gone",
        None,
    ),
}


@pytest.mark.parametrize("place", ["tail", "files", "own", "old"])
@on_a_loop
async def test_statements(place: str) -> None:
    """The rows before are in the tail, in files, the transaction's own, or older than the index."""
    core = CoreSettings(cut_commits_max=1) if place == "files" else None
    async with running(core=core) as stack, connected(stack, 1) as (connection,):
        await connection.execute(TABLE)
        for before, statement, taken in STORIES.values():
            await connection.execute("drop index if exists p_name")
            await connection.execute("delete from p")
            if place != "old":
                await connection.execute(INDEX)
            if place == "own":
                await connection.execute("begin")
            for values in before:
                await connection.execute(f"insert into p values {values}")
            if place == "files":
                await cut(stack, connection)
            if place == "old":
                await connection.execute(INDEX)
            if taken is None:
                await connection.execute(statement)
            else:
                with pytest.raises(psycopg.errors.UniqueViolation) as failure:
                    await connection.execute(statement)
                detail = f"Key (lower(name))=({taken}) already exists."
                assert refused(failure.value) == ("23505", "p_name", detail, "public", "p")
            await connection.execute("rollback")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["insert", "update", "copy", "upsert"])
@on_a_loop
async def test_two_blocks(level: str, way: str) -> None:
    """Both find the key free; the second to commit is refused, at every level."""
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(TABLE)
        await first.execute(INDEX)
        await first.execute("insert into p values (1, 'ada', false), (2, 'ADA', false)")
        for number, connection in enumerate((first, second), 1):
            await connection.execute(f"begin isolation level {level}")
            match way:
                case "insert":
                    await connection.execute(f"insert into p values ({number + 4}, 'Ada', true)")
                case "update":
                    await connection.execute(f"update p set live = true where id = {number}")
                case "upsert":
                    await connection.execute(
                        f"insert into p values ({number + 4}, 'Ada', true) "
                        "on conflict (lower(name)) where live do update set n = 1"
                    )
                case _:
                    async with connection.cursor().copy("copy p (id, name, live) from stdin") as c:
                        await c.write(f"{number + 4}\tAda\tt\n")
        await first.execute("commit")
        with pytest.raises(psycopg.Error) as failure:
            await second.execute("commit")
        expected = "40001" if way == "upsert" else "23505"
        assert failure.value.sqlstate == expected
        if way != "upsert":
            detail = "Key (lower(name))=(ada) already exists."
            assert refused(failure.value) == ("23505", "p_name", detail, "public", "p")
        assert await all_rows(first, "select count(*) from p where live") == [(1,)]


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
@on_a_loop
async def test_other_keys_are_of_no_concern(level: str) -> None:
    """Also where others delete rows, or change them beside the key."""
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(TABLE)
        await first.execute(INDEX)
        await first.execute("insert into p values (1, 'a', true), (2, 'b', true), (3, 'c', true)")
        await first.execute(f"begin isolation level {level}")
        for number in range(40):
            await first.execute(f"insert into p values ({number + 10}, 'x{number}', true)")
        await second.execute("insert into p values (4, 'd', true), (5, 'X1', false)")
        await second.execute("delete from p where id = 1")
        await second.execute("update p set n = 4 where id = 2")
        await second.execute("update p set name = 'e' where id = 3")
        await first.execute("commit")
        assert await all_rows(first, "select count(*) from p where live") == [(43,)]


@on_a_loop
async def test_a_key_that_came_and_went_is_no_duplicate() -> None:
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(TABLE)
        await first.execute(INDEX)
        await first.execute("begin isolation level read committed")
        await first.execute("insert into p values (1, 'ada', true)")
        await second.execute("insert into p values (2, 'Ada', true)")
        await second.execute("update p set live = false")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await first.execute("commit")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@on_a_loop
async def test_an_index_whose_maker_has_not_seen_a_duplicate(level: str) -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (writer, maker):
        await writer.execute(TABLE)
        await writer.execute("insert into p values (1, 'ada', true)")
        await maker.execute(f"begin isolation level {level}")
        await maker.execute("select 1 from p")
        await writer.execute("insert into p values (2, 'Ada', true)")
        await maker.execute(INDEX)
        with pytest.raises(psycopg.errors.SerializationFailure):
            await maker.execute("commit")
        with pytest.raises(psycopg.errors.UniqueViolation) as failure:
            await maker.execute(INDEX)
        detail = "Key (lower(name))=(ada) is duplicated."
        assert refused(failure.value) == ("23505", "p_name", detail, "public", "p")


async def _insert_and_commit(writer: Any) -> None:
    await writer.execute("insert into p values (2, 'Ada', true)")
    await writer.execute("commit")


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_a_duplicate_whose_writer_has_not_seen_the_index(level: str) -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (writer, maker):
        await writer.execute(TABLE)
        await writer.execute("create table other (a int)")
        await writer.execute("insert into p values (1, 'ada', true)")
        await writer.execute(f"begin isolation level {level}")
        await writer.execute("select 1 from other")
        await maker.execute(INDEX)
        with pytest.raises((psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)):
            await _insert_and_commit(writer)
        await writer.execute("rollback")
        assert await all_rows(writer, DUPLICATES) == []


@on_a_loop
async def test_a_prepared_insert_learns_of_a_new_index() -> None:
    """The shortest way of an insert, which looks at no rows, is closed at once."""
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute("create table q (a int, b text)")
        for number in range(3):
            await first.execute("insert into q values (%s, 'x')", (number,), prepare=True)
        await second.execute("create unique index q_a on q (abs(a))")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await first.execute("insert into q values (%s, 'x')", (-2,), prepare=True)
        await second.execute("drop index q_a")
        await first.execute("insert into q values (%s, 'x')", (-2,), prepare=True)


@on_a_loop
async def test_many_rows_at_once() -> None:
    """Staged files, and more keys than are looked up one by one."""
    limits = ExecutionLimits(inline_bytes_max=10_000)
    async with running(limits=limits) as stack, connected(stack, 1) as (connection,):
        await connection.execute(TABLE)
        await connection.execute(INDEX)

        async def load(keys: range, form: str) -> None:
            async with connection.cursor().copy("copy p (id, name, live) from stdin") as copy:
                await copy.write("".join(f"{i}\t{form}{i}\tt\n" for i in keys))

        await load(range(12_000), "a")
        for keys, form in ((range(12_000, 12_001), "A"), (range(20_000, 31_000), "a")):
            await load(keys, form)
        await connection.execute("delete from p where id >= 12000")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await connection.execute("insert into p values (-1, 'A11999', true)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await connection.execute("insert into p select -1 - id, upper(name), true from p")
        await connection.execute("insert into p select -1 - id, upper(name), false from p")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await connection.execute("update p set live = true")


@on_a_loop
async def test_many_files() -> None:
    """So many that their filters are asked first."""
    core = CoreSettings(cut_commits_max=1)
    async with running(core=core) as stack, connected(stack, 1) as (connection,):
        await connection.execute(TABLE)
        await connection.execute(INDEX)
        for number in range(6):
            values = f"({number}, 'N{number}', true), ({number + 10}, 'N0', false)"
            await connection.execute(f"insert into p values {values}")
            await cut(stack, connection)
        for _ in range(2):
            for number in range(6):
                with pytest.raises(psycopg.errors.UniqueViolation):
                    await connection.execute(f"insert into p values (100, 'n{number}', true)")
            await connection.execute("insert into p values (100, 'n6', true), (101, 'n1', false)")
            await connection.execute("delete from p where id >= 100")


@on_a_loop
async def test_rows_that_are_gone_may_fail() -> None:
    """A file still has a row for which the expression fails; a live row would not have passed."""
    core = CoreSettings(cut_commits_max=1)
    async with running(core=core) as stack, connected(stack, 1) as (connection,):
        await connection.execute("create table f (a int)")
        await connection.execute("insert into f values (0), (1), (2)")
        await cut(stack, connection)
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.execute("create unique index f_a on f ((100 / a))")
        await connection.execute("delete from f where a = 0")
        await connection.execute("create unique index f_a on f ((100 / a))")
        await connection.execute("create unique index f_b on f ((100 / (a - 5))) where a <> 5")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await connection.execute("insert into f values (1)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.execute("insert into f values (0)")
        await connection.execute("insert into f values (5)")


@on_a_loop
async def test_another_server_enforces_it() -> None:
    """The index is in the catalog of the stash, with all that it says."""
    stash, store = MemoryStash(), MemoryObjectStore()
    async with running(stash=stash, store=store) as stack, connected(stack, 1) as (connection,):
        await connection.execute(TABLE)
        await connection.execute(INDEX)
        await connection.execute("create unique index p_n on p (n) nulls not distinct where live")
        await connection.execute("insert into p values (1, 'ada', true)")
    async with running(stash=stash, store=store) as stack, connected(stack, 1) as (connection,):
        for values, index in (("(2, 'ADA', true, 1)", "p_name"), ("(2, 'bob', true)", "p_n")):
            with pytest.raises(psycopg.errors.UniqueViolation) as failure:
                await connection.execute(f"insert into p values {values}")
            assert failure.value.diag.constraint_name == index
        await connection.execute("insert into p values (2, 'bob', false), (3, 'BOB', false)")


@pytest.mark.parametrize("seed", range(2))
@on_a_loop
async def test_no_duplicate_is_ever_committed(seed: int) -> None:
    """Many clients, at all levels and in all ways, over few keys."""
    core = CoreSettings(cut_commits_max=5)
    async with running(core=core) as stack, connected(stack, 6) as connections:
        await connections[0].execute(TABLE)
        await connections[0].execute(INDEX)
        done = await asyncio.gather(
            *(_client(c, random.Random(f"{seed}/{n}"), n) for n, c in enumerate(connections))
        )
        assert await all_rows(connections[0], DUPLICATES) == []
        assert sum(done) > 20, "some have committed"
        # What is enforced is what a new index would find.
        await connections[0].execute("create unique index again on p (lower(name)) where live")


async def _client(connection: Any, rng: random.Random, number: int) -> int:
    """How many of a client's transactions were committed."""
    done = 0
    for turn in range(15):
        try:
            if rng.random() < 0.5:
                await connection.execute(f"begin isolation level {rng.choice(LEVELS)}")
                for _ in range(rng.randint(1, 3)):
                    await connection.execute(_statement(rng, number * 1000 + turn * 10))
                await connection.execute("commit")
            else:
                await connection.execute(_statement(rng, number * 1000 + turn * 10))
            done += 1
        except psycopg.Error as error:
            if error.sqlstate not in ("23505", "40001", "40P01"):
                raise
            await connection.execute("rollback")
    return done


def _statement(rng: random.Random, fresh: int) -> str:
    name = rng.choice(["a", "A", "b", "B", "c", "C", "d", "D"])
    live, number = rng.choice(["true", "true", "false"]), fresh + rng.randint(0, 9)
    return rng.choice(
        [
            f"insert into p values ({number}, '{name}', {live})",
            f"insert into p values ({number}, '{name}', {live}) on conflict do nothing",
            f"insert into p values ({number}, '{name}', true) "
            "on conflict (lower(name)) where live do update set n = 1",
            f"update p set live = {live} where name = '{name}'",
            f"update p set name = '{name}' where id % 7 = {rng.randint(0, 6)}",
            f"delete from p where name = '{name}' and id % 3 = {rng.randint(0, 2)}",
        ]
    )
