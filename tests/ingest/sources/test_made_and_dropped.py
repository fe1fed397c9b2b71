"""Sources that are made and dropped one after the other: no statement fails."""

from __future__ import annotations

import random

import psycopg
import pytest

from tests.ingest.sources.asking import rows
from tests.ingest.sources.conftest import options
from tests.ingest.upstream_database import UpstreamDatabase

SCHEMA = (
    "CREATE TABLE a (id int PRIMARY KEY, v text)",
    "CREATE TABLE b (id int PRIMARY KEY, v text)",
    "INSERT INTO a SELECT i, 'x' FROM generate_series(1, 20) i",
    "INSERT INTO b SELECT i, 'x' FROM generate_series(1, 20) i",
    "CREATE PUBLICATION p FOR ALL TABLES",
)


@pytest.mark.parametrize("rounds", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_many_in_a_row(client: psycopg.Connection, database: UpstreamDatabase, rounds: int) -> None:
    """Connections end while somebody waits for them, and the next ones have their sockets."""
    rng = random.Random(rounds)
    database.execute(*SCHEMA)
    for _ in range(rounds):
        client.execute(f"create connection c to postgres ({options(database)})".encode())
        client.execute("create source feed from postgres connection c (publication 'p')")
        client.execute("create tables from source feed in schema here")
        if rng.random() < 0.7:
            assert rows(client, "select count(*) from a") == [(20,)]
            database.execute("UPDATE a SET v = v || 'y' WHERE id = 1")
        for change in rng.sample(("pause", "resume", "resnapshot"), rng.randrange(3)):
            client.execute(f"alter source feed {change}".encode())
        client.execute("drop connection c cascade")
