"""Queries that ask for few rows by values on the local engine: no engine, the same answers."""

import random
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from compute.access import point_reads
from compute.executor import Run
from coordinator.core.settings import CoreSettings
from tests.session.keys.test_keyed_access import NoEngine
from tests.support.connections import Connection, all_rows, connected, cut, on_a_loop
from tests.support.stack import running

SETUP = (
    "set engine = local",
    "create table t (id int8 primary key, a int, b varchar, d date, at timestamptz, n numeric(9,2),"
    " span interval, list int[], unique (b, a), unique (d), unique (at), unique (n))",
    "insert into t select x, x * 10, 'b' || x, '2020-01-01'::date + x,"
    " '2020-01-01 00:00:00+00'::timestamptz + x * '1 day'::interval, x + 0.5, '1 mon 2 days',"
    " array[x, null] from (values (1), (2), (3), (4)) v(x)",
)

ANSWERS: tuple[tuple[str, list[tuple[Any, ...]]], ...] = (
    ("select b, id from t where id = 3", [("b3", 3)]),
    ("select * from t where id = 9", []),
    ("select 7, a from t where 2 = id", [(7, 20)]),
    ("select id from t where a = 20 and b = 'b2'", [(2,)]),
    ("select id from t where a = 20 and b = 'b3'", []),
    ("select id from t where a = 20::int2 and b = 'b2' and n > 2", [(2,)]),
    ("select id from t where id = 2 and n > 3", []),
    ("select id from t where id = 2 and (n > 3 or b is not null)", [(2,)]),
    ("select id from t where id = 2 limit 0", []),
    ("select id from t where id = 2 order by b limit 1 offset 0", [(2,)]),
    ("select id from t where d = '2020-01-03'", [(2,)]),
    ("select id from t where at = '2020-01-04 01:00+01'", [(3,)]),
    ("select id from t where n = 3.50", [(3,)]),
    ("select id from t where id = null", []),
    ("select id from t where id = 2 and id = 3", []),
    ("select id from t where id = 2 for update", [(2,)]),
)


async def _prepared(one: Connection) -> None:
    await one.execute("set timezone = 'UTC'")
    for line in SETUP:
        await one.execute(line.encode())


@pytest.mark.parametrize("flushed", [False, True])
@on_a_loop
async def test_no_engine_is_asked(flushed: bool) -> None:
    core = CoreSettings(cut_commits_max=1) if flushed else None
    async with (
        running(local=NoEngine(), core=core) as stack,
        connected(stack, 1) as (one,),
    ):
        await _prepared(one)
        if flushed:
            await cut(stack, one)
        for text, rows in ANSWERS:
            assert await all_rows(one, text) == rows, text
        shown = await all_rows(one, "select d, span, list from t where id = 1")
        assert [str(value) for value in shown[0]] == ["2020-01-02", "32 days, 0:00:00", "[1, None]"]
        for number in (1, 4, 5, 1 << 62, None):
            found = await (await one.execute("select a from t where id = %s", (number,))).fetchall()
            assert found == ([(number * 10,)] if number in (1, 4) else [])
        lines = await all_rows(one, "explain select * from t where id = 5")
        assert lines[-1] == ("Engine: reference (rows by key)",)


class Asked:
    """An engine that counts how often it is asked, and finds nothing."""

    name = "asked"

    def __init__(self) -> None:
        self.times = 0

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        self.times += 1
        for batch in list[pa.RecordBatch]():
            yield batch

    async def close(self) -> None:
        return None


@on_a_loop
async def test_what_is_computed_is_the_engines() -> None:
    engine = Asked()
    async with running(local=engine) as stack, connected(stack, 1) as (one,):
        await _prepared(one)
        texts = (
            "select a + 1 from t where id = 1",
            "select a from t where id in (1, 2)",
            "select a from t where a > 10",
            "select count(*) from t where id = 1",
            "select a from t where id = 1 and b like 'b%'",
            "select a from t where id = 1 or a = 10",
            "select x.a from t x, t y where x.id = 1 and y.id = 2",
            "select a from t where id = 1.0",
            "select a from t where n = 3.501",
            "select a from t where id = (select 1)",
        )
        for number, text in enumerate(texts, 1):
            assert await all_rows(one, text) == []
            assert engine.times == number, text


@pytest.mark.parametrize("flushed", [False, True])
@on_a_loop
async def test_every_change_is_seen(flushed: bool) -> None:
    core = CoreSettings(cut_commits_max=1) if flushed else None
    async with (
        running(local=NoEngine(), core=core) as stack,
        connected(stack, 2) as (one, other),
    ):
        await _prepared(one)
        await other.execute("set engine = local")
        asked = "select id, b from t where id = 2"
        for change, rows in (
            ("update t set b = 'second' where id = 2", [(2, "second")]),
            ("delete from t where id = 2", []),
            ("insert into t (id, b) values (2, 'third')", [(2, "third")]),
            ("alter table t rename column b to c", [(2, "third")]),
            ("alter table t add column e int", [(2, "third")]),
            ("update t set id = 5 where id = 2", []),
            ("update t set id = 2 where id = 5", [(2, "third")]),
        ):
            await one.execute(change.encode())
            if flushed:
                await cut(stack, one)
            asked = asked.replace(", b", ", c") if "rename" in change else asked
            assert await all_rows(other, asked) == rows, change
        assert await all_rows(other, "select e, id from t where id = 1") == [(None, 1)]
        async with one.transaction():
            await one.execute("insert into t (id, c) values (7, 'own')")
            await one.execute("update t set c = 'mine' where id = 2")
            assert await all_rows(one, "select c from t where id = 7") == [("own",)]
            assert await all_rows(one, "select c from t where id = 2") == [("mine",)]
            await one.execute("delete from t where id = 7")
            assert await all_rows(one, "select c from t where id = 7") == []
            assert await all_rows(other, "select c from t where id = 2") == [("third",)]
        assert await all_rows(other, "select c from t where id = 2") == [("mine",)]


