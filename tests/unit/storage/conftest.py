"""A PostgreSQL for the tests of the stash, and a fresh database for each."""

from collections.abc import Iterator

import pytest

from tests.support.servers import Postgres, fresh_database, postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def dsn(server: Postgres) -> str:
    return fresh_database(server.dsn)
