"""From PostgreSQL into our tables: a snapshot, then what is committed there.

Upstream waits for us in its COMMIT (`synchronous_standby_names`): what has returned there is seen
by the next strict read here (F3). So nothing has to be waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from threading import Event

import psycopg
import pytest

from tests.ingest.sources.asking import refusal, rows
from tests.ingest.upstream_database import UpstreamDatabase
from tests.session.change_streams.followers import until
from tests.support.synchronous import commits_wait_for

BIG = "upper(repeat(md5(i::text), 400))"
"""So long that it is kept aside, and not sent if it stays."""


@contextmanager
def synchronous(database: UpstreamDatabase, name: str = "feed") -> Iterator[None]:
    """Upstream's commits wait for the source."""
    commits_wait_for(database.dsn, name)
    try:
        yield
    finally:
        commits_wait_for(database.dsn, "")


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


def test_who_makes_a_source_does_not_see_its_tables_empty(
    connected: psycopg.Connection, database: UpstreamDatabase
) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
        "CREATE PUBLICATION p FOR TABLE orders",
    )
    for reading in (
        "select * from orders",
        "create table copied as select * from orders",
        "create materialized view copied as select count(*) from orders",
    ):
        connected.execute("begin")
        connected.execute("create source feed from postgres connection c (publication 'p')")
        connected.execute("create tables from source feed in schema here")
        assert refusal(connected, reading) == ("55000", 'table "orders" is not loaded yet')
        connected.execute("rollback")
    connected.execute("begin")
    connected.execute("create source g from generator counter")
    connected.execute("create tables from source g in schema here")
    assert rows(connected, "select count(*) from counter") == [(0,)]
    connected.execute("rollback")


