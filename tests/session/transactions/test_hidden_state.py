"""Views that keep state beside what they show: hidden columns that nobody sees but maintenance.

They are stored with the rows, survive whatever happens to the view, and count for nothing where a
version of the server would keep others.
"""

from collections import Counter

import pytest
from psycopg import errors

from coordinator.core.settings import CoreSettings
from sql.binder.ddl import materialized_views
from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.transactions.test_followed_views import STATE, play
from tests.session.transactions.test_isolation import refused, value
from tests.session.transactions.test_maintained_views import PATIENT, stopped
from tests.support.connections import Connection, all_rows, connected, cut, on_a_loop
from tests.support.stack import Stack, running

STRATEGY = "select strategy from meridian.materialized_views where table_name = 'm'"
QUERY = "select g, avg(v) as a, bool_or(v > 15) as b from t group by g"


async def setup(connection: Connection, query: str = QUERY) -> None:
    await play(
        connection,
        "create table t (id int primary key, g int, v numeric(10, 2))",
        "insert into t values (1, 1, 10), (2, 1, 21), (3, 2, 30)",
        f"create materialized view m with (refresh = 'on commit') as {query}",
    )


async def check(connection: Connection) -> list[tuple[object, ...]]:
    """The view is exact, and its stored rows are those of its query."""
    assert await value(connection, STATE.format("m")) == "exact"
    await play(connection, "set view_reads = stored")
    stored = await all_rows(connection, "select * from m order by 1")
    await play(connection, "set view_reads = definition")
    assert stored == await all_rows(connection, "select * from m order by 1")
    await play(connection, "reset view_reads")
    return stored


def hidden(stack: Stack) -> list[str]:
    """The names of the hidden columns that the shard has."""
    table = stack.services.coordination.newest_catalog.tables["public", "m"]
    fields = stack.driver.core.shards[table.shard].schema.names
    assert fields[: len(table.columns)] == [column.field for column in table.columns]
    return fields[len(table.columns) :]


async def shows_its_query(one: Connection) -> None:
    """The view m is exact, and what it shows are the rows of its query."""
    assert await value(one, STATE.format("m")) == "exact"
    shown_rows = Counter(await all_rows(one, "table m"))
    await play(one, "set view_reads = definition")
    assert shown_rows == Counter(await all_rows(one, "table m"))
    await play(one, "reset view_reads")


@on_a_loop
async def test_nobody_sees_hidden_columns() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        assert hidden(stack) == ["_m_0", "_m_1", "_m_2", "_m_3", "_m_4"]
        assert await value(one, STRATEGY) == "sums"
        cursor = await one.execute("select * from m order by g")
        assert [column.name for column in cursor.description or ()] == ["g", "a", "b"]
        text = "select attname from pg_attribute where attrelid = 'm'::regclass and attnum > 0"
        assert await all_rows(one, f"{text} order by attnum") == [("g",), ("a",), ("b",)]
        assert await value(one, "select relnatts from pg_class where relname = 'm'") == 3
        await refused(one, "select _m_0 from m", errors.UndefinedColumn)
        row = await all_rows(one, "select row_to_json(m)::text from m where g = 2")
        assert row == [('{"g":2,"a":30,"b":true}',)]
        await play(one, "create table copied as select m.* from m")
        assert await value(one, "select count(*) from copied") == 2


@on_a_loop
async def test_groups_come_change_and_go() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        for change in (
            "insert into t values (4, 2, 5.5), (5, 3, null)",
            "update t set v = 16 where id = 1",
            "delete from t where id in (2, 3)",
            "update t set g = g + 1",
            "delete from t where g = 2",
            "delete from t",
            "insert into t values (9, 9, 9)",
        ):
            await play(one, change)
            await shows_its_query(one)
        assert await value(one, "select given_up from meridian.materialized_views") == 0


@on_a_loop
async def test_one_row_of_what_is_not_shown() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one, "select 100 * sum(v) / count(*) as x from t where g < 9")
        assert await value(one, STRATEGY) == "sums"
        for change in ("delete from t where id = 1", "delete from t", "insert into t values (1)"):
            await play(one, change)
            assert len(await check(one)) == 1


@on_a_loop
async def test_state_survives_renaming_cuts_and_restarts() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    core = CoreSettings(view_budget_us=20_000_000, cut_age_us=20_000)
    for life in range(3):
        again = running(stash=stash, store=store, core=core, maintained=True)
        async with again as stack, connected(stack, 1) as (one,):
            if life == 0:
                await setup(one)
                await cut(stack, one)
                await refused(
                    one,
                    "alter materialized view m rename column a to _m_0",
                    errors.DuplicateColumn,
                )
                await play(one, "alter materialized view m rename column a to mean")
            assert hidden(stack) == ["_m_0", "_m_1", "_m_2", "_m_3", "_m_4"]
            await play(one, "refresh materialized view m")
            for number in range(10 * life + 10, 10 * life + 14):
                await play(one, f"insert into t values ({number}, {number % 3}, {number})")
                await check(one)
            await cut(stack, one)
            await play(one, f"delete from t where id = {10 * life + 11}")
            assert len(await check(one)) == 3


@on_a_loop
async def test_a_column_that_is_called_like_state() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one, "select g as _m_0, avg(v) as _m_2 from t group by g")
        assert hidden(stack) == ["_m_1", "_m_3", "_m_4"]
        await play(one, "insert into t values (4, 2, 5.5)")
        await check(one)


