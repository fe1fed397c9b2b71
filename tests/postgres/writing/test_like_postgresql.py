"""Statements that write, as PostgreSQL has them: answers and states recorded from PostgreSQL 18.

A script in `testdata/` is a line a statement; the first line names its tables. After each statement
the whole of every table is compared. Run as a program, this module asks PostgreSQL and records all
scripts, or those that are named; `tests/postgres/transactions` plays them, too, and has records of
its own.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from tests.postgres.writing.playing import Player
from tests.support.servers import fresh_database, meridian, postgres
from tests.support.stack import WITHOUT_CUTS, serving
from tests.support.stage import stage

DIRECTORY = Path(__file__).parent / "testdata"
SCRIPTS = sorted(path.stem for path in DIRECTORY.glob("*.sql"))


def script(name: str) -> tuple[list[str], list[str]]:
    """The tables and the statements of a script."""
    head, *lines = (DIRECTORY / f"{name}.sql").read_text().splitlines()
    tables = head.removeprefix("# tables ").split(", ")
    return tables, [line for line in lines if line.strip() and not line.startswith("#")]


def recorded(name: str) -> list[str]:
    """What PostgreSQL has said, statement by statement."""
    return (DIRECTORY / f"{name}.out").read_text().removesuffix("\n").split("\n\n")


def record(names: Sequence[str]) -> None:
    """Ask PostgreSQL for scripts."""
    with postgres() as dsn:
        for name in names:
            tables, lines = script(name)
            with psycopg.connect(fresh_database(dsn), autocommit=True) as connection:
                player = Player(connection, tables)
                told = [player.alone(line) for line in lines]
            (DIRECTORY / f"{name}.out").write_text("\n\n".join(told) + "\n")


def differences(dsn: str, name: str) -> Sequence[tuple[str, str]]:
    """Statements of a script whose answer is another, as (ours, PostgreSQL's)."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return differences_on(connection, name)


def differences_on(
    connection: "psycopg.Connection[tuple[object, ...]]", name: str
) -> Sequence[tuple[str, str]]:
    """The same on a connection."""
    tables, lines = script(name)
    player = Player(connection, tables)
    told = [player.alone(line) for line in lines]
    return [pair for pair in zip(told, recorded(name), strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize("name", SCRIPTS)
def test_like_postgresql(name: str) -> None:
    with serving(core=WITHOUT_CUTS) as dsn:
        assert not differences(dsn, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_local_engine(name: str, tmp_path: Path) -> None:
    with meridian(tmp_path, ["--spark-master", "none"]) as server:
        assert not differences(server.dsn, name)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", SCRIPTS)
def test_spark(spark: str, name: str) -> None:
    with stage(spark) as connection:
        assert not differences_on(connection, name)


def test_there_are_many_statements() -> None:
    assert sum(len(script(name)[1]) for name in SCRIPTS) >= 1_000


if __name__ == "__main__":
    record(sys.argv[1:] or SCRIPTS)
