"""Materialized views that commits maintain: the change and the view's rows are one commit.

A view that cannot be maintained in time is left behind with the commit, which goes on.
"""

import asyncio
from collections import Counter

import pytest
from psycopg import errors

from compute.access.narrowed_plans import NarrowedPlans
from coordinator.core.settings import CoreSettings
from coordinator.core.views.deltas import MaintainViews, ViewsMaintained
from coordinator.server.view_catch_up import ViewCatchUp
from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.transactions.test_followed_views import STATE, play, setup, ways
from tests.session.transactions.test_isolation import refused, value
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import Stack, running

PATIENT = CoreSettings(view_budget_us=20_000_000)
"""The machine of tests is slow now and then."""

ALL = "select * from m order by g"
KEPT = (2, 30, 1)
GONE = "delete from t where id = 3"


def stopped(stack: Stack) -> Stack:
    """Nothing attaches a view that has fallen behind."""
    stack.server.stop_catch_up()
    return stack


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ("insert into t values (4, 2, 5)", [(1, 30, 2), (2, 35, 2)]),
        ("insert into t values (4, 3, 5)", [(1, 30, 2), (2, 30, 1), (3, 5, 1)]),
        ("update t set v = v + 1 where id = 1", [(1, 31, 2), (2, 30, 1)]),
        ("update t set g = 2 where g = 1", [(2, 60, 3)]),
        ("update t set id = id + 10", [(1, 30, 2), (2, 30, 1)]),
        ("delete from t where id = 3", [(1, 30, 2)]),
        ("delete from t", []),
        ("truncate t", []),
        ("insert into t select 10 + i, 1, i from generate_series(1, 9) i", [(1, 75, 11), KEPT]),
        ("insert into t values (1, 1, 7) on conflict (id) do update set v = 0", [(1, 20, 2), KEPT]),
        ("delete from t where id = 99", [(1, 30, 2), (2, 30, 1)]),
        ("insert into t values (4, null, null)", [(1, 30, 2), (2, 30, 1), (None, None, 1)]),
        (f"begin; insert into t values (4, 2, 5); {GONE}; commit", [(1, 30, 2), (2, 5, 1)]),
    ],
)  # fmt: skip
@on_a_loop
async def test_a_change_and_the_view_are_one_commit(
    change: str, rows: list[tuple[int, int, int]]
) -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 2) as (one, other):
        stopped(stack)
        await setup(one)
        await play(one, *change.split("; "))
        assert await value(one, STATE.format("m")) == "exact"
        assert await ways(other, ALL) == ["stored rows of m"]
        await play(other, "set view_reads = stored")
        assert await all_rows(other, ALL) == rows
        query = "select g, sum(v) as s, count(*) as n from t group by g order by g"
        assert await all_rows(other, query) == rows


@on_a_loop
async def test_the_past_of_a_maintained_view() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        at = []
        for number in range(10, 20):
            await play(one, f"insert into t values ({number}, 1, 1)")
            at.append(await value(one, "select meridian.last_commit_timestamp()"))
        await play(one, "set view_reads = stored")
        found = [await value(one, f"select n from m where g = 1 as of {ts}") for ts in at]
        assert found == [*range(3, 13)]


@on_a_loop
async def test_many_clients_that_change_one_group_all_commit() -> None:
    clients, each = 64, 3
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, clients) as all_of:
        stopped(stack)
        await setup(all_of[0])

        async def change(number: int) -> None:
            for turn in range(each):
                await play(
                    all_of[number], f"insert into t values ({100 + number * each + turn}, 1, 1)"
                )

        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(change(number))
        await play(all_of[0], "set view_reads = stored")
        assert await all_rows(all_of[1], "select s, n from m where g = 1") == [
            (30 + clients * each, 2 + clients * each)
        ]
        counts = stack.driver.core.view_counts
        assert all(not one.left for one in counts.values())
        assert sum(one.commits for one in counts.values()) < clients * each


@on_a_loop
async def test_who_has_read_a_group_loses_only_if_that_group_has_changed() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 2) as (one, other):
        stopped(stack)
        await setup(one)
        await play(one, "create table result (n int)")
        for group, lost in ((1, True), (2, False)):
            await play(one, "begin")
            count = await value(one, "select n from m where g = 1")
            await play(other, f"insert into t values ({50 + group}, {group}, 1)")
            await play(one, f"insert into result values ({count})")
            if lost:
                await refused(one, "commit", errors.SerializationFailure)
            else:
                await play(one, "commit")


