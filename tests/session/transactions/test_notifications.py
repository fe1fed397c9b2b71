"""Notifications where PostgreSQL is no measure: bounds, restarts, timelines, refusals."""

import asyncio
import threading
from collections.abc import Sequence

import psycopg
import pytest

from coordinator.core.notifications.changes import Notification
from coordinator.core.settings import CoreSettings
from coordinator.pgwire.messages import CommandComplete, NotificationResponse, Query, RowDescription
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running, serving
from tests.support.wire import WireClient

ROUNDS = 40


def hear(connection: Connection) -> list[str]:
    """A list that gets the payloads as the session hears them."""
    heard: list[str] = []
    connection.add_notify_handler(lambda notification: heard.append(notification.payload))
    return heard


@on_a_loop
async def test_the_queue_is_bounded() -> None:
    """A session in a block holds what it has not heard; who is refused has done nothing."""
    settings = CoreSettings(notification_bytes_max=3 * Notification("c", "1").nbytes)
    async with running(core=settings) as stack, connected(stack, 2) as (teller, ear):
        await teller.execute("create table t (a int)")
        heard = hear(ear)
        await ear.execute("listen c")
        await ear.execute("begin")
        for payload in "123":
            await teller.execute(f"notify c, '{payload}'")
        assert await all_rows(teller, "select pg_notification_queue_usage()") == [(1.0,)]
        with pytest.raises(psycopg.errors.ProgramLimitExceeded) as refused:
            await teller.execute("notify c, '4'")
        assert refused.value.diag.message_primary == "too many notifications in the NOTIFY queue"
        await teller.execute("begin; insert into t values (1); notify c, '5'")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            await teller.execute("commit")
        assert await all_rows(teller, "select * from t") == []
        # A transaction cannot say more than the queue could ever hold.
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            await teller.execute("select pg_notify('nobody', g::text) from generate_series(1, 4) g")
        await ear.execute("commit")
        assert heard == ["1", "2", "3"]
        assert await all_rows(teller, "select pg_notification_queue_usage()") == [(0.0,)]
        await teller.execute("notify c, '6'")
        # A session that ends holds nothing any more.
        await ear.execute("begin")
        for payload in "78":
            await teller.execute(f"notify c, '{payload}'")
        await ear.close()
        while await all_rows(teller, "select pg_notification_queue_usage()") != [(0.0,)]:
            pass


async def _wait(onlooker: Connection) -> None:
    """Until somebody waits for a lock."""
    while not await all_rows(onlooker, "select 1 from pg_locks where not granted"):
        pass


@pytest.mark.parametrize("level", ["read committed", "serializable"])
@on_a_loop
async def test_a_statement_that_begins_again_says_only_what_it_says_last(level: str) -> None:
    async with running() as stack, connected(stack, 3) as (one, two, ear):
        await one.execute("create table t (a int primary key, b text)")
        await one.execute("insert into t values (1, 'old')")
        heard = hear(ear)
        await ear.execute("listen c")
        await one.execute(f"begin isolation level {level}")
        await one.execute("update t set b = 'new'")
        await two.execute(f"begin isolation level {level}")
        await two.execute("notify c, 'before'")
        says = "update t set b = b || (pg_notify('c', b) is null) where a = 1"
        async with asyncio.TaskGroup() as group:
            group.create_task(two.execute(says.encode()))
            await _wait(ear)
            await one.execute("commit")
        await two.execute("commit")
        await ear.execute("select 1")
        assert heard == ["before", "new"]


@on_a_loop
async def test_a_statement_alone_that_waited_says_only_what_it_says_last() -> None:
    async with running() as stack, connected(stack, 3) as (one, two, ear):
        await one.execute("create table t (a int primary key, b text)")
        await one.execute("insert into t values (1, 'old')")
        heard = hear(ear)
        await ear.execute("listen c")
        await one.execute("begin")
        await one.execute("update t set b = 'new'")
        says = "with x as (update t set b = b || '!' returning b) select pg_notify('c', b) from x"
        async with asyncio.TaskGroup() as group:
            group.create_task(two.execute(says.encode()))
            await _wait(ear)
            await one.execute("commit")
        await ear.execute("select 1")
        assert heard == ["new!"]
        # No room is reserved for what was not said.
        queue = stack.driver.core.notifications
        assert queue.reserve(queue.bytes_max)