@on_a_loop
async def test_refresh_compares_state_too_and_manual_views_keep_it() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        said: list[str] = []
        one.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
        await play(one, "refresh materialized view m")
        assert said == ['materialized view "m": 0 rows differ from those of its query']
        await play(
            one,
            "alter materialized view m set (refresh = 'manual')",
            "insert into t values (4, 2, 5.5)",
            "refresh materialized view m",
            "insert into t values (5, 2, 7)",
            "alter materialized view m set (refresh = 'on commit')",
            "refresh materialized view m",
            "insert into t values (6, 2, 8)",
        )
        await check(one)
        assert await value(one, STRATEGY) == "sums"


@on_a_loop
async def test_an_overflow_leaves_the_view_behind_and_no_writer() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one, "select g, avg(v) as a, sum(v)::int2 as s from t group by g")
        await play(one, "insert into t values (4, 2, 40000)")
        assert await value(one, STATE.format("m")) == "behind"
        because = "select given_up_because from meridian.materialized_views"
        told = str(await value(one, because))
        assert "22003" in told
        await refused(one, "table m", errors.NumericValueOutOfRange)
        await play(one, "delete from t where id = 4", "refresh materialized view m")
        await check(one)


@on_a_loop
async def test_state_that_another_version_has_stored_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await setup(one)
        monkeypatch.setattr(materialized_views, "with_state", lambda *_: None)
        await play(one, "alter materialized view m set (refresh = 'manual')")
        await play(one, "alter materialized view m set (refresh = 'on commit')")
        await play(one, "refresh materialized view m")
        assert await value(one, STRATEGY) == "affected keys"
        await play(one, "insert into t values (4, 2, 5.5)", "delete from t where id = 1")
        await check(one)
        monkeypatch.undo()
        await play(one, "alter materialized view m set (refresh = 'manual')")
        await play(one, "alter materialized view m set (refresh = 'on commit')")
        await play(one, "refresh materialized view m")
        assert await value(one, STRATEGY) == "sums"
        await play(one, "insert into t values (5, 2, 5.5)", "delete from t where id = 2")
        await check(one)


@pytest.mark.parametrize("followed", ["m", "(select a, b, g from m where g > 0)"])
@on_a_loop
async def test_who_follows_the_view_is_not_told_of_state(followed: str) -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 2) as (one, other):
        stopped(stack)
        await setup(one)
        await play(other, "begin", f"declare c cursor for subscribe {followed}")
        rows = await all_rows(other, "fetch all c")
        assert sorted(len(row) for row in rows) == [5, 5]
        # The average stays as it is; how many rows there are changes.
        await play(one, "insert into t values (4, 2, 30)")
        await play(one, "update t set v = 40 where id = 4")
        told = await all_rows(other, "fetch all c with (timeout = '0 s')")
        assert sorted((row[1], *map(str, row[2:])) for row in told) == sorted(
            [
                (weight, *(str(shown[name]) for name in ("gab" if followed == "m" else "abg")))
                for weight, mean in ((-1, 30), (1, 35))
                for shown in ({"g": 2, "a": mean, "b": True},)
            ]
        )
        await play(other, "rollback")


@pytest.mark.parametrize(
    ("type_", "before", "after"),
    [
        ("float8", "0", "-0"),
        ("float4", "-0", "0"),
        ("interval", "24 hours", "1 day"),
        ("jsonb", "1", "1.0"),
        ("float8[]", "{0}", "{-0}"),
    ],
)
@on_a_loop
async def test_a_group_shows_the_key_that_its_rows_have(
    type_: str, before: str, after: str
) -> None:
    """Equal keys of these types may look different, and a group kept the one it had had first."""
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await play(
            one,
            f"create table t (id int primary key, g {type_}, v numeric(10, 2))",
            f"insert into t values (1, '{before}', 10)",
            "create materialized view m with (refresh = 'on commit') as"
            " select g, count(*) as n, sum(v) as s from t group by g",
            f"update t set g = '{after}'",
        )
        assert [row[1:] for row in await check(one)] == [(1, 10)]
        await play(one, "set view_reads = stored")
        assert await all_rows(one, "select g::text from m") == [(after,)]


@on_a_loop
async def test_groups_of_characters_are_added_to() -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await play(
            one,
            "create table t (id int primary key, g char(3), v numeric(10, 2))",
            "insert into t values (1, 'a', 10), (2, 'a  ', 5)",
            "create materialized view m with (refresh = 'on commit') as"
            " select g, sum(v) as s from t group by g",
        )
        assert await value(one, STRATEGY) == "sums"
        await play(one, "update t set g = 'a '", "insert into t values (3, 'b', 1)")
        assert await check(one) == [("a  ", 15), ("b  ", 1)]


@pytest.mark.parametrize("shown", ["g", "'all' as shown"])
@on_a_loop
async def test_groups_are_found_by_keys_that_the_view_hides(shown: str) -> None:
    """A view with many rows is looked up by the columns that tell groups apart, hidden or not."""
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 1) as (one,):
        stopped(stack)
        await play(
            one,
            "create table t (id int primary key, g int, h int, v int)",
            "insert into t select i, i % 2, i, 1 from generate_series(1, 1000) i",
            "create materialized view m with (refresh = 'on commit') as"
            f" select {shown}, sum(v) as s from t group by g, h",
        )
        for change in (
            "insert into t values (2001, 1, 7, 5), (2002, 3, 2002, 9)",
            "update t set v = v + 1 where id = 3",
            "delete from t where id = 4",
        ):
            await play(one, change)
            await shows_its_query(one)
