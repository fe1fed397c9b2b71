"""Random statements on two servers, compared answer by answer and table by table."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.writing.playing import Player
from tests.postgres.writing.sequences import Writer
from tests.postgres.writing.typed_sequences import TypedWriter
from tests.support.servers import fresh_database, meridian, postgres
from tests.support.stack import WITHOUT_CUTS, serving
from tests.support.stage import stage

TESTDATA = Path(__file__).parent / "testdata"
RECORDED: tuple[tuple[str, type[Writer], range], ...] = (
    ("sequences", Writer, range(1, 13)),
    ("typed_sequences", TypedWriter, range(1, 5)),
)
COUNT = 60

SEEDS = range(100, 100 + int(os.environ.get("WRITING_SEEDS", "20")))
LONG = 300


def played(
    dsn: str, kind: type[Writer], seed: int, count: int, *, briefly: bool = False
) -> Iterator[str]:
    """What a server answers to the statements of a seed, with the tables after each."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield from played_on(connection, kind, seed, count, briefly=briefly)


def played_on(
    connection: "psycopg.Connection[tuple[object, ...]]",
    kind: type[Writer],
    seed: int,
    count: int,
    *,
    briefly: bool = False,
) -> Iterator[str]:
    """The same on a connection."""
    player = Player(connection, kind.tables)
    writer = kind(seed)
    for line in writer.statements(count):
        told = player.briefly(line) if briefly else player.alone(line)
        writer.failed = "\nE " in told
        yield told


def record() -> None:
    """Ask PostgreSQL for the recorded seeds."""
    with postgres() as dsn:
        for name, kind, seeds in RECORDED:
            told = [
                text
                for seed in seeds
                for text in played(fresh_database(dsn), kind, seed, COUNT, briefly=True)
            ]
            (TESTDATA / f"{name}.out").write_text("\n\n".join(told) + "\n")


@pytest.mark.parametrize(("name", "kind", "seeds"), RECORDED)
def test_recorded_sequences(name: str, kind: type[Writer], seeds: range) -> None:
    expected = iter((TESTDATA / f"{name}.out").read_text().removesuffix("\n").split("\n\n"))
    for seed in seeds:
        with serving(core=WITHOUT_CUTS) as dsn:
            for said in played(dsn, kind, seed, COUNT, briefly=True):
                assert said == next(expected), f"seed {seed}"
    assert next(expected, None) is None


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


def test_there_are_many_statements() -> None:
    told = [(TESTDATA / f"{name}.out").read_text() for name, _, _ in RECORDED]
    assert sum(text.count("\n\n") for text in told) >= 1_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("engine", ["reference", "none"])
@pytest.mark.parametrize("kind", [Writer, TypedWriter])
def test_sequences(kind: type[Writer], seed: int, engine: str, real: str, tmp_path: Path) -> None:
    with meridian(tmp_path, ["--spark-master", engine]) as server:
        ours = played(server.dsn, kind, seed, LONG)
        theirs = played(fresh_database(real), kind, seed, LONG)
        for said, expected in zip(ours, theirs, strict=True):
            assert of_any_row(said) == of_any_row(expected), f"seed {seed} on {engine}"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [Writer, TypedWriter])
def test_sequences_on_spark(kind: type[Writer], seed: int, real: str, spark: str) -> None:
    with stage(spark) as connection:
        ours = played_on(connection, kind, seed, COUNT)
        theirs = played(fresh_database(real), kind, seed, COUNT)
        for said, expected in zip(ours, theirs, strict=True):
            assert of_any_row(said) == of_any_row(expected), f"seed {seed} on Spark"


def of_any_row(told: str) -> str:
    """Of several wrong rows any may be told: Spark gives them in any order, and PostgreSQL in that
    of its pages, which fill up again. Of several deferred constraints any may be told, and a
    reference that both sides have broken by either.
    """
    told = re.sub(r"^> commit\nE 2350[35].*", "> commit\nE 2350", told)
    told = re.sub(r"(Key \(\w+\))=\(\w+\)", r"\1=(..)", told)
    told = re.sub(r"^E 22.*", "E 22", told, flags=re.MULTILINE)
    return re.sub(r'^E 23503 .* foreign key constraint ("\w+").*', r"E 23503 \1", told, flags=re.M)


if __name__ == "__main__":
    record()
