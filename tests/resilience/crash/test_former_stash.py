"""A data directory that a program of before has left behind, killed, is opened and served."""

from pathlib import Path

import psycopg
import pytest

from storage.stash import FORMAT
from tests.support.former_stash import write_as_before
from tests.support.servers import Meridian, meridian

OPTIONS = ("--spark-master", "none")


def contents(server: Meridian) -> list[object]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        return [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("kept", "keyed", "counted")
        ]


def write(server: Meridian) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE TIMELINE steps MANUAL")
        connection.execute("CREATE TABLE kept (id int, s text)")
        connection.execute("CREATE TABLE keyed (id int PRIMARY KEY, n int)")
        connection.execute("CREATE TABLE counted (id int) IN TIMELINE steps")
        connection.execute("INSERT INTO kept SELECT i, 'x' FROM generate_series(1, 100) i")
        connection.execute("INSERT INTO keyed SELECT i, 0 FROM generate_series(1, 100) i")
        connection.execute("INSERT INTO counted VALUES (1)")
        connection.execute("UPDATE keyed SET n = 1 WHERE id < 10")
        with connection.transaction():
            connection.execute("DELETE FROM kept WHERE id > 90")
            connection.execute("INSERT INTO keyed VALUES (101, 5)")


@pytest.mark.parametrize("checked", [False, True])
def test_nothing_of_it_is_lost(tmp_path: Path, *, checked: bool) -> None:
    with meridian(tmp_path, OPTIONS) as server:
        write(server)
        before = contents(server)
        # The last thing before the end: a tail is flushed when it is some seconds old.
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("INSERT INTO kept VALUES (1000, 'last')")
            connection.execute("INSERT INTO counted VALUES (2)")
        server.kill()
        before[0].append((1000, "last"))
        before[2].append((2,))
        assert write_as_before(server.data / "stash.db") >= 2
        if checked:
            # As it is: looking changes nothing.
            assert server.check().stdout == "checked 3 tables: ok\n"
        server.start()
        assert f"the stash has format {FORMAT} now" in server.log
        assert contents(server) == before
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.UniqueViolation):
                connection.execute("INSERT INTO keyed VALUES (101, 6)")
            connection.execute("UPDATE keyed SET n = 7 WHERE id = 101")
            connection.execute("INSERT INTO counted VALUES (3)")
        before[1][-1] = (101, 7)
        before[2].append((3,))
        server.kill()
        server.start()
        assert contents(server) == before
        assert server.stop() == 0
        assert server.check().stdout == "checked 3 tables: ok\n"