@on_a_loop
async def test_who_reads_a_view_and_writes_its_input_commits_beside_others() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 2) as (one, other):
        stopped(stack)
        await setup(one)
        for number in range(60, 64):
            await play(one, "begin")
            count = await value(one, "select n from m where g = 1")
            await play(one, f"insert into t values ({number}, 1, {count})", "commit")
            await play(other, f"insert into t values ({number + 10}, 2, 1)")
            assert await value(one, STATE.format("m")) == "exact"
        assert await value(one, "select n from m where g = 1") == 6


@on_a_loop
async def test_an_error_of_the_query_leaves_the_view_behind_and_no_writer() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await play(
            one,
            "create table t (id int primary key, v int)",
            "insert into t values (1, 1)",
            "create materialized view m with (refresh = 'on commit') as"
            " select id, 10 / v as q from t",
            "insert into t values (2, 5)",
        )
        assert await value(one, STATE.format("m")) == "exact"
        await play(one, "insert into t values (3, 0)")
        assert await value(one, STATE.format("m")) == "behind"
        await refused(one, "table m", errors.DivisionByZero)
        await play(one, "delete from t where v = 0")
        assert await all_rows(one, "select * from m order by id") == [(1, 10), (2, 2)]


@on_a_loop
async def test_a_slow_view_is_left_behind_and_what_comes_late_counts_for_nothing() -> None:
    late = asyncio.Event()
    core = CoreSettings(view_budget_us=1)
    async with running(core=core, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        maintain = stack.driver.maintain_views

        async def slowly(effect: MaintainViews) -> ViewsMaintained:
            await late.wait()
            return await maintain(effect)

        stack.driver.maintain_views = slowly
        await play(one, "insert into t values (4, 2, 5)")
        assert await value(one, STATE.format("m")) == "behind"
        late.set()
        assert await all_rows(one, ALL) == [(1, 30, 2), (2, 35, 2)]


@on_a_loop
async def test_writes_of_other_tables_pass_a_lane() -> None:
    go_on = asyncio.Event()
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 3) as (a, b, c):
        stopped(stack)
        await setup(a)
        await play(a, "create table other (v int)")
        maintain = stack.driver.maintain_views

        async def held(effect: MaintainViews) -> ViewsMaintained:
            await go_on.wait()
            return await maintain(effect)

        stack.driver.maintain_views = held
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(play(b, "insert into t values (4, 2, 5)"))
            await play(c, "insert into other values (1)", "update other set v = 2")
            assert await value(a, "select count(*) from t") == 3
            assert await value(a, "select sum(s) from m") == 60
            assert not writing.done()
            go_on.set()
        assert await value(a, STATE.format("m")) == "exact"
        assert await value(a, "select sum(s) from m") == 65


@on_a_loop
async def test_many_rows_leave_the_view_behind_at_once() -> None:
    core = CoreSettings(view_budget_us=20_000_000, view_delta_rows_max=5)
    async with running(core=core, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        await play(one, "insert into t select 10 + i, 1, i from generate_series(1, 5) i")
        assert await value(one, STATE.format("m")) == "exact"
        await play(one, "insert into t select 20 + i, 1, i from generate_series(1, 6) i")
        assert await value(one, STATE.format("m")) == "behind"


@on_a_loop
async def test_one_that_writes_inputs_of_two_views_maintains_both() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 2) as (one, other):
        stopped(stack)
        await setup(one)
        await play(
            one,
            "create table u (id int)",
            "create materialized view n with (refresh = 'on commit') as select id from u",
            "begin",
            "insert into t values (4, 2, 5)",
            "insert into u values (1)",
        )
        await play(other, "insert into u values (2)")
        await play(one, "commit")
        for name in "mn":
            assert await value(one, STATE.format(name)) == "exact"
        await play(one, "set view_reads = stored")
        assert await all_rows(one, ALL) == [(1, 30, 2), (2, 35, 2)]
        assert await all_rows(one, "select id from n order by id") == [(1,), (2,)]


@on_a_loop
async def test_after_a_restart_views_are_maintained_again() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    for life in range(2):
        again = running(stash=stash, store=store, core=PATIENT, maintained=True)
        async with again as stack, connected(stack, 1) as (one,):
            if life == 0:
                await setup(one)
                continue
            log, known = stack.services.catch_up, asyncio.Event()
            log.told = known.set
            async with asyncio.timeout(30):
                while not any(one.strategy for one in log.upkeep.values()):
                    known.clear()
                    await known.wait()
            stopped(stack)
            await play(one, "insert into t values (4, 2, 5)")
            assert await value(one, STATE.format("m")) == "exact"
            assert await all_rows(one, ALL) == [(1, 30, 2), (2, 35, 2)]


