"""Catch-up by the changes of the inputs: taken where it is cheaper, and right wherever it is taken.

A view that has been behind must have the rows of its query again, whichever way it went.
"""

import asyncio
from collections import Counter

import pytest

from coordinator.core.settings import CoreSettings
from coordinator.execution.views.attempts import ViewAttempts
from coordinator.server.view_catch_up import ViewCatchUp
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import Stack, running

CUTS = CoreSettings(cut_age_us=20_000)
QUERY = "select g, sum(v) as s, count(*) as n from t group by g"


async def play(connection: Connection, *texts: str) -> None:
    for text in texts:
        await connection.execute(text.encode())


async def setup(connection: Connection, query: str = QUERY) -> None:
    await play(
        connection,
        "create table t (id int primary key, g int, v int)",
        "insert into t select i, i % 100, i from generate_series(1, 1000) i",
        "create table u (g int primary key, name text)",
        "insert into u select i, 'n' || i from generate_series(0, 99) i",
        f"create materialized view m with (refresh = 'on commit') as {query}",
    )


async def caught_up(stack: Stack, oid: int) -> ViewAttempts:
    """Until catch-up has found the view exact."""
    log, coordination = stack.services.catch_up, stack.services.coordination
    found = asyncio.Event()
    log.told = found.set
    async with asyncio.timeout(60):
        while oid not in coordination.newest_catalog.exact_views or log.of(oid).due is not None:
            found.clear()
            await found.wait()
    return log.of(oid)


async def oid_of(connection: Connection) -> int:
    ((oid,),) = await all_rows(connection, "select 'm'::regclass::oid::int8")
    assert isinstance(oid, int)
    return oid


CHANGES = {
    "few rows": ("insert into t values (2000, 5, 1), (2001, 500, 2)", True),
    "an update": ("update t set v = v + 1, g = 7 where id < 20", True),
    "a delete": ("delete from t where g = 3", True),
    "many rows": ("update t set v = v + 1", False),
    "a new column": ("alter table t add column more int", False),
    "no rows": ("truncate t", False),
}
VIEWS = (
    QUERY,
    "select t.id, u.name from t join u on u.g = t.g where t.v > 10",
    "select u.name, t.v from u left join t on t.g = u.g and t.v < 200",
    "select id, v, rank() over (partition by g order by id) as r from t",
)


@pytest.mark.parametrize("query", VIEWS)
@on_a_loop
async def test_a_view_catches_up_by_changes_where_these_are_few(query: str) -> None:
    async with running(core=CUTS) as stack, connected(stack, 1) as (one,):
        await setup(one, query)
        oid = await oid_of(one)
        for what, (change, by_changes) in CHANGES.items():
            known = await caught_up(stack, oid)
            before = known.by_changes
            await play(one, change)
            known = await caught_up(stack, oid)
            assert (known.by_changes - before) == int(by_changes), what
            await play(one, "set view_reads = stored")
            stored = Counter(await all_rows(one, "table m"))
            await play(one, "set view_reads = definition")
            assert stored == Counter(await all_rows(one, "table m")), what


@on_a_loop
async def test_rows_that_came_and_went_while_it_was_behind_are_none() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        oid = await oid_of(one)
        await caught_up(stack, oid)
        await play(one, "begin", "insert into t values (2000, 5, 1)", "commit")
        await play(one, "delete from t where id = 2000", "insert into t values (2001, 5, 1)")
        await play(one, "update t set v = 9 where id = 2001", "delete from t where id = 2001")
        known = await caught_up(stack, oid)
        assert known.by_changes
        shown = "select by_changes from meridian.materialized_views where table_name = 'm'"
        assert await all_rows(one, shown) == [(known.by_changes,)]
        await play(one, "set view_reads = stored")
        assert await all_rows(one, "select n from m where g = 5") == [(10,)]


@on_a_loop
async def test_rows_that_a_refresh_without_proof_has_written_are_not_gone_on_from() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        oid = await oid_of(one)
        await caught_up(stack, oid)
        left = stack.services.coordination.followed_views.left
        stack.server.stop_catch_up()
        await play(one, "insert into t values (2000, 5, 1)")
        assert left(oid) is not None
        await play(one, "begin isolation level repeatable read", "refresh materialized view m")
        await play(one, "commit")
        assert oid not in stack.services.coordination.newest_catalog.exact_views
        assert left(oid) is None


