"""Primary keys and unique constraints, by every way in which rows come."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from compute.executor import Run
from compute.reference.executor import ReferenceExecutor
from coordinator.core.settings import CoreSettings
from coordinator.execution.context import ExecutionLimits
from tests.session.transactions.test_conflicts import CLIENTS
from tests.support.connections import GatedStash, all_rows, connected, cut, on_a_loop
from tests.support.stack import running

FRESH = "create table k (id bigint primary key, a int, b text, unique (a, b))"


def refused(error: psycopg.Error) -> tuple[Any, ...]:
    """What the client is told of a duplicate."""
    diag = error.diag
    return (
        diag.sqlstate,
        diag.constraint_name,
        diag.message_detail,
        diag.schema_name,
        diag.table_name,
    )


STORIES: dict[str, tuple[list[str], str, str | None]] = {
    "twice in one statement": ([], "insert into k values (1), (2), (1)", "(id)=(1)"),
    "another key": (["insert into k values (1)"], "insert into k values (2)", None),
    "the same key": (["insert into k values (1)"], "insert into k values (2), (1)", "(id)=(1)"),
    "the second constraint": (
        ["insert into k values (1, 1, 'x')"],
        "insert into k values (2, 1, 'x')",
        "(a, b)=(1, x)",
    ),
    "half of the second constraint": (
        ["insert into k values (1, 1, 'x'), (2, 2, 'y')"],
        "insert into k values (3, 1, 'y')",
        None,
    ),
    "NULLs are distinct": (
        ["insert into k values (1, 1, null)"],
        "insert into k values (2, 1, null)",
        None,
    ),
    "a deleted key is free": (
        ["insert into k values (1), (2)", "delete from k where id = 1"],
        "insert into k values (1)",
        None,
    ),
    "a key moves": (
        ["insert into k values (1), (2)"],
        "update k set id = 3 where id = 1",
        None,
    ),
    "a key moves onto another one": (
        ["insert into k values (1), (2)"],
        "update k set id = 2 where id = 1",
        "(id)=(2)",
    ),
    "all keys move at once": (
        ["insert into k values (1), (2), (3)"],
        "update k set id = id + 1",
        None,
    ),
    "all keys become one": (
        ["insert into k values (1), (2), (3)"],
        "update k set id = 7",
        "(id)=(7)",
    ),
    "columns beside the key": (
        ["insert into k values (1, 1, 'x'), (2, 2, 'x')"],
        "update k set b = 'y'",
        None,
    ),
    "insert select": (
        ["insert into k values (1), (2)"],
        "insert into k select id + 1 from k",
        "(id)=(2)",
    ),
    "insert select that fits": (
        ["insert into k values (1), (2)"],
        "insert into k select id + 2 from k",
        None,
    ),
}


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("place", ["tail", "files", "own"])
@on_a_loop
async def test_statements(story: str, place: str) -> None:
    """The rows before are in the tail, in files, or the transaction's own."""
    before, statement, taken = STORIES[story]
    core = CoreSettings(cut_commits_max=1) if place == "files" else None
    async with running(core=core) as stack, connected(stack, 1) as (connection,):
        await connection.execute(FRESH)
        if place == "own":
            await connection.execute("begin")
        for text in before:
            await connection.execute(text)
        if place == "files":
            await cut(stack, connection)
        if taken is None:
            await connection.execute(statement)
            if place == "own":
                await connection.execute("commit")
        else:
            with pytest.raises(psycopg.errors.UniqueViolation) as failure:
                await connection.execute(statement)
            name = "k_pkey" if taken.startswith("(id)") else "k_a_b_key"
            detail = f"Key {taken} already exists."
            assert refused(failure.value) == ("23505", name, detail, "public", "k")


@on_a_loop
async def test_nulls_not_distinct() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await connection.execute("create table n (a int, b int, unique nulls not distinct (a, b))")
        await connection.execute("insert into n values (1, null), (null, null), (null, 1)")
        with pytest.raises(psycopg.errors.UniqueViolation) as failure:
            await connection.execute("insert into n values (2, null), (1, null)")
        assert failure.value.diag.message_detail == "Key (a, b)=(1, null) already exists."


