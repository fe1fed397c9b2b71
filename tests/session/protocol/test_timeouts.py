"""Time limits: each ends what PostgreSQL's ends, with its SQLSTATE, and nothing else.

Limits are short and waited for; that something takes less than its limit is asserted nowhere.
"""

import asyncio

import pytest

from coordinator.core.messages.identities import ConnectionId
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.errors import SqlError
from storage.clock import SystemClock
from tests.session.protocol.test_interrupts import Client, StuckEngine, run
from tests.support.stack import running

ENDS = 99
"""More answers than come: hear until the server hangs up."""

TRANSACTION_TIMEOUT = "FATAL 25P04 terminating connection due to transaction timeout"
IDLE_TIMEOUT = "FATAL 25P03 terminating connection due to idle-in-transaction timeout"
STATEMENT_TIMEOUT = "ERROR 57014 canceling statement due to statement timeout"


def test_an_idle_failed_block_ends_too() -> None:
    async def story() -> None:
        async with running() as stack:
            client = await Client.connect(stack)
            await client.ask("set idle_in_transaction_session_timeout = '30ms'")
            await client.ask("begin", ready=0)
            await client.ask("select 1/0", ready=0)
            answers = await client.hear(ready=ENDS)
            assert answers[-1] == IDLE_TIMEOUT

    run(story())


def test_a_transaction_ends_while_it_is_idle() -> None:
    async def story() -> None:
        async with running() as stack:
            client = await Client.connect(stack)
            await client.ask("set transaction_timeout = '30ms'")
            await client.ask("begin", ready=0)
            answers = await client.hear(ready=ENDS)
            assert answers[-1] == TRANSACTION_TIMEOUT
            while stack.driver.core.open_transactions:  # noqa: ASYNC110 - another task ends them
                await asyncio.sleep(0)

    run(story())


@pytest.mark.parametrize("begin", ["begin", "select 1"])
def test_a_transaction_ends_while_it_runs(begin: str) -> None:
    async def story() -> None:
        engine = StuckEngine()
        async with running(engine=engine) as stack:
            client = await Client.connect(stack)
            await client.ask("create table t (a int4)")
            await client.ask("set transaction_timeout = '50ms'")
            await client.ask(begin, ready=0)
            await client.ask("select a from t", ready=0)
            answers = await client.hear(ready=ENDS)
            assert answers[-1] == TRANSACTION_TIMEOUT

    run(story())


def test_a_limit_that_is_set_inside_counts_at_once() -> None:
    async def story() -> None:
        async with running() as stack:
            client = await Client.connect(stack)
            await client.ask("begin")
            await client.ask("set transaction_timeout = '30ms'", ready=0)
            answers = await client.hear(ready=ENDS)
            assert answers[-1] == TRANSACTION_TIMEOUT

    run(story())


def test_a_statement_timeout_leaves_the_savepoint() -> None:
    async def story() -> None:
        engine = StuckEngine()
        async with running(engine=engine) as stack:
            client = await Client.connect(stack)
            await client.ask("create table t (a int4)")
            await client.ask("begin")
            await client.ask("insert into t values (1)")
            await client.ask("savepoint s")
            await client.ask("set local statement_timeout = '20ms'")
            answers = await client.ask("select a from t")
            assert answers[-2:] == [STATEMENT_TIMEOUT, "ReadyForQuery E"]
            await client.ask("rollback to s")
            # The limit went with the savepoint that it was set behind.
            assert "DataRow 0" in await client.ask("show statement_timeout")
            assert (await client.ask("commit"))[0] == "CommandComplete COMMIT"

    run(story())


def test_waiting_for_a_lease_is_bounded_by_lock_timeout() -> None:
    async def story() -> None:
        async with running() as stack:
            client = await Client.connect(stack)
            await client.ask("create table t (a int4)")
            table = stack.driver.core.catalog.tables["public", "t"]
            coordination = stack.services.coordination
            holder = coordination.begin(ConnectionId(901))
            await coordination.lease(holder, (table,))
            variables = Variables(user="meridian", defaults={"lock_timeout": "10ms"})
            waiting = SessionTransaction(coordination, SystemClock(), ConnectionId(902), variables)
            with pytest.raises(SqlError, match="lock timeout") as caught:
                await waiting.lease((table,))
            assert caught.value.sqlstate == "55P03"
            waiting.rollback()
            coordination.abort(holder)
            # Nobody waits any more: the lease is free for the next one.
            await waiting.lease((table,))
            waiting.rollback()

    run(story())
