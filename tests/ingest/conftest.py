"""One PostgreSQL as an upstream, and an empty database for each test."""

from collections.abc import Iterator

import pytest

from tests.ingest.upstream_database import UpstreamDatabase
from tests.support.servers import Postgres, postgres_server

SETTINGS = ("wal_level=logical", "max_replication_slots=200", "max_wal_senders=200", "fsync=off")


@pytest.fixture(scope="session")
def upstream_server() -> Iterator[Postgres]:
    with postgres_server(SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def shared_database(upstream_server: Postgres) -> Iterator[UpstreamDatabase]:
    made = UpstreamDatabase(upstream_server)
    yield made
    made.close()


@pytest.fixture
def database(shared_database: UpstreamDatabase) -> Iterator[UpstreamDatabase]:
    yield shared_database
    shared_database.empty()
