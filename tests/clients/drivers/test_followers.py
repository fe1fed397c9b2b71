"""Drivers that follow a table: psql, psycopg, asyncpg, node-postgres, pgjdbc."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from tests.clients.drivers.jdbc import fetch_driver as fetch_jdbc
from tests.clients.drivers.jdbc import java_sql
from tests.clients.drivers.node import fetch_driver as fetch_node
from tests.clients.drivers.node import run_program
from tests.support.servers import postgres_program

FOLLOWS = """
const { Client } = require('pg')
async function main(connectionString) {
  const client = new Client({ connectionString })
  const writer = new Client({ connectionString })
  await client.connect()
  await writer.connect()
  const told = []
  await client.query('BEGIN')
  await client.query('DECLARE c CURSOR FOR SUBSCRIBE followed')
  const take = async (fetch) => {
    for (const row of (await client.query(fetch)).rows) told.push([row.meridian_diff, row.a])
  }
  await take('FETCH ALL c')
  await writer.query('INSERT INTO followed VALUES (3)')
  await take('FETCH 100 c')
  await writer.query('DELETE FROM followed WHERE a = 1')
  await take("FETCH ALL c WITH (timeout = '0 s')")
  await take("FETCH ALL c WITH (timeout = '10 ms')")
  await client.query('COMMIT')
  await client.end()
  await writer.end()
  console.log(JSON.stringify(told))
}
main(process.argv[1])
"""


@pytest.fixture
def table(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists followed")
        connection.execute("create table followed (a int)")
        connection.execute("insert into followed values (1), (2)")
        yield connection


def _now(connection: psycopg.Connection) -> int:
    found = connection.execute("select meridian_now()").fetchone()
    assert found is not None
    return int(found[0])


def test_psql_copies(dsn: str, table: psycopg.Connection) -> None:
    begin = _now(table)
    table.execute("insert into followed values (3)")
    end = _now(table)
    copy = f"\\copy (SUBSCRIBE followed AS OF {begin} UP TO {end + 1}) TO STDOUT"
    command = [postgres_program("psql"), "-XqAt", dsn, "-c", copy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [f"{begin}\t1\t1", f"{begin}\t1\t2", f"{end}\t1\t3"]


def test_psql_fetches(dsn: str, table: psycopg.Connection) -> None:
    script = (
        "begin; declare c cursor for subscribe followed; fetch all c;"
        "fetch all c with (timeout = '1 ms'); commit;"
    )
    command = [postgres_program("psql"), "-XAt", dsn, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    shown = [line.partition("|")[2] or line for line in done.stdout.splitlines()]
    assert shown == ["BEGIN", "DECLARE CURSOR", "1|1", "1|2", "COMMIT"]


def test_psycopg_streams_and_has_cursors(dsn: str, table: psycopg.Connection) -> None:
    with psycopg.connect(dsn) as connection:
        stream = connection.cursor().stream("SUBSCRIBE followed")
        assert [next(stream)[1:], next(stream)[1:]] == [(1, 1), (1, 2)]
        table.execute("insert into followed values (3)")
        assert next(stream)[1:] == (1, 3)
        table.execute("select pg_cancel_backend(pid) from meridian.subscriptions")
        with pytest.raises(psycopg.errors.QueryCanceled):
            next(stream)
    with psycopg.connect(dsn) as connection, connection.cursor("c") as cursor:
        cursor.execute("SUBSCRIBE followed WITH (PROGRESS)")
        told = [row[1:] for row in cursor.fetchmany(4)]
        assert told[:3] == [(False, 1, 1), (False, 1, 2), (False, 1, 3)]
        assert told[3] == (True, None, None)
        table.execute("delete from followed where a = 3")
        while (row := cursor.fetchone()) is not None and row[1]:
            pass  # time has come further
        assert row is not None
        assert row[1:] == (False, -1, 3)


def test_asyncpg_has_a_cursor(dsn: str, table: psycopg.Connection) -> None:
    async def story() -> None:
        connection = await asyncpg.connect(dsn)
        async with connection.transaction():
            cursor = await connection.cursor("SUBSCRIBE followed")
            assert [row["a"] for row in await cursor.fetch(2)] == [1, 2]
            table.execute("update followed set a = 4 where a = 1")
            changed = [(row["meridian_diff"], row["a"]) for row in await cursor.fetch(2)]
            assert changed == [(-1, 1), (1, 4)]
        async with connection.transaction():
            await connection.execute("DECLARE c CURSOR FOR SUBSCRIBE followed")
            rows = await connection.fetch("FETCH ALL c WITH (timeout = '1 ms')")
            assert sorted(row["a"] for row in rows) == [2, 4]
        await connection.close()

    asyncio.run(story())


def test_node_postgres_fetches(dsn: str, table: psycopg.Connection) -> None:
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js")
    folder = fetch_node()
    if folder is None:
        pytest.fail("node-postgres is not cached and cannot be fetched")
    told = json.loads(run_program(folder, FOLLOWS, dsn))
    assert sorted(told[:2]) == [["1", 1], ["1", 2]]
    assert told[2:] == [["1", 3], ["-1", 1]]


@pytest.mark.spark
def test_pgjdbc_has_a_fetch_size(dsn: str, table: psycopg.Connection) -> None:
    jar = fetch_jdbc()
    if jar is None:
        pytest.fail("the pgjdbc JAR is not cached and cannot be fetched")
    address = urlsplit(dsn)
    url = f"jdbc:postgresql://{address.hostname}:{address.port}/meridian"
    with java_sql(jar) as jvm:
        connection = jvm.java.sql.DriverManager.getConnection(
            f"{url}?user=meridian&sslmode=disable"
        )
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        statement.setFetchSize(1)
        result = statement.executeQuery("SUBSCRIBE followed")
        told = []
        for written in ("select 1", "insert into followed values (3)", "delete from followed"):
            table.execute(written.encode())
            assert result.next()
            told.append((result.getInt(2), result.getInt(3)))
        assert told == [(1, 1), (1, 2), (1, 3)]
        connection.close()
