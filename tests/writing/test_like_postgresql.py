"""Statements that write, as PostgreSQL has them: answers and states recorded from PostgreSQL 18.

A script in `testdata/` is a line a statement; the first line names its tables. After each statement
the whole of every table is compared. Each script is played twice: every statement alone; and every
statement in a block, behind a savepoint, first rolled back and then committed. REWRITE: run this
module as a program, which asks PostgreSQL and records.
"""

from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from tests.servers import meridian, postgres
from tests.session.stack import serving
from tests.writing.playing import Player

DIRECTORY = Path(__file__).parent / "testdata"
SCRIPTS = sorted(path.stem for path in DIRECTORY.glob("*.sql"))
ADVANCING = frozenset({"own_values"})
"""Scripts over sequences, which no rollback takes back: not played in blocks."""


def script(name: str) -> tuple[list[str], list[str]]:
    """The tables and the statements of a script."""
    head, *lines = (DIRECTORY / f"{name}.sql").read_text().splitlines()
    tables = head.removeprefix("# tables ").split(", ")
    return tables, [line for line in lines if line.strip() and not line.startswith("#")]


def recorded(name: str) -> list[str]:
    """What PostgreSQL has said, statement by statement."""
    return (DIRECTORY / f"{name}.out").read_text().removesuffix("\n").split("\n\n")


def record() -> None:
    """Ask PostgreSQL for all scripts."""
    with postgres() as dsn:
        for name in SCRIPTS:
            tables, lines = script(name)
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("drop schema if exists public cascade")
                connection.execute("create schema public")
                player = Player(connection, tables)
                told = [player.alone(line) for line in lines]
            (DIRECTORY / f"{name}.out").write_text("\n\n".join(told) + "\n")


def differences(dsn: str, name: str, *, in_blocks: bool) -> Sequence[tuple[str, str]]:
    """Statements of a script whose answer is another, as (ours, PostgreSQL's)."""
    tables, lines = script(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        player = Player(connection, tables)
        play = player.in_block if in_blocks else player.alone
        told = [play(line) for line in lines]
    return [pair for pair in zip(told, recorded(name), strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("in_blocks", [False, True], ids=["alone", "in_blocks"])
def test_like_postgresql(name: str, in_blocks: bool) -> None:
    if in_blocks and name in ADVANCING:
        return
    with serving() as dsn:
        assert not differences(dsn, name, in_blocks=in_blocks)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_local_engine(name: str, tmp_path: Path) -> None:
    with meridian(tmp_path, ["--spark-master", "none"]) as server:
        assert not differences(server.dsn, name, in_blocks=False)


def test_there_are_many_statements() -> None:
    assert sum(len(script(name)[1]) for name in SCRIPTS) >= 250


if __name__ == "__main__":
    record()
