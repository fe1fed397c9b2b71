"""One server for the local engine, one for Spark; every test asks through the wire."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.postgres.queries.answers import Answer, ask
from tests.support.servers import Meridian, meridian


@dataclass(frozen=True, slots=True)
class Target:
    """A running server and the engine that its sessions take."""

    server: Meridian
    engine: str

    @property
    def warehouse(self) -> Path:
        """Where its tables are."""
        return self.server.data

    def connect(self) -> psycopg.Connection:
        """A session that takes the engine."""
        connection = psycopg.connect(self.server.dsn, autocommit=True)
        connection.execute(f"set engine = {self.engine}".encode())
        return connection

    def ask(self, *texts: str) -> list[Answer]:
        """The last answer to each of the texts, in one session."""
        with self.connect() as connection:
            return [ask(connection.pgconn, text)[-1] for text in texts]

    def lives(self) -> None:
        """The server answers somebody else, over the table that every test finds."""
        with self.connect() as connection:
            assert connection.execute("select a from safe").fetchall() == [(1,)]


def _target(directory: Path, engine: str) -> Iterator[Target]:
    options = ("--spark-master", "none") if engine == "local" else ()
    with meridian(directory, options) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table safe (a int, t text)")
            connection.execute("insert into safe values (1, 'x')")
        target = Target(server, engine)
        target.lives()
        yield target


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from _target(tmp_path_factory.mktemp("local"), "local")


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from _target(tmp_path_factory.mktemp("spark"), "spark")


@pytest.fixture(
    params=[
        "local",
        pytest.param("spark_server", id="spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ]
)
def target(request: pytest.FixtureRequest) -> Target:
    """Both engines, one after the other."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Target)
    return found
