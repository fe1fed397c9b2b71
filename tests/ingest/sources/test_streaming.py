"""From PostgreSQL into our tables: a snapshot, then what is committed there.

Upstream waits for us in its COMMIT (`synchronous_standby_names`): what has returned there is seen
by the next strict read here (F3). So nothing has to be waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.ingest.sources.asking import refusal, rows
from tests.ingest.upstream_database import UpstreamDatabase

BIG = "upper(repeat(md5(i::text), 400))"
"""So long that it is kept aside, and not sent if it stays."""


@contextmanager
def synchronous(database: UpstreamDatabase, name: str = "feed") -> Iterator[None]:
    """Upstream's commits wait for the source."""
    database.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    database.execute("SELECT pg_reload_conf()", "SELECT pg_sleep(0.1)")
    try:
        yield
    finally:
        database.execute("SET synchronous_commit = local")
        database.execute("ALTER SYSTEM RESET synchronous_standby_names")
        database.execute("SELECT pg_reload_conf()", "RESET synchronous_commit")


@pytest.fixture
def shop(connected: psycopg.Connection, database: UpstreamDatabase) -> psycopg.Connection:
    """A source `feed` of the publication `p`, whose tables have some rows."""
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, what text, big text)",
        "ALTER TABLE orders ALTER COLUMN big SET STORAGE EXTERNAL",
        f"INSERT INTO orders SELECT i, 'w' || i, {BIG} FROM generate_series(1, 5) i",
        "CREATE TABLE log (at int, what text)",
        "ALTER TABLE log REPLICA IDENTITY FULL",
        "INSERT INTO log VALUES (1, 'a'), (1, 'a'), (2, NULL)",
        "CREATE TABLE empty (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE orders, log, empty",
    )
    connected.execute("create source feed from postgres connection c (publication 'p')")
    connected.execute("create tables from source feed in schema here")
    return connected


TABLES = ("orders", "log", "empty")


def is_same(client: psycopg.Connection, database: UpstreamDatabase) -> None:
    """All tables here are what they are there."""
    for name in TABLES:
        query = f"SELECT * FROM {name}"
        assert sorted(map(repr, rows(client, query))) == sorted(map(repr, database.rows(query)))


def test_what_was_there_before_comes_with_the_first_read(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    assert rows(shop, "select count(*) from orders") == [(5,)]
    is_same(shop, database)


def test_a_commit_that_has_returned_is_seen(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    is_same(shop, database)
    with synchronous(database):
        for n in range(10, 15):
            database.execute(f"INSERT INTO orders VALUES ({n}, 'new', 'b')")
            assert rows(shop, f"select what from orders where id = {n}") == [("new",)]


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE orders SET what = 'x' WHERE id < 4"],
        ["DELETE FROM orders WHERE id = 2"],
        ["UPDATE orders SET id = id + 10 WHERE id > 3"],
        ["UPDATE orders SET id = 100 WHERE id = 1", "UPDATE orders SET what = 'y' WHERE id = 100"],
        ["UPDATE orders SET big = 'small' WHERE id = 1", "UPDATE orders SET what = 'z'"],
        ["DELETE FROM orders WHERE id = 1", "INSERT INTO orders VALUES (1, 'again', 'b')"],
        ["TRUNCATE orders"],
        ["TRUNCATE orders, log", "INSERT INTO log VALUES (7, 'after')"],
        ["DELETE FROM log WHERE ctid = (SELECT min(ctid) FROM log)"],
        ["UPDATE log SET what = 'b' WHERE at = 1", "UPDATE log SET at = 9 WHERE what IS NULL"],
        ["INSERT INTO empty VALUES (1)", "DELETE FROM empty"],
    ],
    ids=[
        "update", "delete", "key change", "key change and update", "toast", "delete and insert",
        "truncate", "truncate of several", "one of two equal rows", "without a key", "come and go",
    ],
)  # fmt: skip
def test_changes(
    shop: psycopg.Connection, database: UpstreamDatabase, statements: list[str]
) -> None:
    is_same(shop, database)
    with synchronous(database):
        with database.connection.transaction():
            database.execute(*statements)
        is_same(shop, database)
        # Each of them alone, too: nothing is left of the ones before.
        for statement in ("INSERT INTO orders VALUES (50, 'p', 'q')", *statements):
            database.execute(statement)
        is_same(shop, database)


def test_a_table_is_not_shown_empty_before_it_is_loaded(
    connected: psycopg.Connection, database: UpstreamDatabase
) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
        "CREATE PUBLICATION p FOR TABLE orders",
    )
    with psycopg.connect(database.dsn) as other:
        # Upstream makes no slot as long as somebody writes there.
        other.execute("INSERT INTO orders VALUES (2)")
        connected.execute("create source feed from postgres connection c (publication 'p')")
        connected.execute("create tables from source feed in schema here")
        connected.execute("begin")
        assert refusal(connected, "select * from orders") == (
            "55000",
            'table "orders" is not loaded yet',
        )
        connected.execute("rollback")
        connected.execute("set statement_timeout = '100ms'")
        assert refusal(connected, "select * from orders")[0] == "57014"
        connected.execute("reset statement_timeout")
        before = rows(connected, "select meridian_now()")[0][0]
        other.commit()
    assert rows(connected, "select count(*) from orders") == [(2,)]
    assert refusal(connected, f"select * from orders as of {before}")[0] == "55000"


def test_nothing_of_ours_stays_after_drop_source(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    is_same(shop, database)
    assert len(database.slots()) == 1
    shop.execute("drop source feed cascade")
    shop.execute("create source feed from postgres connection c (publication 'p')")
    shop.execute("create tables from source feed in schema here")
    is_same(shop, database)
