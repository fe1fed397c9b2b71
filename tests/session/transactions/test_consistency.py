"""The names of levels, and the setting that makes them weaker: what is shown, and what is real."""

import pytest
from psycopg import errors

from tests.session.transactions.test_isolation import refused, setup, value
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running


async def real_level(connection: Connection) -> str:
    """The level that EXPLAIN TIMESTAMP names."""
    lines = await all_rows(connection, "explain timestamp for select * from t")
    (level,) = [str(line).removeprefix("Isolation: ") for (line,) in lines if "Isolation" in line]
    return level


STRICT = "strict serializable"
BOUNDED = "set consistency = 'bounded staleness 1min'"


@pytest.mark.parametrize(
    ("begin", "shown", "real"),
    [
        ("begin", "serializable", STRICT),
        ("begin isolation level serializable", "serializable", STRICT),
        ("begin isolation level repeatable read", "repeatable read", "repeatable read"),
        ("begin isolation level read committed", "read committed", "read committed"),
        ("begin isolation level read uncommitted", "read uncommitted", "read committed"),
        ("begin; set transaction isolation level serializable", "serializable", STRICT),
        ("begin; set transaction_isolation = 'serializable'", "serializable", STRICT),
        (
            "set session characteristics as transaction isolation level serializable",
            "serializable",
            STRICT,
        ),
        ("set default_transaction_isolation = 'serializable'", "serializable", STRICT),
        (
            "set default_transaction_isolation = 'read uncommitted'",
            "read uncommitted",
            "read committed",
        ),
        (
            "set default_transaction_isolation = 'read committed';"
            " begin isolation level serializable",
            "serializable",
            STRICT,
        ),
        ("set consistency = serializable", "serializable", "serializable"),
        ("begin; set local consistency = serializable", "serializable", "serializable"),
        (
            "set consistency = serializable; begin isolation level serializable",
            "serializable",
            "serializable",
        ),
        (
            "set consistency = serializable; begin isolation level repeatable read",
            "repeatable read",
            "repeatable read",
        ),
        ("set consistency = serializable; set consistency = strict", "serializable", STRICT),
        ("begin isolation level serializable; " + BOUNDED, "repeatable read", "bounded staleness"),
        (BOUNDED, "repeatable read", "bounded staleness"),
        (
            BOUNDED + "; begin isolation level read committed",
            "repeatable read",
            "bounded staleness",
        ),
        (BOUNDED + "; begin; set consistency = strict", "serializable", STRICT),
    ],
)
@on_a_loop
async def test_show_and_explain_tell_the_truth(begin: str, shown: str, real: str) -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        for statement in begin.split("; "):
            await connection.execute(statement)
        assert await value(connection, "show transaction_isolation") == shown
        assert await real_level(connection) == real


@pytest.mark.parametrize("name", ["transaction_isolation", "default_transaction_isolation"])
@on_a_loop
async def test_the_names_that_older_versions_had_are_refused(name: str) -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        for level, hint in (
            ("strict serializable", "Write serializable, which is strict."),
            ("Bounded Staleness 5s", "It is a value of the setting consistency."),
        ):
            with pytest.raises(errors.InvalidParameterValue) as caught:
                await connection.execute(f"set {name} = '{level}'")
            assert caught.value.diag.message_hint == hint


@on_a_loop
async def test_consistency_belongs_to_the_transaction_from_its_first_query_on() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        for change in (
            "set consistency = serializable",
            "set local consistency = serializable",
            "select set_config('consistency', 'serializable', false)",
        ):
            await connection.execute("begin")
            await value(connection, "select count(*) from t")
            text = await refused(connection, change, errors.ActiveSqlTransaction)
            assert "SET consistency must be called before any query" in text
            await connection.execute("rollback")
        await connection.execute("begin; savepoint s")
        text = await refused(
            connection, "set local consistency = serializable", errors.ActiveSqlTransaction
        )
        assert "SET consistency must not be called in a subtransaction" in text
        await connection.execute("rollback to s; set consistency = strict; rollback")
        text = await refused(
            connection, "select 1; set consistency = serializable", errors.ActiveSqlTransaction
        )
        # Alone, a function that sets it is a query like any other, but the last one.
        await connection.execute("select set_config('consistency', 'serializable', false)")
        assert await real_level(connection) == "serializable"


@on_a_loop
async def test_consistency_is_undone_with_its_transaction() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)

        async def is_now(expected: str) -> None:
            assert await value(connection, "show consistency") == expected
            assert await value(connection, "select current_setting('consistency')") == expected
            query = "select setting from pg_settings where name = 'consistency'"
            assert await value(connection, query) == expected

        await connection.execute("begin; set consistency = serializable; savepoint s")
        await is_now("serializable")
        await connection.execute("rollback to s")
        await is_now("serializable")
        await connection.execute("rollback")
        await is_now("strict")
        await connection.execute("begin; set local consistency = serializable; commit and chain")
        await is_now("serializable")
        assert await real_level(connection) == "serializable"
        await connection.execute("rollback")
        await is_now("strict")
        await connection.execute("begin; set consistency = serializable; commit")
        await is_now("serializable")
        await connection.execute("reset consistency")
        await is_now("strict")


@pytest.mark.parametrize("reset", ["reset all", "discard all", "select 1; close all; reset all"])
@on_a_loop
async def test_pools_that_clean_up_are_strict_again(reset: str) -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        await connection.execute("set consistency = serializable")
        await connection.execute(reset)
        assert await real_level(connection) == STRICT


@on_a_loop
async def test_reset_all_leaves_a_transaction_as_it_is() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        await connection.execute("set consistency = serializable; begin")
        await connection.execute("reset all")
        assert await value(connection, "show consistency") == "serializable"
        assert await real_level(connection) == "serializable"
        await connection.execute("commit")
        assert await real_level(connection) == STRICT


@on_a_loop
async def test_nobody_who_asks_for_serializable_is_stale() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        await connection.execute(BOUNDED)
        for begin in (
            "begin isolation level serializable",
            "begin; set transaction isolation level serializable",
            "begin; set local transaction_isolation = 'serializable'",
        ):
            text = await refused(connection, begin, errors.FeatureNotSupported)
            assert "cannot use serializable mode with bounded staleness" in text
            await connection.execute("rollback")
        # What is shown may be set back: nothing changes.
        await connection.execute("begin; set transaction isolation level repeatable read")
        assert await real_level(connection) == "bounded staleness"
