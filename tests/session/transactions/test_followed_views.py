"""Materialized views that follow their inputs: exact or known to be behind, and read rightly.

The property: at every timestamp a query over the view answers what its definition does, and where
`view_reads = stored` answers, its rows are the same.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from psycopg import errors

from coordinator.core.settings import CoreSettings
from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.transactions.test_isolation import refused, value
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

LAST = "select meridian.last_commit_timestamp()"
NOW = "select read_ts from meridian.timelines where name = 'system'"
STATE = "select state from meridian.materialized_views where table_name = '{}'"
CASES = 14
STEPS = 25
CUTS = CoreSettings(cut_age_us=20_000, view_budget_us=20_000_000)


async def play(connection: Connection, *texts: str) -> None:
    for text in texts:
        await connection.execute(text.encode())


async def setup(connection: Connection) -> None:
    await play(
        connection,
        "create table t (id int primary key, g int, v int)",
        "insert into t values (1, 1, 10), (2, 1, 20), (3, 2, 30)",
        "create materialized view m with (refresh = 'on commit') as"
        " select g, sum(v) as s, count(*) as n from t group by g",
    )


async def exact(connection: Connection, name: str) -> None:
    """Until the view is exact, by REFRESH: nothing waits for catch-up."""
    await connection.execute(f"refresh materialized view {name}".encode())
    assert await value(connection, STATE.format(name)) == "exact"


async def ways(connection: Connection, text: str) -> list[str]:
    """How EXPLAIN says that a query reads its views."""
    lines = [str(row[0]) for row in await all_rows(connection, f"explain {text}")]
    return [line.partition(": ")[2] for line in lines if line.startswith("Materialized View")]


# --- which way a query takes ----------------------------------------------------------------------


@on_a_loop
async def test_a_new_view_is_exact_and_a_write_of_its_input_leaves_it_behind() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(other, "set view_reads = stored")
        before = "select * from m order by g"
        assert await ways(one, before) == ["stored rows of m"]
        assert await all_rows(other, before) == [(1, 30, 2), (2, 30, 1)]
        stack.server.stop_catch_up()
        await play(one, "insert into t values (4, 2, 5)")
        assert await ways(one, before) == ["definition of m (behind)"]
        assert await all_rows(one, before) == [(1, 30, 2), (2, 35, 2)]
        said = await refused(other, before, errors.ObjectNotInPrerequisiteState)
        assert "stored rows" in said
        await exact(one, "m")
        assert await all_rows(other, before) == [(1, 30, 2), (2, 35, 2)]


@on_a_loop
async def test_catch_up_attaches_what_is_behind() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        log = stack.server.services.catch_up
        await play(one, "insert into t values (4, 2, 5)")
        attached = asyncio.Event()
        log.told = attached.set
        async with asyncio.timeout(30):
            while await value(one, STATE.format("m")) != "exact":
                attached.clear()
                await attached.wait()
        await play(one, "set view_reads = stored")
        assert await all_rows(one, "select * from m order by g") == [(1, 30, 2), (2, 35, 2)]


@pytest.mark.parametrize(
    "change",
    [
        "insert into t values (9, 9, 9)",
        "update t set v = v + 1 where id = 1",
        "update t set v = 99 where g = 1",
        "delete from t where id = 1",
        "merge into t using (values (3)) x (id) on t.id = x.id when matched then delete",
        "truncate t",
        "alter table t add column more int",
        "alter table t alter v type bigint using v + 1",
        "insert into t select i, i, i from generate_series(100, 120) i",
    ],
)
@on_a_loop
async def test_every_kind_of_change_leaves_it_behind(change: str) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await play(
            one,
            "create table t (id int primary key, g int, v int)",
            "insert into t values (1, 1, 10), (2, 1, 20), (3, 2, 30)",
            "create materialized view m with (refresh = 'on commit') as"
            " select g, count(*) as n from t group by g",
        )
        stack.server.stop_catch_up()
        try:
            await play(one, change)
        except errors.FeatureNotSupported:
            return
        assert await value(one, STATE.format("m")) == "behind"
        definition = "select g, count(*) from t group by g"
        assert Counter(await all_rows(one, "table m")) == Counter(await all_rows(one, definition))


@on_a_loop
async def test_own_rows_are_seen_through_the_view() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        stack.server.stop_catch_up()
        count = "select n from m where g = 1"
        await play(one, "begin")
        assert await value(one, count) == 2
        await play(one, "insert into t values (7, 1, 1)", "savepoint s", "delete from t")
        assert await all_rows(one, count) == []
        await play(one, "rollback to s")
        assert await value(one, count) == 3
        await play(one, "rollback")
        assert await value(one, count) == 2
        assert await ways(one, count) == ["stored rows of m"]


@on_a_loop
async def test_a_new_meaning_of_a_plain_view_below_leaves_it_behind() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        await play(
            one,
            "create view few as select id, v from t where v < 25",
            "create materialized view mf with (refresh = 'on commit') as select id from few",
        )
        stack.server.stop_catch_up()
        assert await value(one, "select count(*) from mf") == 2
        await play(one, "create or replace view few as select id, v from t where v < 15")
        assert await value(one, "select count(*) from mf") == 1
        assert await value(one, STATE.format("mf")) == "behind"
        assert await value(one, STATE.format("m")) == "exact"


@on_a_loop
async def test_a_view_over_views_that_are_behind() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        await play(
            one,
            "create materialized view top with (refresh = 'on commit') as"
            " select max(s) as x from m",
        )
        stack.server.stop_catch_up()
        await play(one, "insert into t values (4, 2, 500)")
        assert await value(one, "select x from top") == 530
        # Also one that stores what it reads now, and a table.
        await play(one, "create materialized view kept as select s from m where g = 2")
        await play(one, "create table taken as select s from m where g = 2")
        assert await value(one, "select s from kept") == 530
        assert await value(one, "select s from taken") == 530
        await exact(one, "top")
        assert await ways(one, "table top") == ["stored rows of top"]
        assert await value(one, "select x from top") == 530


@on_a_loop
async def test_the_past_is_read_as_it_was_exact_or_not() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        stack.server.stop_catch_up()
        first = await value(one, LAST)
        await play(one, "insert into t values (4, 2, 5)")
        second = await value(one, LAST)
        await exact(one, "m")
        third = await value(one, LAST)
        await play(one, "delete from t where g = 1")
        query = "select sum(n) from m as of {}"
        found = [await value(one, query.format(ts)) for ts in (first, second, third)]
        assert found == [3, 4, 4]
        await play(one, "set view_reads = stored")
        assert await value(one, query.format(first)) == 3
        assert await value(one, query.format(third)) == 4
        await refused(one, query.format(second), errors.ObjectNotInPrerequisiteState)


# --- validation -----------------------------------------------------------------------------------


@on_a_loop
async def test_who_has_read_stored_rows_loses_if_the_view_falls_behind() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        stack.server.stop_catch_up()
        await play(one, "create table result (s int)", "begin")
        assert await ways(one, "table m") == ["stored rows of m"]
        sums = await value(one, "select sum(s) from m")
        await play(other, "update t set v = v + 1 where id = 1")
        await play(one, f"insert into result values ({sums})")
        await refused(one, "commit", errors.SerializationFailure)
        assert await all_rows(one, "table result") == []


@on_a_loop
async def test_who_reads_a_view_and_writes_its_input_commits() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        await play(one, "begin")
        assert await value(one, "select n from m where g = 1") == 2
        await play(one, "insert into t values (8, 1, 1)", "commit")
        assert await value(one, "select n from m where g = 1") == 3


@on_a_loop
async def test_who_has_read_the_definition_does_not_lose_when_it_is_attached() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        stack.server.stop_catch_up()
        await play(one, "create table result (s int)", "insert into t values (8, 1, 1)", "begin")
        assert await value(one, "select n from m where g = 1") == 3
        await exact(other, "m")
        await play(one, "insert into result values (3)", "commit")


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
@on_a_loop
async def test_levels_that_validate_nothing_attach_nothing(level: str) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        stack.server.stop_catch_up()
        await play(one, "insert into t values (8, 1, 1)", f"begin isolation level {level}")
        await play(one, "refresh materialized view m", "commit")
        assert await value(one, STATE.format("m")) == "behind"
        assert await value(one, "select n from m where g = 1") == 3


@on_a_loop
async def test_a_block_that_writes_an_input_after_it_has_made_the_view() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        stack.server.stop_catch_up()
        await play(
            one,
            "begin",
            "create materialized view late with (refresh = 'on commit') as select id from t",
            "insert into t values (50, 5, 5)",
            "commit",
        )
        assert await value(one, STATE.format("late")) == "behind"
        assert await value(one, "select count(*) from late") == 4


# --- errors, REFRESH, restart ---------------------------------------------------------------------


@on_a_loop
async def test_an_error_of_the_query_stops_readers_and_no_writer() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await play(
            one,
            "create table t (v int)",
            "insert into t values (1)",
            "create materialized view m with (refresh = 'on commit') as select 10 / v as x from t",
        )
        stack.server.stop_catch_up()
        await play(one, "insert into t values (0)")
        await refused(one, "table m", errors.DivisionByZero)
        await refused(one, "refresh materialized view m", errors.DivisionByZero)
        await play(one, "delete from t where v = 0")
        assert await all_rows(one, "table m") == [(10,)]
        await exact(one, "m")


@on_a_loop
async def test_refresh_compares_and_says_how_many_rows_differ() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        stack.server.stop_catch_up()
        said: list[str | None] = []
        one.add_notice_handler(lambda notice: said.append(notice.message_primary))
        await play(one, "refresh materialized view m", "insert into t values (4, 3, 1)")
        await play(one, "refresh materialized view m", "update t set v = v + 0")
        await play(one, "refresh materialized view m")
        view = 'materialized view "m": '
        of_query = " from those of its query"
        assert said == [
            f"{view}0 rows differ{of_query}",
            f"{view}1 row differs{of_query}",
            f"{view}0 rows differ{of_query}",
        ]
        assert await value(one, STATE.format("m")) == "exact"


@on_a_loop
async def test_a_restart_forgets_neither_exact_nor_behind() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    async with running(stash=stash, store=store) as stack, connected(stack, 1) as (one,):
        await setup(one)
        stack.server.stop_catch_up()
        await play(
            one,
            "create table u (v int)",
            "create materialized view calm with (refresh = 'on commit') as table u",
            "insert into t values (4, 3, 1)",
        )
    async with running(stash=stash, store=store) as stack, connected(stack, 1) as (one,):
        stack.server.stop_catch_up()
        assert await ways(one, "table calm") == ["stored rows of calm"]
        assert await ways(one, "table m") == ["definition of m (behind)"]
        assert await value(one, "select sum(n) from m") == 4


@on_a_loop
async def test_set_manual_and_back() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        stack.server.stop_catch_up()
        alter = "alter materialized view m set (refresh = {})"
        await play(one, alter.format("manual"), "insert into t values (4, 1, 1)")
        assert await value(one, "select n from m where g = 1") == 2
        await play(one, alter.format("'on commit'"))
        assert await value(one, "select n from m where g = 1") == 3
        assert await value(one, STATE.format("m")) == "behind"


REFUSED = [
    ("select random() as x", "volatile functions"),
    ("select now() as x", "a dependence on the time"),
    ("select current_user as x", "a dependence on the session"),
    ("select to_timestamp(v)::text as x from t", "a dependence on settings"),
    ("select v from t for update", "row locks"),
    ("select nextval('q') as x", "volatile functions"),
    ("(select v from t as of 1)", "AS OF"),
    ("select relname from pg_class", "system relations"),
]


@pytest.mark.parametrize(("query", "why"), REFUSED, ids=[why for _, why in REFUSED])
@on_a_loop
async def test_what_cannot_follow_its_inputs(query: str, why: str) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await play(one, "create table t (v int)", "create sequence q")
        text = f"create materialized view m with (refresh = 'on commit') as {query}"
        assert why in await refused(one, text, errors.FeatureNotSupported)


@on_a_loop
async def test_the_default_may_be_on_commit_for_what_can_be() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        said: list[str | None] = []
        one.add_notice_handler(lambda notice: said.append(notice.message_primary))
        await play(
            one,
            "create table t (v int)",
            "create materialized view a as table t",
            "set default_view_refresh = 'on commit'",
            "create materialized view b as table t",
            "create materialized view c as select now()",
        )
        found = "select table_name, refresh from meridian.materialized_views order by 1"
        manual, on_commit = "manual", "on commit"
        assert await all_rows(one, found) == [("a", manual), ("b", on_commit), ("c", manual)]
        assert said == [
            "materialized view c has refresh = 'manual': its query has a dependence on the time"
        ]


# --- the property ---------------------------------------------------------------------------------

QUERIES = (
    "select a, b from x where b > 3",
    "select a, sum(b) as s, count(*) as n, max(b) as most from x group by a",
    "select distinct b % 3 as r from x",
    "select x.a, y.b from x join y on x.a = y.a",
    "select x.a, y.b from x left join y on x.a = y.a and y.b > 2",
    "select a from x union all select a from y",
    "select a from x except select a from y",
    "select a, rank() over (partition by a order by b) as r, b from x",
    "select a, b from x where exists (select from y where y.a = x.a)",
    "select string_agg(b::text, ',' order by b) as all_b from x",
    "select a, b from x order by b, a limit 3",
    "select count(*) as n, (select count(*) from y) as m from x",
    "select * from plain",
    "select a, count(*) as n from one_before group by a",
)


def _change(rng: random.Random) -> str:
    table, a, b = rng.choice("xy"), rng.randrange(4), rng.randrange(8)
    return rng.choice(
        (
            f"insert into {table} values ({a}, {b})",
            f"insert into {table} select i % 4, i from generate_series(1, {b}) i",
            f"update {table} set b = b + 1 where a = {a}",
            f"delete from {table} where b = {b}",
            f"update {table} set a = {a} where b = {b}",
            f"insert into {table} values (null, {b})",
            "insert into other values (1)",
            "refresh materialized view v",
            "refresh materialized view v",
            "optimize x",
            f"truncate {table}" if rng.random() < 0.2 else "insert into other values (2)",
            f"begin; insert into x values ({a}, {b}); insert into y values ({a}, {b}); commit",
        )
    )


async def _compare(connection: Connection, at: Sequence[int]) -> int:
    """At every timestamp: the view is its query; where stored rows answer, they are those. How
    often they have answered.
    """
    stored = 0
    for ts in at:
        found = {}
        for way in ("definition", "auto", "stored"):
            await play(connection, f"set view_reads = {way}")
            try:
                rows = await all_rows(connection, f"select * from v as of {ts}")
            except errors.ObjectNotInPrerequisiteState:
                continue
            found[way] = Counter(map(tuple, rows))
        await play(connection, "set view_reads = auto")
        assert all(rows == found["definition"] for rows in found.values()), f"at {ts}: {found}"
        stored += "stored" in found
    return stored


@pytest.mark.parametrize("maintained", [False, True], ids=["left behind", "maintained"])
@pytest.mark.parametrize("seed", range(CASES))
@on_a_loop
async def test_a_view_is_its_query_at_every_timestamp(seed: int, maintained: bool) -> None:
    rng = random.Random(seed)
    stash, store = MemoryStash(), MemoryObjectStore()
    at: list[int] = []
    query = QUERIES[seed % len(QUERIES)]
    for life in range(2):
        running_now = running(stash=stash, store=store, core=CUTS, maintained=maintained)
        async with running_now as stack, connected(stack, 1) as (one,):
            if life == 0:
                await play(
                    one,
                    "create table x (a int, b int)",
                    "create table y (a int, b int)",
                    "create table other (a int)",
                    "create view plain as select x.a, y.b from x join y using (a)",
                    "create materialized view one_before with (refresh = 'on commit') as"
                    " select a, b from x where a > 0",
                    f"create materialized view v with (refresh = 'on commit') as {query}",
                )
            for _ in range(STEPS):
                for part in _change(rng).split("; "):
                    await play(one, part)
                at.append(int(str(await value(one, NOW))))
                if rng.random() < 0.2:
                    await asyncio.sleep(rng.random() * 0.1)
            stored = await _compare(one, at)
            assert stored > (len(at) // 2 if maintained else 0), "some of the time it was exact"
