"""Sessions against each other: who conflicts, who does not, and that everybody finishes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from coordinator.core.validation import ValidationCounts
from storage.memory import MemoryStash
from tests.support.connections import (
    Connection,
    GatedStash,
    all_rows,
    connected,
    cut,
    on_a_loop,
    pair,
)
from tests.support.stack import WITHOUT_LOCKS, Stack, running

CLIENTS = 64


def conflicts(counts: ValidationCounts) -> int:
    """All of them, retried or told."""
    return counts.by_predicate + counts.by_table + counts.by_row + counts.by_key


@contextlib.asynccontextmanager
async def prepared(
    count: int, *, flushed: bool = False, stash: MemoryStash | None = None, locks: bool = True
) -> AsyncIterator[tuple[Stack, list[Connection]]]:
    """A server with some rows, and connections to it; `flushed`: every commit is cut at once.

    `locks`: whether anybody waits; else validation decides alone.
    """
    core = CoreSettings() if locks else WITHOUT_LOCKS
    core = replace(core, cut_commits_max=1) if flushed else core
    async with running(core=core, stash=stash) as stack, connected(stack, count) as connections:
        rows = ", ".join(f"({i}, 0, 'x{i}')" for i in range(1, CLIENTS + 1))
        for text in (
            "create table t (id bigint not null, n bigint not null, s text)",
            "create table u (id bigint not null, n bigint not null)",
            "create table nothing (x int)",
            "create table other (x int)",
            f"insert into t values {rows}",
            "insert into u values (1, 1), (2, 1)",
            "create table parent (id int primary key, note text)",
            "create table child (parent int references parent)",
            "insert into parent values (1, 'a'), (2, 'b')",
            "create table made (id int, note text, twice int generated always as (id * 2) stored)",
            "insert into made values (1, 'a'), (2, 'b')",
        ):
            await connections[0].execute(text)
        if flushed:
            await cut(stack, connections[0])
        yield stack, connections


@on_a_loop
async def test_updates_of_different_rows_by_key_never_conflict() -> None:
    async with prepared(CLIENTS) as (stack, connections):

        async def update(connection: Connection, key: int) -> None:
            for _ in range(3):
                await connection.execute("update t set n = n + 1 where id = %s", (key,))

        async with asyncio.TaskGroup() as tasks:
            for key, connection in enumerate(connections, 1):
                tasks.create_task(update(connection, key))
        assert await all_rows(connections[0], "select min(n), max(n), count(*) from t") == [
            (3, 3, CLIENTS)
        ]
        counts = stack.driver.core.validation
        assert conflicts(counts) == 0
        assert counts.avoided > 0, "no two overlapped: nothing was shown"


@on_a_loop
async def test_increments_of_one_row_all_finish() -> None:
    async with prepared(CLIENTS) as (stack, connections):

        async def update(connection: Connection) -> None:
            await connection.execute("update t set n = n + 1 where id = 1")

        async with asyncio.TaskGroup() as tasks:
            for connection in connections:
                tasks.create_task(update(connection))
        assert await all_rows(connections[0], "select n from t where id = 1") == [(CLIENTS,)]
        assert conflicts(stack.driver.core.validation) > 0


@on_a_loop
async def test_statements_that_cascade_all_finish() -> None:
    """They write to more tables than they name, others name these: nobody waits for ever."""
    texts = (
        "delete from parent where id = 1",
        "insert into parent values (1, 0) on conflict (id) do update set n = 7",
        "update parent set n = (select count(*) from child)",
        "update child set n = (select sum(n) from parent)",
    )
    async with running() as stack, connected(stack, 12) as connections:
        for text in (
            "create table parent (id int primary key, n int)",
            "create table child (parent int references parent on delete cascade, n int)",
            "insert into parent values (1, 0), (2, 0)",
            "insert into child values (1, 0), (2, 0)",
        ):
            await connections[0].execute(text)

        async def work(number: int, connection: Connection) -> None:
            for text in texts * 3:
                await connection.execute(text)
                if text.startswith("delete"):
                    with contextlib.suppress(psycopg.errors.ForeignKeyViolation):
                        await connection.execute(f"insert into child values (1, {number})".encode())

        async with asyncio.TaskGroup() as tasks:
            for number, connection in enumerate(connections):
                tasks.create_task(work(number, connection))
        orphans = "select * from child where parent not in (select id from parent)"
        assert await all_rows(connections[0], orphans) == []
        assert conflicts(stack.driver.core.validation) > 0


STORIES: dict[str, tuple[tuple[str, ...], tuple[str, ...], bool]] = {
    "different rows": (
        ("update t set n = 1 where id = 1",),
        ("update t set n = 1 where id = 2",),
        True,
    ),
    "the same row": (
        ("update t set n = 1 where id = 1",),
        ("update t set n = 1 where id = 1",),
        False,
    ),
    "a row deleted by one and read by the other": (
        ("delete from t where id = 1",),
        ("select n from t where id = 1", "insert into u values (3, 1)"),
        False,
    ),
    "a row deleted by one, another one read": (
        ("delete from t where id = 1",),
        ("select n from t where id = 2", "insert into u values (3, 1)"),
        True,
    ),
    "a row that an update moves into the range": (
        ("update t set n = 100 where id = 1",),
        ("select count(*) from t where n > 50", "insert into u values (3, 1)"),
        False,
    ),
    "a row that an update moves out of the range": (
        ("update t set s = 'moved' where id = 1",),
        ("select count(*) from t where s = 'x1'", "insert into u values (3, 1)"),
        False,
    ),
    "an update beside the range": (
        ("update t set n = 20 where id = 1",),
        ("select count(*) from t where n > 50", "insert into u values (3, 1)"),
        True,
    ),
    "an insert into an empty range": (
        ("insert into t values (100, 0, null)",),
        ("select * from t where id between 90 and 110", "insert into u values (3, 1)"),
        False,
    ),
    "insert if none, over two tables": (
        ("select * from t where id = 100", "insert into u values (100, 1)"),
        ("select * from u where id = 100", "insert into t values (100, 1, null)"),
        False,
    ),
    "insert if none, of different keys": (
        ("select * from t where id = 100", "insert into t values (100, 1, null)"),
        ("select * from t where id = 101", "insert into t values (101, 1, null)"),
        True,
    ),
    "delete and insert of fresh keys, read by range": (
        ("delete from t where id = 1", "insert into t values (200, 0, null)"),
        ("select sum(n) from t where id >= 200", "insert into u values (3, 1)"),
        False,
    ),
    "write skew": (
        ("select sum(n) from u where id in (1, 2)", "update u set n = 0 where id = 1"),
        ("select sum(n) from u where id in (1, 2)", "update u set n = 0 where id = 2"),
        False,
    ),
    "a NULL in what is compared is no match": (
        ("insert into t values (300, 0, null)",),
        ("select count(*) from t where s <> 'x1' and id > 250", "insert into u values (3, 1)"),
        True,
    ),
    "an anti-join sees the row that would stop it": (
        ("insert into u values (5, 1)",),
        (
            "insert into u select id, 9 from t where id = 5"
            " and not exists (select from u where u.id = t.id)",
        ),
        False,
    ),
    "the missing side of a left join": (
        ("insert into u values (7, 0)",),
        (
            "select count(*) from t left join u on u.id = t.id where u.id is null",
            "insert into nothing values (1)",
        ),
        False,
    ),
    "blind inserts": (
        ("insert into t values (1, 0, null)",),
        ("insert into t values (1, 0, null)",),
        True,
    ),
    "a row that a foreign key rests on, with another note": (
        ("update parent set note = 'c' where id = 1",),
        ("insert into child values (1)",),
        True,
    ),
    "a row that a foreign key rests on, gone and back": (
        ("delete from parent where id = 1", "insert into parent values (1, 'c')"),
        ("insert into child values (1)",),
        True,
    ),
    "a row that a foreign key rests on, gone": (
        ("delete from parent where id = 1",),
        ("insert into child values (1)",),
        False,
    ),
    "a row that a foreign key rests on, with another key": (
        ("update parent set id = 3 where id = 1",),
        ("insert into child values (1)",),
        False,
    ),
    "a generated value that an update takes away": (
        ("update made set id = 5 where id = 1",),
        ("select * from made where twice = 2", "insert into u values (3, 1)"),
        False,
    ),
    "a generated value that an update leaves": (
        ("update made set note = 'c' where id = 2",),
        ("select id from made where twice = 2", "insert into u values (3, 1)"),
        True,
    ),
    "an error is a match": (
        ("insert into t values (400, 0, null)",),
        ("select count(*) from t where id > 64 and 1 / n > 0", "insert into u values (3, 1)"),
        False,
    ),
}


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("flushed", [False, True], ids=["tail", "files"])
@on_a_loop
async def test_two_blocks(story: str, *, flushed: bool) -> None:
    """Both take their snapshots, both run, the first one commits, then the second."""
    one, other, both_commit = STORIES[story]
    async with prepared(2, flushed=flushed, locks=False) as (stack, (first, second)):
        await pair(first, second)
        for connection, texts in ((first, one), (second, other)):
            for text in texts:
                await connection.execute(text)
        await first.execute("commit")
        if both_commit:
            await second.execute("commit")
            assert conflicts(stack.driver.core.validation) == 0
        else:
            with pytest.raises(psycopg.errors.SerializationFailure) as failure:
                await second.execute("commit")
            assert "after this transaction read it" in str(failure.value.diag.message_detail)


@pytest.mark.parametrize("story", STORIES)
@on_a_loop
async def test_one_group_gives_the_same_verdict(story: str) -> None:
    """As above, but both are in one group: they wait while a commit is under way."""
    one, other, both_commit = STORIES[story]
    stash = GatedStash()
    async with prepared(4, stash=stash, locks=False) as (stack, (first, second, third, asking)):
        await pair(first, second)
        for connection, texts in ((first, one), (second, other)):
            for text in texts:
                await connection.execute(text)

        async def waiting(count: int) -> None:
            while stack.driver.waiting < count:
                await asking.execute("select 1")

        async def both() -> list[object]:
            await waiting(1)
            ended = asyncio.gather(
                first.execute("commit"), second.execute("commit"), return_exceptions=True
            )
            await waiting(3)
            stash.gate.set()
            return list(await ended)

        stash.gate.clear()
        _, told = await asyncio.gather(third.execute("insert into other values (1)"), both())
        failed = [answer for answer in told if isinstance(answer, psycopg.Error)]
        assert len(failed) == (0 if both_commit else 1)


REPLACING = ("update t set n = 2 where id = 1", "delete from t where id = 1")
LEVELS = ("repeatable read", "read committed", "serializable")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("flushed", [False, True], ids=["tail", "cut between"])
@pytest.mark.parametrize("second_text", REPLACING)
@on_a_loop
async def test_of_two_who_replace_a_row_the_first_wins(
    level: str, second_text: str, *, flushed: bool
) -> None:
    async with prepared(2, flushed=flushed, locks=False) as (stack, (first, second)):
        await pair(first, second, level)
        await first.execute("update t set n = 1 where id = 1")
        await second.execute(second_text)
        await first.execute("commit")
        if flushed:
            await cut(stack, first)
        with pytest.raises(psycopg.errors.SerializationFailure):
            await second.execute("commit")
        assert await all_rows(first, "select n from t where id = 1") == [(1,)]


@on_a_loop
async def test_repeatable_read_lets_write_skew_through() -> None:
    async with prepared(2) as (_, (first, second)):
        await pair(first, second, "repeatable read")
        for connection, key in ((first, 1), (second, 2)):
            await connection.execute("select sum(n) from u")
            await connection.execute(f"update u set n = 0 where id = {key}")
        await first.execute("commit")
        await second.execute("commit")
        assert await all_rows(first, "select sum(n) from u") == [(0,)]


@on_a_loop
async def test_explain_verbose_says_what_is_read() -> None:
    async with prepared(1) as (_, (connection,)):
        lines = await all_rows(
            connection,
            "explain (verbose) update t set n = u.n from u where t.id = u.id and t.id = 5",
        )
        assert [line for (line,) in lines if line.startswith("Reads")] == [
            "Reads t: (id = 5)",
            "Reads u: (id = 5)",
        ]
        lines = await all_rows(connection, "explain (verbose) select count(*) from t")
        assert ("Reads t: all rows",) in lines


@pytest.mark.parametrize("same", [True, False], ids=["the same row", "different rows"])
@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_rows_are_known_after_their_files_were_rewritten(level: str, *, same: bool) -> None:
    """Both blocks name rows of files that are gone when they commit."""
    async with prepared(3, flushed=True, locks=False) as (stack, (first, second, third)):
        await third.execute("insert into t values (101, 0, 'x')")
        await cut(stack, third)
        await third.execute("delete from t where id = 64")
        await cut(stack, third)
        await pair(first, second, level)
        await first.execute("update t set n = 1 where id = 1")
        await second.execute(f"update t set n = 2 where id = {1 if same else 101}")
        before = files(stack)
        await third.execute("optimize t")
        assert not before <= files(stack), "nothing was rewritten"
        await first.execute("commit")
        await cut(stack, third)
        await third.execute("optimize t")
        if same:
            with pytest.raises(psycopg.errors.SerializationFailure):
                await second.execute("commit")
        else:
            await second.execute("commit")
        changed = await all_rows(third, "select id, n from t where n > 0 order by id")
        assert changed == ([(1, 1)] if same else [(1, 1), (101, 2)])
        assert await all_rows(third, "select count(*), count(distinct id) from t") == [(64, 64)]


def files(stack: Stack) -> set[str]:
    """The files of all tables now."""
    return {
        name
        for state in stack.driver.core.shards.values()
        if state.versions
        for name in state.versions[-1].files
    }
