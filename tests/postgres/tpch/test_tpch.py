"""All 22 queries of TPC-H give PostgreSQL's answers on both engines, at scale 0.01.

`REWRITE=1` records PostgreSQL's answers again. Spark answers two of them in `make test`, all of
them in `make sqldiff`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.queries.answers import ask, show
from tests.postgres.queries.running import check_alone
from tests.postgres.queries.statement_files import cases_of, rewrite
from tests.postgres.tpch.loading import load
from tests.support.servers import meridian, postgres

QUERIES = Path(__file__).parent / "testdata" / "queries.txt"
SCALE = 0.01
SPARK_IN_SHORT = ("q04", "q17")

if os.environ.get("REWRITE") == "1":
    with postgres() as dsn:
        load(dsn, SCALE)
        with psycopg.connect(dsn, autocommit=True) as connection:
            rewrite(QUERIES, lambda text: ask(connection.pgconn, text))

CASES = {f"q{number:02d}": case for number, case in enumerate(cases_of(QUERIES), 1)}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = ("--spark-master", "none")
    with meridian(tmp_path_factory.mktemp("local"), options) as server:
        load(server.dsn, SCALE)
        yield server.dsn


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("spark")) as server:
        load(server.dsn, SCALE)
        yield server.dsn


def test_there_are_22() -> None:
    assert len(CASES) == 22
    answered = [name for name, case in CASES.items() if "|" in show(case.expected)]
    assert answered == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_local(local: str, name: str) -> None:
    check_alone(local, "local", CASES[name])


@pytest.mark.spark
@pytest.mark.parametrize("name", SPARK_IN_SHORT)
def test_spark_on_some(spark: str, name: str) -> None:
    check_alone(spark, "spark", CASES[name])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_spark(spark: str, name: str) -> None:
    check_alone(spark, "spark", CASES[name])
