"""A server of ours beside the upstream database, and a client of it."""

from collections.abc import Iterator

import psycopg
import pytest

from coordinator.config import Settings
from tests.ingest.upstream_database import UpstreamDatabase
from tests.support.stack import serving


@pytest.fixture(scope="session")
def fed_server() -> Iterator[str]:
    with serving(Settings(secret_names="MERIDIAN_SECRET_*, PGX_*")) as dsn:
        yield dsn


@pytest.fixture
def client(fed_server: str, database: UpstreamDatabase) -> Iterator[psycopg.Connection]:
    """Everything is dropped behind the test, before upstream is emptied."""
    with psycopg.connect(fed_server, autocommit=True) as connection:
        connection.execute("create schema here")
        connection.execute("set search_path = here")
        yield connection
        connection.execute("rollback")
        connection.execute("drop schema here cascade")


@pytest.fixture
def connected(client: psycopg.Connection, database: UpstreamDatabase) -> psycopg.Connection:
    """With the connection `c` to upstream."""
    client.execute(f"create connection c to postgres ({options(database)})".encode())
    return client


def options(database: UpstreamDatabase) -> str:
    """Of a connection to it."""
    return f"host '127.0.0.1', port {database.port}, database '{database.name}', user 'postgres'"
