"""The servers of the driver tests; each test has tables of its own."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.clients.drivers.moved import Peers, create_objects, facts
from tests.support.servers import postgres
from tests.support.stack import serving


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    """The DSN of a running server."""
    with serving() as address:
        yield address


@pytest.fixture(scope="session")
def peers() -> Iterator[Peers]:
    """Two servers with what `moved.py` moves, and an empty one."""
    with serving() as ours, serving() as empty, postgres() as theirs:
        create_objects(ours)
        create_objects(theirs)
        with psycopg.connect(empty, autocommit=True) as connection:
            connection.execute(
                "create role alice; create role readers; create role postgres superuser"
            )
        with psycopg.connect(theirs, autocommit=True) as connection:
            connection.execute("create role meridian superuser")
        yield Peers(ours, theirs, empty, facts(theirs))
