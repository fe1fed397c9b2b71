"""The demo on both servers gives PostgreSQL's answers, also after kill -9 and in time travel."""

import contextlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable

from tests.clients.demo import flights
from tests.support.foreign_readers import DeltaRs, ForeignReader, delta_spark_reader, duckdb_reader
from tests.support.servers import ON_SPARK, Meridian, meridian, postgres

# What a reader that knows only the files can say about every table.
FINGERPRINTS = {
    "airlines": "SELECT count(*), min(name), max(name) FROM airlines",
    "airports": "SELECT count(*), sum(alt), min(tzone), count(tzone) FROM airports",
    "planes": "SELECT count(*), sum(year), sum(seats), count(DISTINCT manufacturer) FROM planes",
    "weather": """SELECT count(*), sum(cast(round(temp * 100) AS bigint)), sum(wind_dir),
                         count(wind_gust) FROM weather""",
    "flights": """SELECT carrier, count(*), sum(distance), sum(arr_delay), count(tailnum)
                  FROM flights GROUP BY carrier ORDER BY carrier""",
}


def _quiet(_: str) -> None:
    """Tell nobody."""


@pytest.fixture(scope="module")
def expected() -> flights.Story:
    """What PostgreSQL answers."""
    with (
        postgres() as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        return flights.run(connection, _quiet)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meridian]:
    """One server for the story; every test leaves it running, with the same rows."""
    with meridian(tmp_path_factory.mktemp("meridian"), ON_SPARK) as started:
        yield started


@pytest.fixture(scope="module")
def story(server: Meridian) -> flights.Story:
    """What Meridian answers."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        return flights.run(connection, _quiet)


def _ask(server: Meridian, as_of: str | None = None) -> flights.Answers:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        return flights.ask(connection, _quiet, as_of)


@pytest.mark.spark
@pytest.mark.parametrize("question", flights.QUESTIONS)
def test_every_answer_is_that_of_postgresql(
    expected: flights.Story, story: flights.Story, question: str
) -> None:
    assert story.before[question] == expected.before[question]
    assert story.after[question] == expected.after[question]


@pytest.mark.spark
def test_commands_report_the_rows_that_postgresql_reports(
    expected: flights.Story, story: flights.Story
) -> None:
    assert story.loaded == expected.loaded
    assert story.changed == expected.changed
    assert story.before != story.after


@pytest.mark.spark
def test_the_past_answers_as_it_did(server: Meridian, story: flights.Story) -> None:
    assert _ask(server, story.moment) == story.before


@pytest.mark.spark
def test_all_answers_survive_kill_9(server: Meridian, story: flights.Story) -> None:
    server.kill()
    server.start()
    assert _ask(server) == story.after
    assert _ask(server, story.moment) == story.before


@pytest.mark.spark
def test_the_offline_check_agrees(server: Meridian, story: flights.Story) -> None:
    server.stop()
    checked = server.check()
    server.start()
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    "opened",
    [lambda: contextlib.nullcontext(DeltaRs()), duckdb_reader, delta_spark_reader],
    ids=["delta-rs", "duckdb", "delta-spark"],
)
def test_other_readers_find_the_same_rows(
    server: Meridian,
    story: flights.Story,
    opened: Callable[[], contextlib.AbstractContextManager[ForeignReader]],
) -> None:
    with psycopg.connect(server.dsn) as connection:
        ours = {
            table: [_plain(row) for row in connection.execute(query).fetchall()]
            for table, query in FINGERPRINTS.items()
        }
    tables = _delta_tables(server.data)
    versions = {table: DeltaTable(path).version() for table, path in tables.items()}
    with opened() as reader:
        theirs = {
            table: [_plain(row) for row in reader.query(query, tables, versions)]
            for table, query in FINGERPRINTS.items()
        }
    assert theirs == ours


def _plain(row: tuple[object, ...]) -> tuple[object, ...]:
    """Engines differ in the type of a sum, not in its value."""
    return tuple(
        int(cell) if isinstance(cell, float | Decimal) and cell == int(cell) else cell
        for cell in row
    )


def _delta_tables(data: Path) -> dict[str, Path]:
    """The demo's tables in the warehouse, known by their columns."""
    columns = {
        tuple(line.split()[0] for line in ddl.splitlines()[2:-1]): table
        for table, ddl in flights.TABLES.items()
    }
    found: dict[str, Path] = {}
    for log in sorted(data.rglob("_delta_log")):
        fields = tuple(field.name for field in DeltaTable(log.parent).schema().fields)
        if fields in columns:
            assert columns[fields] not in found, f"two tables look like {columns[fields]}"
            found[columns[fields]] = log.parent
    assert found.keys() == flights.TABLES.keys(), f"only {sorted(found)} are in the warehouse"
    return found
