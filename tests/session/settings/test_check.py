"""`meridian check`: clean after a kill, and every damage found, with the place and an exit code."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from coordinator.config import Settings
from coordinator.server.check import check
from tests.support.servers import Meridian, meridian


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of two tables, one with a version and a tail, whose server was killed."""
    options = ("--spark-master", "reference")
    with meridian(tmp_path_factory.mktemp("killed"), options) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id int, s text)")
            connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        assert server.stop() == 0
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE u (id int)")
            connection.execute("CREATE INDEX i ON u (id)")
            connection.execute("CREATE DOMAIN d AS int")
            connection.execute("CREATE VIEW v AS SELECT 1::d AS a")
            _assert_served(server)
            # The last thing before the end: a tail is flushed when it is some seconds old.
            connection.execute("INSERT INTO t VALUES (4, 'd')")
        server.kill()
        return server.data


def _assert_served(server: Meridian) -> None:
    found = server.check()
    assert found.returncode == 1
    assert f"in use by process {server.pid}" in found.stderr


def test_tables_of_every_timeline_are_checked(tmp_path: Path) -> None:
    with meridian(tmp_path, ("--spark-master", "reference")) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TIMELINE counted MANUAL")
            connection.execute("CREATE TIMELINE other CLOCK system")
            connection.execute("CREATE TABLE t (id int) IN TIMELINE counted")
            connection.execute("CREATE TABLE u (id int) IN TIMELINE other")
            connection.execute("CREATE TABLE never_written (id int) IN TIMELINE other")
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("INSERT INTO u VALUES (1)")
        assert server.stop() == 0
        assert server.check().stdout == "checked 3 tables: ok\n"
        (path,) = (server.data / "warehouse").glob("*/part-1-*.parquet")
        path.unlink()
        assert server.check().returncode == 1


def test_a_table_of_another_timeline_may_be_younger_than_its_cuts(tmp_path: Path) -> None:
    with meridian(tmp_path, ("--spark-master", "reference")) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TIMELINE other CLOCK system")
            connection.execute("CREATE TABLE t (id int) IN TIMELINE other")
            connection.execute("INSERT INTO t VALUES (1)")
        assert server.stop() == 0
        before = {*(server.data / "warehouse").iterdir()}
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE u (id int) IN TIMELINE other")
            connection.execute("INSERT INTO t VALUES (2)")
        assert server.stop() == 0
        # As if the last cut had been decided on just before the table came to the timeline.
        (young,) = {*(server.data / "warehouse").iterdir()} - before
        shutil.rmtree(young)
        execute(server.data, f"DELETE FROM entries WHERE key = '{young.name}'")
        assert server.check().stdout == "checked 2 tables: ok\n"
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("INSERT INTO u VALUES (1)")
            assert connection.execute("SELECT * FROM u").fetchall() == [(1,)]
        assert server.stop() == 0
        assert server.check().stdout == "checked 2 tables: ok\n"


@pytest.fixture
def data(killed: Path, tmp_path: Path) -> Path:
    # A socket cannot be copied, and is nothing that a server keeps.
    without = shutil.ignore_patterns(".s.*")
    return Path(shutil.copytree(killed, tmp_path / "data", ignore=without))


def execute(data: Path, statement: str) -> None:
    with sqlite3.connect(data / "stash.db") as connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


def test_a_killed_server_leaves_everything_in_order(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(Settings(data_dir=str(data))) == 0
    assert capsys.readouterr().out == "checked 2 tables: ok\n"


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("DELETE FROM entries WHERE collection = 'catalog'", "the catalog has never had it"),
        (
            "DELETE FROM entries WHERE collection = 'catalog'"
            ' AND CAST(value AS text) LIKE \'%put_table%"name": "u"%\'',
            "error: index public.i: is of the table",
        ),
        (
            "DELETE FROM entries WHERE collection = 'catalog'"
            ' AND CAST(value AS text) LIKE \'%"name": "d"%\'',
            'error: public.v: type "public.d" does not exist',
        ),
        ("DELETE FROM entries WHERE collection = 'shards'", "is not registered"),
        ("DELETE FROM entries WHERE collection = 'oracle'", "the oracle's ceiling is missing"),
        ("UPDATE entries SET value = zeroblob(9) WHERE collection = 'commits'", "its checksum"),
        ("DELETE FROM meta WHERE name = 'epoch'", "the stash has no epoch"),
        ("UPDATE meta SET value = 'one' WHERE name = 'epoch'", "the stash has no epoch"),
        ("UPDATE meta SET value = 'one' WHERE name = 'format'", "the stash has no format"),
        ("UPDATE meta SET value = 4 WHERE name = 'format'", "has format 4, this Meridian knows"),
    ],
)
def test_damage_of_the_stash(
    data: Path, capsys: pytest.CaptureFixture[str], statement: str, line: str
) -> None:
    execute(data, statement)
    assert check(Settings(data_dir=str(data))) == 1
    said = capsys.readouterr()
    assert line in said.out + said.err


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40] ^= 0x40
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, _flip, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("pattern", ["*/part-*.parquet", "*/_delta_log/*.json"])
def test_damage_of_a_file(
    data: Path, capsys: pytest.CaptureFixture[str], pattern: str, damage: Callable[[Path], object]
) -> None:
    # On a slow machine the tables have had more than one cut.
    damage(max((data / "warehouse").glob(pattern)))
    assert check(Settings(data_dir=str(data))) == 1
    assert "error: " in capsys.readouterr().out


def test_orphans_are_listed_and_are_no_errors(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = (data / "warehouse").glob("*/part-*.parquet")
    shutil.copy(path, path.with_name("part-1-0.parquet"))
    shutil.copytree(path.parent, data / "warehouse" / "t99")
    assert check(Settings(data_dir=str(data))) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"orphan: {path.parent.name}/part-1-0.parquet: no version names this file",
        "orphan: t99: the catalog knows no such table",
        "checked 2 tables: ok",
    ]
