"""Statements as a client of the simple protocol sees them, on every engine.

    run conn=a          conn: which of several clients; one by default
    select 1
    ----
    RowDescription ?column?:int4
    DataRow 1
    CommandComplete SELECT 1
    ReadyForQuery I

    run waits           the statement waits for a lock of another client: it answers nothing yet
    answer              what it answers at last

INVARIANTS
  L1  one file is one database, new and empty, and means the same on the reference engine, on
      the local one and on Spark; rows that may come in any order are sorted by the statement.
  L2  what a file expects is what PostgreSQL 18 answers, unless a comment above it says why not.
"""

import contextlib
import time
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest

from coordinator.pgwire.messages import Query
from tests.support.servers import ON_SPARK, meridian
from tests.support.stack import serving
from tests.support.transcript import Command, run_transcript
from tests.support.wire import WireClient, show

FILES = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


@contextlib.contextmanager
def _reference(_directory: Path) -> Generator[str]:
    with serving() as dsn:
        yield dsn


@contextlib.contextmanager
def _local(directory: Path) -> Generator[str]:
    with meridian(directory, options=("--spark-master", "none")) as server:
        yield server.dsn


@contextlib.contextmanager
def _spark(directory: Path) -> Generator[str]:
    with meridian(directory, ON_SPARK) as server:
        # The JVM takes longer to start than the clients of the stories wait.
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table warm (a int)")
            connection.execute("select a from warm")
            connection.execute("drop table warm")
        yield server.dsn


def _until_somebody_waits(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not connection.execute("select from pg_locks where not granted").fetchall():
            time.sleep(0.01)


Serving = Callable[[Path], contextlib.AbstractContextManager[str]]
SERVERS = [
    pytest.param(_reference, id="reference"),
    pytest.param(_local, id="local"),
    pytest.param(_spark, id="spark", marks=pytest.mark.spark),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("server", SERVERS)
def test_file(server: Serving, path: Path, tmp_path: Path) -> None:
    clients: dict[str, WireClient] = {}
    with server(tmp_path) as dsn:

        def handler(command: Command) -> str:
            who = command.options.get("conn", "")
            if who not in clients:
                clients[who] = WireClient(dsn)
            if command.name == "run":
                clients[who].send(Query(command.body))
            if "waits" in command.words:
                _until_somebody_waits(dsn)
                return ""
            return "\n".join(map(show, clients[who].answers(1)))

        try:
            run_transcript(path, handler)
        finally:
            for client in clients.values():
                client.close()
