"""One PostgreSQL as an upstream, and a fresh database for each test."""

from collections.abc import Iterator

import pytest

from tests.ingest.upstream_database import UpstreamDatabase
from tests.support.servers import Postgres, postgres_server

SETTINGS = ("wal_level=logical", "max_replication_slots=200", "max_wal_senders=200", "fsync=off")


@pytest.fixture(scope="session")
def upstream_server() -> Iterator[Postgres]:
    with postgres_server(SETTINGS) as running:
        yield running


@pytest.fixture
def database(upstream_server: Postgres) -> Iterator[UpstreamDatabase]:
    with UpstreamDatabase(upstream_server) as made:
        yield made