@on_a_loop
async def test_who_has_read_the_row_conflicts_with_who_changes_it() -> None:
    async with running(local=NoEngine()) as stack, connected(stack, 2) as (one, other):
        await _prepared(one)
        for read, change in (
            ("select a from t where id = 1", "update t set a = 0 where id = 1"),
            ("select a from t where id = 77", "insert into t (id) values (77)"),
        ):
            await one.execute("begin isolation level serializable")
            await one.execute(read.encode())
            await one.execute("insert into t (id) values (1000)")
            await other.execute(change.encode())
            with pytest.raises(psycopg.errors.SerializationFailure):
                await one.execute("commit")
        await one.execute("begin isolation level serializable")
        await one.execute("select a from t where id = 1")
        await one.execute("insert into t (id) values (1000)")
        await other.execute("update t set a = 5 where id = 2")
        await one.execute("commit")


@pytest.mark.parametrize("seed", [1, 2])
@on_a_loop
async def test_columns_that_are_no_key_name_the_same_rows(seed: int) -> None:
    """Random rows with NULLs and repetitions, in files, large and small commits and own writes."""
    chance, rows = random.Random(seed), list[tuple[Any, ...]]()
    made = "(id int, a int, b text, d date, n numeric(9,1), f bool, u uuid)"
    texts = {"a": "3", "b": "'b1'", "d": "'2020-01-03'", "n": "2.5", "f": "true",
             "u": "'00000000-0000-0000-0000-000000000001'"}  # fmt: skip

    def literal(of: str, spread: int) -> str:
        if chance.random() < 0.2:
            return "null"
        number = chance.randrange(spread)
        return {
            "a": f"{number}", "b": f"'b{number}'", "d": f"'2020-01-{1 + number % 28:02}'",
            "n": f"{number}.5", "f": ("false", "true")[number % 2],
            "u": f"'00000000-0000-0000-0000-{number:012}'",
        }[of]  # fmt: skip

    async def insert(one: Connection, count: int) -> None:
        values: list[str] = []
        for number in range(len(rows), len(rows) + count):
            row = (number, *(literal(of, 40) for of in texts))
            rows.append(row)
            values.append(f"({', '.join(map(str, row))})")
        await one.execute(f"insert into t values {', '.join(values)}".encode())

    async with (
        running(local=NoEngine(), core=CoreSettings(cut_commits_max=1)) as stack,
        connected(stack, 1) as (one,),
    ):
        await one.execute("set engine = local")
        await one.execute(f"create table t {made}".encode())
        for count in (1_200, 30):
            await insert(one, count)
            await cut(stack, one)
        await insert(one, 1_100)
        await one.execute("begin")
        await insert(one, 20)
        gone = {chance.randrange(len(rows)) for _ in range(200)}
        for number in gone:
            await one.execute(f"delete from t where id = {number}".encode())
        for _ in range(60):
            asked = {of: literal(of, 40) for of in chance.sample(sorted(texts), 3)}
            asked |= {"d": literal("d", 40)}
            if asked.get("n") == "null":
                del asked["n"]  # it is cast, which is computing
            wanted = [
                row[0] for row in rows
                if row[0] not in gone
                and all(row[1 + list(texts).index(of)] == value != "null"
                        for of, value in asked.items())
            ]  # fmt: skip
            where = " and ".join(f"{of} = {value}" for of, value in asked.items())
            found = await all_rows(one, f"select id from t where {where}")
            assert found == [(number,) for number in wanted], where


@on_a_loop
async def test_many_rows_and_large_tables_are_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Asked()
    async with running(local=engine) as stack, connected(stack, 1) as (one,):
        await one.execute("set engine = local")
        await one.execute("create table t (id int, a int, primary key (id))")
        values = ", ".join(f"({n}, {n % 150 // 149})" for n in range(150))
        await one.execute(f"insert into t values {values}".encode())
        assert await all_rows(one, "select id from t where a = 1") == [(149,)]
        assert engine.times == 0
        shown = await all_rows(one, "explain select id from t where a = 0")
        assert shown[-1] == ("Engine: asked",)
        assert await all_rows(one, "select id from t where a = 0") == []
        assert engine.times == 1
        monkeypatch.setattr(point_reads, "INDEXED_ROWS_MAX", 149)
        assert await all_rows(one, "select id from t where a = 1") == []
        assert engine.times == 2
        assert await all_rows(one, "select a from t where id = 149") == [(1,)]