@on_a_loop
async def test_another_meaning_of_the_query_is_not_gone_on_from() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await play(
            one,
            "create table t (id int, v int)",
            "create view few as select id from t where v < 25",
            "create materialized view m with (refresh = 'on commit') as select id from few",
        )
        oid = await oid_of(one)
        stack.server.stop_catch_up()
        left = stack.services.coordination.followed_views.left
        assert left(oid) is None
        await play(one, "insert into t values (1, 20), (2, 10)")
        assert left(oid) is not None
        await play(one, "create or replace view few as select id from t where v < 15")
        assert left(oid) is None


@on_a_loop
async def test_explain_says_of_each_node_how_it_is_maintained_and_why_not() -> None:
    async def said(query: str) -> list[str]:
        text = f"explain create materialized view x with (refresh = 'on commit') as {query}"
        lines = [str(line) for (line,) in await all_rows(one, text)]
        first = next(at for at, line in enumerate(lines) if line.startswith("Maintenance"))
        return [line for line in lines[first:] if not line.startswith("Engine")]

    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        joined = "select u.name, sum(t.v) from t join u on u.g = t.g group by u.name"
        assert await said(joined) == [
            "Maintenance: sums",
            "  Aggregate: added to, or affected keys (name)",
            "    Inner Join: changes of each side, beside all rows of the other one",
            "      Scan on t: its changes",
            "      Scan on u: its changes",
        ]
        assert await said("select count(distinct v) from t") == [
            "Maintenance: full (every change may bear on all rows: Aggregate)",
            "  Aggregate: full",
        ]
        assert await said("select sum(v) from t") == [
            "Maintenance: sums",
            "  Aggregate: added to, or affected keys",
            "    Scan on t: its changes",
        ]
        assert await said("select id from t order by id limit 3") == [
            "Maintenance: full (several answers are right: LIMIT or OFFSET)",
            "  Limit: full",
        ]
        text = "explain (format json) create materialized view x with (refresh = 'on commit') as "
        ((document,),) = await all_rows(one, text + QUERY)
        assert isinstance(document, list)
        maintenance = document[0]["Maintenance"]
        assert maintenance["Strategy"] == "sums"
        assert [node["Node"] for node in maintenance["Nodes"]] == ["Aggregate", "Scan on t"]
        lines = [
            line for (line,) in await all_rows(one, "explain create materialized view y as table t")
        ]
        assert not any("Maintenance" in str(line) for line in lines)


@on_a_loop
async def test_a_view_over_a_view_goes_on_from_the_tables_below_both() -> None:
    never = CoreSettings(view_delta_rows_max=0)
    async with running(core=never) as stack, connected(stack, 1) as (one,):
        await play(
            one,
            "create table t (g int, v int)",
            "insert into t select i, 1 from generate_series(1, 900) i",
            "create materialized view l with (refresh = 'on commit') as"
            " select g, sum(v) as s from t group by g",
            "create materialized view m with (refresh = 'on commit') as"
            " select count(*) as x from l where s > 50",
        )
        stack.server.stop_catch_up()
        oid = await oid_of(one)
        ((lower,),) = await all_rows(one, "select 'l'::regclass::oid::int8")
        assert isinstance(lower, int)
        catch_up = ViewCatchUp(stack.services)
        # The upper one is attached while the lower one has rows of long ago.
        await play(one, "insert into t values (1, 100)", "refresh materialized view m")
        await play(one, "insert into t values (1, 1000)")
        await catch_up._bring_up(lower)
        await catch_up._bring_up(oid)
        assert oid in stack.services.coordination.newest_catalog.exact_views
        await play(one, "set view_reads = stored")
        assert await all_rows(one, "select x from m") == [(1,)]


@on_a_loop
async def test_commits_maintain_a_view_over_a_view() -> None:
    patient = CoreSettings(view_budget_us=30_000_000)
    async with running(core=patient, maintained=True) as stack, connected(stack, 1) as (one,):
        await setup(one)
        await play(
            one,
            "create materialized view top with (refresh = 'on commit') as"
            " select count(*) as n from m where s > 5000",
        )
        log, coordination = stack.services.catch_up, stack.services.coordination
        ((oid,),) = await all_rows(one, "select 'top'::regclass::oid::int8")
        assert isinstance(oid, int)
        found = asyncio.Event()
        log.told = found.set
        async with asyncio.timeout(60):
            while log.upkeep_of(oid).strategy is None:
                found.clear()
                await found.wait()
        await play(one, "set view_reads = stored")
        ((before,),) = await all_rows(one, "select n from top")
        stack.server.stop_catch_up()
        await play(one, "insert into t values (3000, 5, 100000)")
        assert oid in coordination.newest_catalog.exact_views, log.upkeep_of(oid).because
        ((after,),) = await all_rows(one, "select n from top")
        assert after == before + 1