MANY = "".join(f"{number}\tn{number}\n" for number in range(10, 3000))
# Data, and what PostgreSQL 18 says of it: the key, and the line.
COPIES = (
    ("", "1\ta\n2\tb\n1\tc\n", "(id)=(1)", 3),
    ("", "1\ta\n5\tb\n1\tc\n", "(id)=(5)", 2),
    ("", "1\ta\n2\tfive\n1\tc\n", "(t)=(five)", 2),
    ("", "1\ta\n5\tfive\n", "(id)=(5)", 2),
    ("(format csv, header)", 'id,t\n1,"a\nb"\n2,x\n1,"c\nd"\n', "(id)=(1)", 6),
    ("(format csv)", '1,"a\nb"\n2,x\n5,y\n3,z\n', "(id)=(5)", 3),
    ("(format csv)", "1,\n2,\n3,x\n4,x\n", "(t)=(x)", 4),
    ("", MANY + "9\tn20\n10\tz\n", "(t)=(n20)", 2991),
    ("", MANY + "10\tz\n9\tn20\n", "(id)=(10)", 2991),
    ("(format csv)", MANY.replace("\t", ",") + '9,"x\ny"\n8,"x\ny"\n', "(t)=(x\ny)", 2994),
    ("", "1\ta\\\nb\n2\tb\n1\tc\n", "(id)=(1)", 3),
)


@pytest.mark.parametrize(("options", "data", "key", "line"), COPIES)
@on_a_loop
async def test_copy_names_the_first_violation(options: str, data: str, key: str, line: int) -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await connection.execute("create table c (id int primary key, t text unique)")
        await connection.execute("insert into c values (5, 'five')")
        with pytest.raises(psycopg.errors.UniqueViolation) as failure:
            async with connection.cursor().copy(f"copy c from stdin {options}") as copy:
                await copy.write(data)
        assert failure.value.diag.message_detail == f"Key {key} already exists."
        assert failure.value.diag.context == f"COPY c, line {line}"


@on_a_loop
async def test_copy() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await connection.execute(FRESH)
        await connection.execute("insert into k values (5)")
        for data, taken in (("1\n2\n1\n", 1), ("6\n5\n", 5)):
            with pytest.raises(psycopg.errors.UniqueViolation) as failure:
                async with connection.cursor().copy("copy k (id) from stdin") as copy:
                    await copy.write(data)
            assert failure.value.diag.message_detail == f"Key (id)=({taken}) already exists."
        async with connection.cursor().copy("copy k (id) from stdin") as copy:
            await copy.write("6\n7\n")
        assert await all_rows(connection, "select id from k order by id") == [(5,), (6,), (7,)]


@on_a_loop
async def test_many_rows_at_once() -> None:
    """Staged files, and more keys than are looked up one by one."""
    limits = ExecutionLimits(inline_bytes_max=10_000)
    async with running(limits=limits) as stack, connected(stack, 1) as (connection,):
        await connection.execute(FRESH)

        async def load(keys: range) -> None:
            async with connection.cursor().copy("copy k (id, a, b) from stdin") as copy:
                await copy.write("".join(f"{i}\t{i}\tx\n" for i in keys))

        await load(range(20_000))
        await load(range(20_000, 40_000))
        for keys in (range(39_999, 70_000), range(10, 11)):
            with pytest.raises(psycopg.errors.UniqueViolation):
                await load(keys)
        assert await all_rows(connection, "select count(*) from k") == [(40_000,)]
        await connection.execute("begin")
        await load(range(40_000, 41_000))
        with pytest.raises(psycopg.errors.UniqueViolation):
            await load(range(40_999, 42_000))
        await connection.execute("rollback")


@on_a_loop
async def test_of_many_who_insert_a_key_one_succeeds() -> None:
    async with running() as stack, connected(stack, CLIENTS) as connections:
        await connections[0].execute(FRESH)
        answers = await asyncio.gather(
            *(c.execute(f"insert into k values ({n % 8})") for n, c in enumerate(connections)),
            return_exceptions=True,
        )
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        assert len(failed) == CLIENTS - 8
        assert all(isinstance(error, psycopg.errors.UniqueViolation) for error in failed)
        assert await all_rows(connections[0], "select count(*), count(distinct id) from k") == [
            (8, 8)
        ]


