"""aiopg."""

import asyncio

import aiopg
import psycopg2
from cases import Cases, address, fails, same

cases = Cases("aiopg", aiopg.__version__)
AT = address()
DSN = f"dbname={AT['database']} user={AT['user']} host={AT['host']} port={AT['port']}"


@cases.case
async def a_connection() -> None:
    async with aiopg.connect(DSN) as connection, connection.cursor() as cursor:
        await cursor.execute("select %s, %s", (1, "x"))
        same(await cursor.fetchone(), (1, "x"))


@cases.case
async def a_pool() -> None:
    async with aiopg.create_pool(DSN, minsize=1, maxsize=3) as pool:

        async def work(number: int) -> int:
            async with pool.acquire() as connection, connection.cursor() as cursor:
                await cursor.execute("select %s::int", (number,))
                return int((await cursor.fetchone())[0])

        same(await asyncio.gather(*map(work, range(6))), list(range(6)))


@cases.case
async def transactions_nest() -> None:
    async with aiopg.connect(DSN) as connection, connection.cursor() as cursor:
        await cursor.execute("drop table if exists ai_tx")
        await cursor.execute("create table ai_tx (id int primary key)")
        async with cursor.begin():
            await cursor.execute("insert into ai_tx values (1)")
            with fails("23505", psycopg2.Error):
                async with cursor.begin_nested():
                    await cursor.execute("insert into ai_tx values (1)")
        await cursor.execute("select * from ai_tx")
        same(await cursor.fetchall(), [(1,)])


@cases.case
async def rows_are_iterated() -> None:
    async with aiopg.connect(DSN) as connection, connection.cursor() as cursor:
        await cursor.execute("select generate_series(1, 5)")
        same([row[0] async for row in cursor], [1, 2, 3, 4, 5])
        same(cursor.rowcount, 5)


@cases.case
async def notifications() -> None:
    async with aiopg.connect(DSN) as one, aiopg.connect(DSN) as other:
        async with one.cursor() as listening, other.cursor() as telling:
            await listening.execute("listen ai_channel")
            await telling.execute("notify ai_channel, 'hello'")
            message = await asyncio.wait_for(one.notifies.get(), 10)
            same(message.payload, "hello")


@cases.case
async def time_outs_and_errors() -> None:
    async with aiopg.connect(DSN) as connection, connection.cursor(timeout=0.3) as cursor:
        try:
            await cursor.execute("select pg_sleep(5)")
            raise AssertionError("it ended")
        except TimeoutError:
            pass
    async with aiopg.connect(DSN) as connection, connection.cursor() as cursor:
        with fails("42P01", psycopg2.Error):
            await cursor.execute("select * from ai_not_there")


@cases.case
async def json_and_arrays() -> None:
    async with aiopg.connect(DSN, enable_json=True) as connection, connection.cursor() as cursor:
        await cursor.execute("select '{\"a\": [1]}'::jsonb, %s", ([1, 2],))
        same(await cursor.fetchone(), ({"a": [1]}, [1, 2]))


if __name__ == "__main__":
    cases.run()
