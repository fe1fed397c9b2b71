"""psycopg 3: asynchronous connections, pools, pipelines, notifications, cancelling."""

import asyncio
import threading
from typing import Any

import psycopg
from cases import Cases, fails, same, url

cases = Cases("psycopg", psycopg.__version__)


def _connect(**options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(url(), **options)


def _table(name: str, columns: str) -> None:
    with _connect(autocommit=True) as connection:
        connection.execute(f"drop table if exists {name} cascade")
        connection.execute(f"create table {name} ({columns})")


@cases.case
def notifications() -> None:
    with _connect(autocommit=True) as one, _connect(autocommit=True) as other:
        one.execute("listen psy_channel")
        other.execute("notify psy_channel, 'hello'")
        other.execute("select pg_notify('psy_channel', 'again')")
        found = [n.payload for n in one.notifies(timeout=10, stop_after=2)]
        same(found, ["hello", "again"])


@cases.case
def a_query_is_cancelled() -> None:
    with _connect() as connection:
        timer = threading.Timer(0.3, connection.cancel_safe)
        timer.start()
        with fails("57014", psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(20)")
        timer.join()
        connection.rollback()
        same(connection.execute("select 1").fetchone(), (1,))


@cases.case
def a_statement_runs_out_of_time() -> None:
    with _connect(options="-c statement_timeout=200") as connection:
        with fails("57014", psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(20)")


@cases.case
def a_pipeline_answers_in_order() -> None:
    _table("psy_pipe", "id int primary key")
    with _connect(autocommit=True) as connection:
        with connection.pipeline() as pipeline:
            one = connection.execute("select 1")
            connection.execute("insert into psy_pipe values (1)")
            other = connection.execute("select count(*) from psy_pipe")
            pipeline.sync()
            same((one.fetchone(), other.fetchone()), ((1,), (1,)))
        try:
            with connection.pipeline():
                connection.execute("insert into psy_pipe values (2)")
                connection.execute("insert into psy_pipe values (1)")
        except psycopg.errors.UniqueViolation:
            pass
        same(connection.execute("select count(*) from psy_pipe").fetchone(), (1,))


@cases.case
async def asynchronous_connections() -> None:
    async with await psycopg.AsyncConnection.connect(url()) as connection:
        async with connection.cursor() as cursor:
            await cursor.execute("select generate_series(1, 3)")
            same([row async for row in cursor], [(1,), (2,), (3,)])
        async with connection.transaction(), connection.cursor() as cursor:
            await connection.execute("create temp table psy_tmp (id int) on commit drop")
            async with cursor.copy("copy psy_tmp from stdin") as copy:
                await copy.write_row((5,))
            same(await (await connection.execute("select * from psy_tmp")).fetchall(), [(5,)])


@cases.case
async def an_asynchronous_task_is_cancelled() -> None:
    async with await psycopg.AsyncConnection.connect(url()) as connection:
        task = asyncio.ensure_future(connection.execute("select pg_sleep(20)"))
        await asyncio.sleep(0.3)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        await connection.rollback()
        same(await (await connection.execute("select 1")).fetchone(), (1,))


@cases.case
def a_pool_lends_and_resets() -> None:
    from psycopg_pool import ConnectionPool

    with ConnectionPool(url(), min_size=1, max_size=2, check=ConnectionPool.check_connection) as p:
        with p.connection() as connection:
            connection.execute("set application_name to 'changed'")
        threads_done: list[int] = []

        def work(number: int) -> None:
            with p.connection() as connection:
                row = connection.execute("select %s::int", (number,)).fetchone()
                threads_done.append(row[0] if row else -1)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        same(sorted(threads_done), list(range(8)))


@cases.case
async def an_asynchronous_pool() -> None:
    from psycopg_pool import AsyncConnectionPool

    async with AsyncConnectionPool(url(), min_size=1, max_size=3, open=False) as pool:

        async def work(number: int) -> int:
            async with pool.connection() as connection:
                row = await (await connection.execute("select %s::int", (number,))).fetchone()
                return row[0] if row else -1

        same(await asyncio.gather(*map(work, range(9))), list(range(9)))


@cases.case
def a_broken_pool_connection_is_replaced() -> None:
    from psycopg_pool import ConnectionPool

    check = ConnectionPool.check_connection
    with ConnectionPool(url(), min_size=1, max_size=1, check=check) as pool, _connect() as other:
        with pool.connection() as connection:
            pid = connection.info.backend_pid
        other.execute("select pg_terminate_backend(%s)", (pid,))
        with pool.connection() as connection:
            assert connection.info.backend_pid != pid
            same(connection.execute("select 1").fetchone(), (1,))


if __name__ == "__main__":
    cases.run()
