"""Random statements on two servers, compared answer by answer and table by table."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.servers import fresh_database, meridian, postgres
from tests.session.stack import serving
from tests.writing.playing import Player
from tests.writing.sequences import TABLES, Writer

RECORDED = Path(__file__).parent / "testdata" / "sequences.out"
RECORDED_SEEDS = range(1, 13)
COUNT = 60

SEEDS = range(100, 100 + int(os.environ.get("WRITING_SEEDS", "20")))
LONG = 300


def played(dsn: str, seed: int, count: int, *, briefly: bool = False) -> Iterator[str]:
    """What a server answers to the statements of a seed, with the tables after each."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        player = Player(connection, TABLES)
        writer = Writer(seed)
        for line in writer.statements(count):
            told = player.briefly(line) if briefly else player.alone(line)
            writer.failed = "\nE " in told
            yield told


def record() -> None:
    """Ask PostgreSQL for the recorded seeds."""
    with postgres() as dsn:
        told = [
            text
            for seed in RECORDED_SEEDS
            for text in played(fresh_database(dsn), seed, COUNT, briefly=True)
        ]
    RECORDED.write_text("\n\n".join(told) + "\n")


def test_recorded_sequences() -> None:
    expected = iter(RECORDED.read_text().removesuffix("\n").split("\n\n"))
    for seed in RECORDED_SEEDS:
        with serving() as dsn:
            for said in played(dsn, seed, COUNT, briefly=True):
                assert said == next(expected), f"seed {seed}"
    assert next(expected, None) is None


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


def test_there_are_many_statements() -> None:
    assert RECORDED.read_text().count("\n\n") >= 750


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("engine", ["reference", "none"])
def test_sequences(seed: int, engine: str, real: str, tmp_path: Path) -> None:
    with meridian(tmp_path, ["--spark-master", engine]) as server:
        ours = played(server.dsn, seed, LONG)
        theirs = played(fresh_database(real), seed, LONG)
        for said, expected in zip(ours, theirs, strict=True):
            assert said == expected, f"seed {seed} on {engine}"


if __name__ == "__main__":
    record()