LEVELS = ("serializable", "repeatable read", "read committed")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["insert", "update", "copy"])
@on_a_loop
async def test_two_blocks(level: str, way: str) -> None:
    """Both find the key free; the second to commit is told that it exists, at every level."""
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(FRESH)
        await first.execute("insert into k values (1), (2)")
        for number, connection in enumerate((first, second), 1):
            await connection.execute(f"begin isolation level {level}")
            match way:
                case "insert":
                    await connection.execute("insert into k values (5)")
                case "update":
                    await connection.execute(f"update k set id = 5 where id = {number}")
                case _:
                    async with connection.cursor().copy("copy k (id) from stdin") as copy:
                        await copy.write("5\n")
        await first.execute("commit")
        with pytest.raises(psycopg.errors.UniqueViolation) as failure:
            await second.execute("commit")
        detail = "Key (id)=(5) already exists."
        assert refused(failure.value) == ("23505", "k_pkey", detail, "public", "k")
        assert await all_rows(first, "select count(*) from k where id = 5") == [(1,)]


@on_a_loop
async def test_read_committed_looks_since_the_first_statement() -> None:
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(FRESH)
        await first.execute("begin isolation level read committed")
        await first.execute("insert into k values (5)")
        await second.execute("insert into k values (5)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await first.execute("insert into k values (6)")


@on_a_loop
async def test_a_key_that_came_and_went_is_no_duplicate() -> None:
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(FRESH)
        await first.execute("begin")
        await first.execute("insert into k values (5)")
        await second.execute("insert into k values (5)")
        await second.execute("delete from k where id = 5")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await first.execute("commit")


@on_a_loop
async def test_a_savepoint_takes_a_key_back() -> None:
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(FRESH)
        await first.execute("begin")
        await first.execute("insert into k values (1)")
        await first.execute("savepoint a")
        await first.execute("insert into k values (5)")
        await first.execute("rollback to a")
        await second.execute("insert into k values (5)")
        # What was seen, that 5 was free, is not true any more; but 5 is not in doubt.
        with pytest.raises(psycopg.errors.SerializationFailure):
            await first.execute("commit")


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
@pytest.mark.parametrize("undo", ["rollback to a", "delete from k where id = 5"])
@on_a_loop
async def test_a_key_that_was_taken_back_is_of_no_concern(level: str, undo: str) -> None:
    """These levels do not validate what was seen: only the keys that are given count."""
    async with running() as stack, connected(stack, 2) as (first, second):
        await first.execute(FRESH)
        await first.execute(f"begin isolation level {level}")
        await first.execute("insert into k values (1)")
        await first.execute("savepoint a")
        await first.execute("insert into k values (5)")
        await first.execute(undo)
        await second.execute("insert into k values (5)")
        await first.execute("insert into k values (2)")
        await first.execute("commit")
        assert await all_rows(first, "select id from k order by id") == [(1,), (2,), (5,)]


@pytest.mark.parametrize("undo", ["rollback to a", "delete from {0} where id = 1"])
@on_a_loop
async def test_a_key_that_was_seen_free_is_a_read(undo: str) -> None:
    """Each has seen that the other's key is free, and has then written its own: no order fits."""
    async with running() as stack, connected(stack, 2) as (first, second):
        for table in ("ka", "kb"):
            await first.execute(f"create table {table} (id int primary key)")
        for connection, seen, written in ((first, "ka", "kb"), (second, "kb", "ka")):
            await connection.execute("begin")
            await connection.execute("savepoint a")
            await connection.execute(f"insert into {seen} values (1)")
            await connection.execute(undo.format(seen))
            await connection.execute(f"insert into {written} values (1)")
        await first.execute("commit")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await second.execute("commit")


@on_a_loop
async def test_one_group() -> None:
    """Of two in one group the second is refused while the first is not durable yet."""
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 4) as (a, b, third, asking):
        await a.execute(FRESH)
        await a.execute("create table other (x int)")
        for connection in (a, b):
            await connection.execute("begin")
            await connection.execute("insert into k values (5)")

        async def waiting(count: int) -> None:
            while stack.driver.waiting < count:
                await asking.execute("select 1")

        async def both() -> list[object]:
            await waiting(1)
            ended = asyncio.gather(a.execute("commit"), b.execute("commit"), return_exceptions=True)
            await waiting(3)
            stash.gate.set()
            return list(await ended)

        stash.gate.clear()
        _, told = await asyncio.gather(third.execute("insert into other values (1)"), both())
        failed = [answer for answer in told if isinstance(answer, psycopg.Error)]
        assert [error.sqlstate for error in failed] == ["40001"]
        assert await all_rows(a, "select count(*) from k") == [(1,)]


