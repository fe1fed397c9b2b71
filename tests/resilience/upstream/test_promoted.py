"""A standby takes the place of the upstream: it has all commits, or not the last ones (S5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.resilience.upstream.feed import SETTINGS, source_of
from tests.session.change_streams.followers import until
from tests.support.servers import Postgres, meridian, postgres_server

OPTIONS = ("--spark-master", "none", "--set", "source_hosts=127.0.0.1")


@dataclass(frozen=True, slots=True)
class Replicated:
    """An upstream with a standby, and a client of the server that it feeds."""

    primary: Postgres
    standby: Postgres
    here: psycopg.Connection

    def write(self, there: Postgres, *numbers: int) -> None:
        with psycopg.connect(there.dsn, autocommit=True) as connection:
            for n in numbers:
                connection.execute("INSERT INTO t VALUES (%s)", [n])

    def rows(self) -> list[int]:
        return [n for (n,) in self.here.execute("SELECT n FROM shop.t ORDER BY n").fetchall()]

    def standby_rows(self) -> list[int]:
        with psycopg.connect(self.standby.dsn, autocommit=True) as connection:
            return [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n").fetchall()]

    def promote(self) -> None:
        """The primary is gone, and the address leads to the standby."""
        self.primary.stop("immediate")
        if not self.standby.running:
            self.standby.start()
        self.standby.promote()
        self.here.execute(f"ALTER CONNECTION upstream SET (PORT {self.standby.port})".encode())

    def broken(self) -> tuple[str, str, str]:
        query = "SELECT code, reason, hint FROM meridian.sources WHERE state = 'broken'"
        until(lambda: self.here.execute(query).fetchall())
        found = self.here.execute(query).fetchone()
        assert found is not None
        return found


@contextmanager
def replicated(directory: Path) -> Iterator[Replicated]:
    with (
        postgres_server(SETTINGS) as primary,
        meridian(directory, OPTIONS) as server,
        psycopg.connect(server.dsn, autocommit=True) as here,
    ):
        with psycopg.connect(primary.dsn, autocommit=True) as there:
            there.execute("CREATE TABLE t (n int PRIMARY KEY)")
            there.execute("CREATE PUBLICATION everything FOR ALL TABLES")
        with postgres_server(SETTINGS, primary.dsn) as standby:
            for statement in source_of(primary.port):
                here.execute(statement.encode())
            yield Replicated(primary, standby, here)


@pytest.mark.parametrize("lost", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_promoted_standby_is_noticed(tmp_path: Path, *, lost: bool) -> None:
    """Nothing is read from it before a person has decided; then it is taken in as it is."""
    with replicated(tmp_path) as both:
        both.write(both.primary, 1, 2)
        until(lambda: both.rows() == [1, 2])
        until(lambda: both.standby_rows() == [1, 2])
        if lost:
            both.standby.stop("fast")
            both.write(both.primary, 3)
            until(lambda: both.rows() == [1, 2, 3])
        both.promote()
        before = both.rows()
        code, reason, hint = both.broken()
        # Both would lack what is committed there from now on.
        assert ("before what was taken in" if lost else "is gone upstream") in reason
        assert code == ("55000" if lost else "42704")
        assert "RESNAPSHOT" in hint
        both.write(both.standby, 4)
        assert both.rows() == before == ([1, 2, 3] if lost else [1, 2])
        both.here.execute("ALTER SOURCE feed RESNAPSHOT")
        until(lambda: both.rows() == [1, 2, 4])
        both.write(both.standby, 5)
        until(lambda: both.rows() == [1, 2, 4, 5])
