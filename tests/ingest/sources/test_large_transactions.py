"""Upstream transactions that come in parts: one commit, whatever is in them.

Parts and memory are made small here, so that each transaction has many of both kinds: rows that
were there before, own rows in memory, own rows in files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from coordinator.driver import large_transactions
from ingest.postgres import reader
from tests.ingest.sources.asking import rows
from tests.ingest.sources.test_streaming import BIG, synchronous
from tests.ingest.upstream_database import UpstreamDatabase

TABLES = ("keyed", "bag", "pairs")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PART_SIZE", 4_000)
    monkeypatch.setattr(large_transactions.OwnRowsBudget, "share", 20_000)
    monkeypatch.setattr(large_transactions, "FED_BYTES_MAX", 10_000)


@pytest.fixture
def fed(connected: psycopg.Connection, database: UpstreamDatabase) -> Iterator[psycopg.Connection]:
    """A source `feed` that upstream's commits wait for."""
    database.execute(
        "CREATE TABLE keyed (id int PRIMARY KEY, what text, big text)",
        "ALTER TABLE keyed ALTER COLUMN big SET STORAGE EXTERNAL",
        f"INSERT INTO keyed SELECT i, 'w' || i, {BIG} FROM generate_series(1, 50) i",
        "CREATE TABLE bag (at int, what text)",
        "ALTER TABLE bag REPLICA IDENTITY FULL",
        "INSERT INTO bag SELECT i % 7, 'a' FROM generate_series(1, 50) i",
        "CREATE TABLE pairs (a int, b text, v double precision, PRIMARY KEY (a, b))",
        "CREATE PUBLICATION p FOR TABLE keyed, bag, pairs",
    )
    connected.execute("create source feed from postgres connection c (publication 'p')")
    connected.execute("create tables from source feed in schema here")
    same(connected, database)
    with synchronous(database):
        yield connected


def same(client: psycopg.Connection, database: UpstreamDatabase) -> None:
    for name in TABLES:
        query = f"SELECT * FROM {name}"
        here, there = rows(client, query), database.rows(query)
        assert sorted(map(repr, here)) == sorted(map(repr, there)), name


def transaction(database: UpstreamDatabase, *statements: str) -> None:
    with database.connection.transaction():
        database.execute(*statements)


def test_changes_of_rows_that_came_with_the_same_transaction(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    transaction(
        database,
        f"INSERT INTO keyed SELECT i, 'n' || i, {BIG} FROM generate_series(51, 300) i",
        # Unchanged large values of rows of before, of rows in memory and in files (S4).
        "UPDATE keyed SET what = what || 'u' WHERE id % 2 = 0",
        "UPDATE keyed SET id = id + 1000 WHERE id % 3 = 0",
        "UPDATE keyed SET what = what || 'v' WHERE id > 900",
        "DELETE FROM keyed WHERE id % 5 = 0",
        f"INSERT INTO keyed SELECT i, 'again', {BIG} FROM generate_series(5, 300, 5) i "
        "WHERE i % 3 > 0",
        "UPDATE keyed SET what = what || 'w' WHERE id < 40",
        "INSERT INTO bag SELECT i % 7, 'b' FROM generate_series(1, 300) i",
        "UPDATE bag SET what = what || 'u' WHERE at = 3",
        "DELETE FROM bag WHERE at = 4",
    )
    same(fed, database)
    transaction(database, "UPDATE keyed SET what = 'x'", "DELETE FROM keyed WHERE id > 100")
    same(fed, database)


def test_it_is_one_commit(fed: psycopg.Connection, database: UpstreamDatabase) -> None:
    """Over all tables; and rows that came and went with it are counted nowhere."""
    brought = "select rows from meridian.sources"
    ((before,),) = rows(fed, brought)
    with fed.transaction():
        for name in ("pairs", "bag"):
            options = "with (snapshot = false)"
            fed.execute(f"declare of_{name} cursor for subscribe {name} {options}".encode())
        transaction(
            database,
            "INSERT INTO pairs SELECT i, 'x', i FROM generate_series(1, 2000) i",
            "DELETE FROM pairs WHERE a > 1500",
            "INSERT INTO bag SELECT i, 'x' FROM generate_series(1, 2000) i",
        )
        pairs = rows(fed, "fetch 1500 of_pairs with (timeout = '60 s')")
        bag = rows(fed, "fetch 2000 of_bag with (timeout = '60 s')")
    assert (len(pairs), len(bag)) == (1500, 2000)
    assert len({row[0] for row in [*pairs, *bag]}) == 1
    assert rows(fed, brought) == [(before + 3500,)]
    same(fed, database)


def test_truncate_within(fed: psycopg.Connection, database: UpstreamDatabase) -> None:
    transaction(
        database,
        "INSERT INTO pairs SELECT i, 'x', i FROM generate_series(1, 1000) i",
        "UPDATE keyed SET what = 'gone'",
        "TRUNCATE pairs, keyed",
        "INSERT INTO pairs SELECT i, 'y', i FROM generate_series(1, 1000) i",
        "DELETE FROM pairs WHERE a % 2 = 0",
        "INSERT INTO keyed VALUES (1, 'new', 'small')",
    )
    same(fed, database)
    transaction(database, *["TRUNCATE pairs", "INSERT INTO pairs VALUES (1, 'z', 'NaN')"])
    same(fed, database)


def test_nothing_is_left_of_a_transaction_that_comes_to_nothing(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    transaction(
        database,
        "INSERT INTO pairs SELECT i, 'x', i FROM generate_series(1, 1000) i",
        "DELETE FROM pairs",
    )
    same(fed, database)


@pytest.mark.parametrize("seed", range(6))
def test_random_large_transactions(
    fed: psycopg.Connection, database: UpstreamDatabase, seed: int
) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        transaction(database, *[_statement(rng) for _ in range(rng.randint(3, 9))])
        same(fed, database)


def _statement(rng: random.Random) -> str:
    low = rng.randrange(300)
    here = f"id BETWEEN {low} AND {low + rng.randrange(200)}"
    return rng.choice(
        (
            f"INSERT INTO keyed SELECT i, 'n', {BIG} FROM generate_series({low}, {low + 90}) i "
            "ON CONFLICT (id) DO UPDATE SET what = keyed.what || 'c'",
            f"UPDATE keyed SET what = left(what, 9) || 'u' WHERE {here}",
            f"UPDATE keyed SET big = 'b' || id WHERE {here}",
            f"DELETE FROM keyed WHERE {here}",
            f"UPDATE keyed k SET id = id + 1000 WHERE {here} "
            "AND NOT EXISTS (SELECT FROM keyed o WHERE o.id = k.id + 1000)",
            "UPDATE keyed k SET id = id - 1000 WHERE id > 1000 "
            "AND NOT EXISTS (SELECT FROM keyed o WHERE o.id = k.id - 1000)",
            f"INSERT INTO bag SELECT i % 9, 'b' FROM generate_series(1, {low}) i",
            f"UPDATE bag SET what = left(what, 5) || 'u' WHERE at = {rng.randrange(9)}",
            f"DELETE FROM bag WHERE at = {rng.randrange(9)}",
            f"INSERT INTO pairs SELECT i, 'p', i FROM generate_series(1, {low}) i "
            "ON CONFLICT DO NOTHING",
            f"UPDATE pairs SET b = b || 'q', v = -v WHERE a % 4 = {rng.randrange(4)} "
            "AND length(b) < 4",
            "TRUNCATE bag" if rng.random() < 0.3 else "DELETE FROM pairs WHERE a % 3 = 0",
        )
    )