def test_nothing_of_ours_stays_after_drop_source(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    is_same(shop, database)
    assert len(database.slots()) == 1
    shop.execute("drop source feed cascade")
    until(lambda: not database.slots())


def test_a_table_that_joins_later_has_its_rows_and_what_follows(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    is_same(shop, database)
    database.execute(
        "CREATE TABLE later (id int PRIMARY KEY)",
        "INSERT INTO later VALUES (1), (2)",
        "ALTER PUBLICATION p ADD TABLE later",
    )
    with synchronous(database):
        # Upstream's commits wait for the source while it makes another slot (S1).
        shop.execute("create table later from source feed (reference 'public.later')")
        database.execute("INSERT INTO later VALUES (3)", "DELETE FROM later WHERE id = 1")
        database.execute("INSERT INTO orders VALUES (70, 'n', 'b')")
        assert rows(shop, "select id from later order by 1") == [(2,), (3,)]
        database.execute("UPDATE later SET id = 9 WHERE id = 2")
        assert rows(shop, "select id from later order by 1") == [(3,), (9,)]
        is_same(shop, database)
    assert len(database.slots()) == 1
    # Another table of this name: what was known of the old one is forgotten.
    shop.execute("drop table later")
    database.execute(
        "DROP TABLE later",
        "CREATE TABLE later (id int PRIMARY KEY)",
        "INSERT INTO later VALUES (5)",
        "ALTER PUBLICATION p ADD TABLE later",
    )
    shop.execute("create table later from source feed (reference 'public.later')")
    assert rows(shop, "select id from later") == [(5,)]
    is_same(shop, database)


@pytest.mark.parametrize("is_synchronous", [False, True])
def test_what_is_written_while_a_table_joins_is_not_lost(
    shop: psycopg.Connection, database: UpstreamDatabase, is_synchronous: bool
) -> None:
    """J4: the stream goes on while the copy is made, and may pass it."""
    is_same(shop, database)
    database.execute(
        "CREATE TABLE later (id int PRIMARY KEY, filler text)",
        "INSERT INTO later SELECT i, repeat('x', 50) FROM generate_series(1, 30000) i",
        "ALTER PUBLICATION p ADD TABLE later",
    )
    ended = Event()

    def write() -> None:
        with psycopg.connect(database.dsn, autocommit=True) as writer:
            for i in range(1, 20_000):
                if ended.is_set():
                    return
                writer.execute("INSERT INTO later VALUES (%s)", [100_000 + i])
                writer.execute("DELETE FROM later WHERE id = %s", [i])
                writer.execute("INSERT INTO log VALUES (%s)", [i])

    waiting = synchronous(database) if is_synchronous else nullcontext()
    with waiting, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            shop.execute("create table later from source feed (reference 'public.later')")
            if not is_synchronous:
                # As many came as went, at every moment.
                assert rows(shop, "select count(*) from later")[0][0] in (30_000, 30_001)
        finally:
            ended.set()
        writing.result()
    shop.execute("set real_time_recency = on")
    query = "SELECT id FROM later ORDER BY id"
    assert rows(shop, query) == database.rows(query)
    shop.execute("reset real_time_recency")


def test_resnapshot_brings_what_upstream_has(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    is_same(shop, database)
    (before,) = [name for name, _ in database.slots()]
    # The table leaves the publication for a while, so that changes are missing.
    database.execute(
        "ALTER PUBLICATION p DROP TABLE orders",
        "DELETE FROM orders WHERE id < 3",
        "ALTER PUBLICATION p ADD TABLE orders",
        "INSERT INTO orders VALUES (80, 'n', 'b')",
    )
    shop.execute("set real_time_recency = on")
    assert refusal(shop, "select * from orders")[0] == "57014"
    shop.execute("reset real_time_recency")
    # What is here stays readable, until it is replaced in one commit.
    assert rows(shop, "select count(*) from orders") == [(5,)]
    state = "select state, code from meridian.sources"
    assert rows(shop, state) == [("broken", "55000")]
    shop.execute("alter source feed resnapshot")
    until(lambda: rows(shop, state) == [("running", None)])
    is_same(shop, database)
    with synchronous(database):
        database.execute("UPDATE orders SET what = 'after' WHERE id > 3")
        is_same(shop, database)
    until(lambda: before not in dict(database.slots()))
    assert len(database.slots()) == 1


def test_a_record_whose_key_cannot_be_read_is_skipped_by_a_person(
    connected: psycopg.Connection, database: UpstreamDatabase
) -> None:
    database.execute(
        "CREATE TABLE orders (at timestamptz PRIMARY KEY, what text)",
        "INSERT INTO orders VALUES ('2020-01-01', 'a')",
        "CREATE PUBLICATION p FOR TABLE orders",
    )
    connected.execute("create source feed from postgres connection c (publication 'p')")
    connected.execute("create table orders from source feed (reference 'public.orders')")
    assert rows(connected, "select what from orders") == [("a",)]
    assert refusal(connected, "alter source feed skip record")[0] == "55000"
    database.execute("INSERT INTO orders VALUES ('infinity', 'b'), ('2021-01-01', 'c')")
    until(lambda: rows(connected, "select state from meridian.sources") == [("broken",)])
    assert rows(connected, "select what from orders") == [("a",)]
    connected.execute("alter source feed skip record")
    with synchronous(database):
        database.execute("INSERT INTO orders VALUES ('2022-01-01', 'd')")
        assert rows(connected, "select what from orders order by 1") == [("a",), ("c",), ("d",)]
    told = "select table_name, key, code, value from feed_errors"
    ((name, key, code, value),) = rows(connected, told)
    assert (name, key, code) == ("orders", None, "22008")
    assert b"infinity" in value


def test_values_that_do_not_fit_are_told_with_their_keys(
    connected: psycopg.Connection, database: UpstreamDatabase
) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, n numeric, at timestamptz)",
        "INSERT INTO orders VALUES (1, 1, now()), (2, 'NaN', now())",
        "CREATE PUBLICATION p FOR TABLE orders",
    )
    connected.execute("create source feed from postgres connection c (publication 'p')")
    connected.execute("create table orders from source feed (reference 'public.orders')")
    assert rows(connected, "select id from orders") == [(1,)]
    with synchronous(database):
        # What it supersedes goes, too.
        database.execute("UPDATE orders SET at = 'infinity' WHERE id = 1")
        assert rows(connected, "select id from orders") == []
        database.execute("UPDATE orders SET at = '2020-01-01' WHERE id = 1")
        assert rows(connected, "select id from orders") == [(1,)]
    told = rows(connected, "select key, code from feed_errors")
    assert told == [(b'{"id": "2"}', "22003"), (b'{"id": "1"}', "22008")]
    assert rows(connected, "select errors from meridian.sources") == [(2,)]


def test_views_and_subscribers_follow_what_changes_upstream(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    is_same(shop, database)
    counted = "select what, count(*) as n from orders group by what"
    shop.execute(f"create materialized view m with (refresh = 'on commit') as {counted}".encode())
    since = rows(shop, "select meridian_now()")[0][0]
    with synchronous(database):
        database.execute(
            "UPDATE orders SET what = 'x' WHERE id < 3",
            "DELETE FROM orders WHERE id = 3",
            "UPDATE orders SET id = 44 WHERE id = 4",
        )
        assert sorted(rows(shop, "select * from m")) == [("w4", 1), ("w5", 1), ("x", 2)]
        upto = rows(shop, "select meridian_now()")[0][0]
    told = rows(
        shop,
        f"subscribe (select id from orders) with (snapshot = false) as of {since} up to {upto + 1}",
    )
    kept = sorted((diff, id_) for _, diff, id_ in told)
    assert kept == [(-1, 3), (-1, 4), (1, 44)]


def test_a_client_that_has_read_loses_to_what_upstream_has_changed(
    shop: psycopg.Connection, database: UpstreamDatabase
) -> None:
    """Validation knows which rows have gone (A1)."""
    is_same(shop, database)
    shop.execute("create table own (n bigint)")
    with synchronous(database):
        for statement, outcome in (
            ("UPDATE orders SET what = 'x' WHERE id = 1", "40001"),
            ("UPDATE orders SET what = 'y' WHERE id = 2", None),
        ):
            shop.execute("begin")
            assert rows(shop, "select count(*) from orders where id = 1") == [(1,)]
            shop.execute("insert into own select count(*) from orders where id = 1")
            database.execute(statement)
            if outcome is None:
                shop.execute("commit")
            else:
                assert refusal(shop, "commit")[0] == outcome