@on_a_loop
async def test_an_error_of_the_query_is_told_from_the_commit_that_leaves_it_behind_on() -> None:
    """Nobody has tried to bring it up to date, and last_error says already why it is behind."""
    error = "select last_error from meridian.materialized_views"
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await play(one, "create table t (a int)", "insert into t values (1)")
        view = (
            "create materialized view m with (refresh = 'on commit') as select 10 / a as q from t"
        )
        await play(one, view)
        assert await value(one, error) is None
        await play(one, "insert into t values (0)")
        assert await value(one, STATE.format("m")) == "behind"
        assert str(await value(one, error)).startswith("22012: ")
        await play(one, "delete from t where a = 0", "refresh materialized view m")
        assert (await value(one, STATE.format("m")), await value(one, error)) == ("exact", None)
        # It is left behind for another reason: the error is not that of this time.
        await play(one, "alter table t add column b int")
        assert await value(one, STATE.format("m")) == "behind"
        assert await value(one, error) is None


@on_a_loop
async def test_a_program_has_run_when_its_view_is_attached() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        first = "select v from t order by v limit 1"
        await play(one, f"create materialized view w with (refresh = 'on commit') as {first}")
        warm = {oid: known.is_warm for oid, known in stack.services.catch_up.upkeep.items()}
        oids = [await value(one, f"select '{name}'::regclass::oid::int8") for name in ("m", "w")]
        # A program that computes all rows is left to catch-up.
        assert [warm[int(str(oid))] for oid in oids] == [True, False]
        await play(one, "insert into t values (4, 2, 5)")
        assert await value(one, STATE.format("m")) == "exact"


@on_a_loop
async def test_a_view_that_is_left_behind_before_its_program_is_derived() -> None:
    """As after a start, if a commit comes first. Found by random views: it was XX000."""
    async with running(core=PATIENT) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        await play(one, "insert into t values (4, 2, 5)")
        log = stack.services.catch_up
        late = ViewCatchUp(stack.services)
        with pytest.MonkeyPatch.context() as patch:
            # It was exact a moment ago.
            patch.setattr(late, "_without_program", lambda: [*log.views])
            patch.setattr(log, "told", late.stop)
            await late.run()
        (known,) = log.views.values()
        assert known.last_error is None


@on_a_loop
async def test_a_program_that_breaks_when_it_runs_first_does_not_break_create() -> None:
    def broken(*_: object) -> None:
        raise KeyError("planted")

    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(NarrowedPlans, "rows_now", broken)
            await setup(one)
            assert await value(one, STATE.format("m")) == "exact"
            await play(one, "insert into t values (4, 2, 5)")
            assert await value(one, STATE.format("m")) == "behind"
        assert await all_rows(one, ALL) == [(1, 30, 2), (2, 35, 2)]


@on_a_loop
async def test_a_program_runs_first_beside_rows_that_are_deleted() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await play(one, "create table t (id int primary key, g int, v int)")
        await play(one, "insert into t select i, i % 3, i from generate_series(1, 3000) i")
        await play(one, "delete from t where id < 2999", "create view w as table t")
        await play(
            one,
            "create materialized view m with (refresh = 'on commit') as"
            " select a.g, count(*) as n from w a join w b using (id) group by a.g",
        )
        await play(one, "delete from t where id = 3000")
        assert await value(one, STATE.format("m")) == "exact"
        assert await all_rows(one, ALL) == [(2, 1)]


@pytest.mark.parametrize(
    "query",
    [
        "select p.a as g, string_agg(p.id || ':' || coalesce(q.id, 0), ',' order by p.id, q.id)"
        " from x p left join x q on p.a = q.a group by p.a",
        "select s.a as g, s.id, rank() over (partition by s.a order by s.id) as r"
        " from (select p.id, p.a from x p left join x q on p.a = q.a and q.id > p.id) s",
    ],
)
@on_a_loop
async def test_null_is_looked_up_as_equal_and_as_unequal_in_one_run(query: str) -> None:
    """A join finds no row for NULL. Those of the group of NULL were taken to be the same."""
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await play(one, "create table x (id int primary key, a int)")
        await play(one, "insert into x select i, nullif(i % 50, 0) from generate_series(1, 400) i")
        await play(one, f"create materialized view m with (refresh = 'on commit') as {query}")
        for change in (
            "insert into x values (500, null), (501, 7)",
            "update x set a = 3 where id in (50, 7)",
            "delete from x where id in (100, 57)",
        ):
            await play(one, change)
            assert await value(one, STATE.format("m")) == "exact"
            assert Counter(await all_rows(one, "table m")) == Counter(await all_rows(one, query))