@on_a_loop
async def test_a_statement_alone_that_conflicts_says_only_what_it_says_last() -> None:
    async with running() as stack, connected(stack, 3) as (one, two, ear):
        await one.execute("create table t (a int primary key, b int)")
        await one.execute("insert into t values (1, 0)")
        heard = hear(ear)
        await ear.execute("listen c")
        counts = (
            "with x as (update t set b = b + 1 returning b) select pg_notify('c', b::text) from x"
        )

        async def count(connection: Connection) -> None:
            for _ in range(ROUNDS // 4):
                await connection.execute(counts.encode())

        await asyncio.gather(count(one), count(two))
        await ear.execute("select 1")
        assert heard == [str(number) for number in range(1, ROUNDS // 2 + 1)]


@on_a_loop
async def test_rows_of_another_timeline_are_there_when_they_are_heard_of() -> None:
    async with running() as stack, connected(stack, 2) as (teller, ear):
        await teller.execute("create timeline counted manual")
        await teller.execute("create table t (a int) in timeline counted")
        heard = hear(ear)
        await ear.execute("listen c")
        await teller.execute("begin; insert into t values (1); notify c, 'one'; commit")
        await teller.execute("begin; insert into t values (2); notify c, 'two'; rollback")
        await teller.execute("begin; select * from t; notify c, 'looked'; commit")
        await teller.execute("notify c, 'of system'")
        assert await all_rows(ear, "select * from t") == [(1,)]
        assert heard == ["one", "looked", "of system"]


@on_a_loop
async def test_what_a_transaction_in_the_past_says_is_of_the_present() -> None:
    """BEGIN .. AS OF reads the past, and what it says is of the present."""
    async with running() as stack, connected(stack, 2) as (teller, ear):
        heard = hear(ear)
        await ear.execute("listen c")
        await teller.execute("begin as of now()")
        await teller.execute("notify c, 'from the past'")
        await teller.execute("commit")
        await teller.execute("explain select pg_notify('c', 'explained')")
        await teller.execute("explain analyze select pg_notify('c', 'analyzed')")
        await ear.execute("select 1")
        assert heard == ["from the past", "analyzed"]


REFUSED = (
    "select a from t where pg_notify('c', 'x') is null",
    "insert into t values (9) returning pg_notify('c', 'x')",
    "select count(*) from (select pg_notify('c', a::text) from t) s",
    "select distinct pg_notify('c', a::text) from t",
    "select pg_notify('c', a::text) from t offset 1",
    "select max(a) over (order by pg_notify('c', a::text) is null) from t",
    "create table u (a int check (pg_notify('c', 'x') is null))",
    "select pg_notify('c', a::text) from t union all select pg_notify('c', 'x')",
)


@on_a_loop
async def test_what_may_be_skipped_or_repeated_is_refused() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        heard = hear(connection)
        await connection.execute("listen c")
        await connection.execute("create table t (a int)")
        for text in REFUSED:
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                await connection.execute(text.encode())
        assert heard == []
        assert await all_rows(connection, "select * from t") == []


def test_nothing_is_heard_within_an_answer() -> None:
    """Somebody tells without end, while the session has answers of all sizes."""
    with serving() as dsn, WireClient(dsn) as ear:
        ear.send(Query("listen c"))
        ear.answers(1)
        told: list[int] = []

        def tell() -> None:
            with psycopg.connect(dsn, autocommit=True) as teller:
                for number in range(5 * ROUNDS):
                    teller.execute(f"notify c, '{number}'")
                    told.append(number)

        telling = threading.Thread(target=tell)
        telling.start()
        heard: list[int] = []
        sizes = 0
        while telling.is_alive() or len(heard) < len(told):
            sizes = sizes % 5_000 + 500
            ear.send(Query(f"select g, repeat('x', 50) from generate_series(1, {sizes}) g"))
            answers = ear.answers(1)
            kinds = [type(answer) for answer in answers]
            within = kinds[kinds.index(RowDescription) : kinds.index(CommandComplete)]
            assert NotificationResponse not in within
            heard += payloads(answers)
        telling.join()
        assert heard == told == [*range(5 * ROUNDS)]


def payloads(answers: Sequence[object]) -> list[int]:
    return [int(each.payload) for each in answers if isinstance(each, NotificationResponse)]
