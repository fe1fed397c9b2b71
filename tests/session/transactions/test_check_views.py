"""`meridian check --views` and REFRESH: how many stored rows are not those of the query."""

import asyncio

import pytest

from coordinator.core.messages.identities import ConnectionId, Isolation
from coordinator.main import main
from storage.batch import WriteBatch
from tests.session.transactions.test_followed_views import STATE, exact, play, setup
from tests.session.transactions.test_isolation import value
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import Stack, running, schema_of


async def write_wrongly(stack: Stack, name: str, rows: list[dict[str, object]]) -> None:
    """Rows that are not those of the query, though the view is exact (V6)."""
    driver = stack.driver
    txn = driver.begin(ConnectionId(77), isolation=Isolation.REPEATABLE_READ)
    snapshot = await driver.snapshot(txn)
    (table,) = (t for t in snapshot.catalog.tables.values() if t.name == name)
    schema = schema_of(table)
    named = [dict(zip(schema.names, row.values(), strict=True)) for row in rows]
    driver.write(txn, table, WriteBatch(schema.empty_table().from_pylist(named, schema=schema)))
    await driver.commit(txn)


async def checked(stack: Stack, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = await asyncio.to_thread(main, ["check", "--views", stack.dsn])
    return code, capsys.readouterr().out


@on_a_loop
async def test_each_exact_view_is_compared_at_one_timestamp(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        assert await checked(stack, capsys) == (0, "compared 0 views: ok\n")
        await setup(one)
        await play(
            one,
            "create table u (id int)",
            "create materialized view late with (refresh = 'on commit') as select id from u",
            'create materialized view "By hand" as select id from u',
        )
        stack.server.stop_catch_up()
        assert await checked(stack, capsys) == (0, "compared 2 views: ok\n")
        await play(one, "insert into u values (1)")
        behind = "public.late: behind its inputs, not compared\ncompared 1 views: ok\n"
        assert await checked(stack, capsys) == (0, behind)


@on_a_loop
async def test_rows_that_are_not_those_of_the_query_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await play(
            one,
            "create table t (g int)",
            "create materialized view m with (refresh = 'on commit') as select g from t",
        )
        stack.server.stop_catch_up()
        await write_wrongly(stack, "m", [{"g": 9}, {"g": 9}])
        code, said = await checked(stack, capsys)
        assert code == 1
        assert said == (
            "error: public.m: 2 of its rows differ from those of its query\n"
            "compared 1 views: 1 differ\n"
        )
        # It has changed nothing: REFRESH finds the same rows, and mends them.
        assert await all_rows(one, "select count(*) from m where g = 9") == [(2,)]
        await exact(one, "m")
        assert await all_rows(one, "select count(*) from m where g = 9") == [(0,)]
        assert await checked(stack, capsys) == (0, "compared 1 views: ok\n")
        assert await value(one, STATE.format("m")) == "exact"


def test_without_a_server_one_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--views", "postgresql://127.0.0.1:1/meridian"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