@on_a_loop
async def test_delete_and_insert_of_one_key_in_a_block() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await connection.execute(FRESH)
        await connection.execute("insert into k values (1)")
        await connection.execute("begin")
        await connection.execute("delete from k where id = 1")
        await connection.execute("insert into k values (1, 2)")
        await connection.execute("update k set a = 3 where id = 1")
        await connection.execute("commit")
        assert await all_rows(connection, "select id, a from k") == [(1, 3)]


@pytest.mark.parametrize("seed", range(4))
@on_a_loop
async def test_random_statements_against_a_model(seed: int) -> None:
    """Rows wander from own writes to the tail, to files and into rewritten files."""
    rng = random.Random(seed)
    core = CoreSettings(cut_commits_max=7)
    async with running(core=core) as stack, connected(stack, 1) as (connection,):
        await connection.execute("create table m (a int, b text, n int, primary key (a, b))")
        rows: dict[tuple[int, str], int] = {}
        before = dict(rows)
        in_block = False
        refusals = 0
        for number in range(150):
            if in_block and rng.random() < 0.2:
                await connection.execute("commit")
                in_block = False
            elif not in_block and rng.random() < 0.1:
                before = dict(rows)
                await connection.execute("begin")
                in_block = True
            if not in_block and number % 40 == 39:
                await connection.execute("optimize m")
            text, after = statement_and_effect(rng, rows)
            if after is not None:
                rows = after
                await connection.execute(text)
                continue
            refusals += 1
            with pytest.raises(psycopg.errors.UniqueViolation):
                await connection.execute(text)
            if in_block:
                await connection.execute("rollback")
                rows, in_block = before, False
        if in_block:
            await connection.execute("commit")
        found = await all_rows(connection, "select a, b, n from m")
        assert sorted(found) == sorted((a, b, n) for (a, b), n in rows.items())
        assert refusals > 10, "no duplicate was tried: nothing was shown"


Rows = dict[tuple[int, str], int]


def statement_and_effect(rng: random.Random, rows: Rows) -> tuple[str, Rows | None]:
    """A random statement, and the rows after it; None if it makes a duplicate."""
    keys = [(rng.randrange(6), rng.choice("xyz")) for _ in range(rng.choice((1, 1, 3)))]
    match rng.randrange(6):
        case 0 | 1 | 2:
            values = ", ".join(f"({a}, '{b}', 0)" for a, b in keys)
            taken = len(set(keys)) < len(keys) or any(key in rows for key in keys)
            after = None if taken else {**rows, **dict.fromkeys(keys, 0)}
            return f"insert into m values {values}", after
        case 3:
            a, b = keys[0]
            kept = {key: n for key, n in rows.items() if key != (a, b)}
            return f"delete from m where a = {a} and b = '{b}'", kept
        case 4:
            old, new = keys[0][0], rng.randrange(6)
            moved = {(new if a == old else a, b): n for (a, b), n in rows.items()}
            after = moved if len(moved) == len(rows) else None
            return f"update m set a = {new} where a = {old}", after
        case _:
            a, _ = keys[0]
            counted = {key: n + (key[0] == a) for key, n in rows.items()}
            return f"update m set n = n + 1 where a = {a}", counted


class Interrupted(ReferenceExecutor):
    """An engine that lets something happen before each of its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], Awaitable[None]] | None = None

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        if self.before is not None:
            await self.before()
        async for batch in super().run(run):
            yield batch


@on_a_loop
async def test_a_cut_while_an_update_runs_renames_the_rows_that_go() -> None:
    """The rows that make room are named as they were when the statement read them."""
    engine, limits = Interrupted(), ExecutionLimits(auto_rows_max=0)
    core = CoreSettings(cut_commits_max=3)
    async with running(core=core, engine=engine, limits=limits) as stack:
        async with connected(stack, 2) as (connection, other):
            await connection.execute(FRESH)
            await connection.execute("insert into k values (1), (2)")
            await connection.execute("insert into k values (3)")

            async def cut_now() -> None:
                engine.before = None
                await other.execute("insert into k values (100)")
                await cut(stack, other)

            engine.before = cut_now
            await connection.execute("update k set id = id + 0 where id < 50")
            assert engine.before is None, "nothing happened in between"
        assert stack.driver.core.validation.by_key == 0
