"""Every statement of the files gives PostgreSQL's answer on both engines, or a listed refusal.

INVARIANTS
  Q1  no answer is wrong. `make test` runs all on the local engine and some of the queries on
      Spark; `make sqldiff` runs all on both.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compute.spark.session import SessionPoolName
from tests.postgres.queries.answers import ask
from tests.postgres.queries.binary import differences
from tests.postgres.queries.comparing import Verdict
from tests.postgres.queries.lists import deviating, refused
from tests.postgres.queries.running import Outcome, key, record, run, session
from tests.postgres.queries.statement_files import Case, areas, cases
from tests.support.servers import meridian, postgres

AREAS = areas()
BINARY_EVERY = 5
"""Of the queries with an order, this many stand for one that is also asked in binary."""
STATEFUL = ("sequences_in_queries", "settings", "strings", "transactions")
"""Files whose statements stand neither repetition nor gaps."""
NOT_THINNED = (*STATEFUL, "display_text", "session_functions", "styles")
"""Also queries change settings here: one that is left out makes others wrong."""
SPARK_EVERY = 40
"""Of the queries, this many stand for one that Spark runs in `make test`."""
CHANGING = (
    "set_config(", "nextval(", "setval(", "setseed(", "(delete from ", "(insert into ", "(update ",
    "(merge into ",
)  # fmt: skip
"""Queries that do these leave something to those after them."""


@pytest.fixture(scope="session", autouse=True)
def _recorded() -> None:
    if os.environ.get("REWRITE") == "1":
        with postgres() as dsn:
            for area in AREAS:
                record(dsn, area)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = ("--spark-master", "none")
    with meridian(tmp_path_factory.mktemp("local"), options) as server:
        yield server.dsn


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("spark")) as server:
        yield server.dsn


def check(outcomes: Iterator[Outcome], engine: str) -> None:
    """Nothing is wrong (Q1), nothing is refused that is not listed (K1, K2)."""
    known, on_purpose = refused(engine), deviating()
    bad = [
        outcome.story
        for outcome in outcomes
        if (outcome.verdict is Verdict.WRONG) != (outcome.key in on_purpose)
        or (outcome.verdict is Verdict.REFUSED and outcome.key not in known)
    ]
    assert not bad, "\n" + "\n".join(bad)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_what_is_listed_is_in_a_file(engine: str) -> None:
    known = {key(area, case) for area in AREAS for case in cases(area)}
    assert not refused(engine) - known, "python -m tests.postgres.queries --refusals"
    assert not deviating() - known


@pytest.mark.parametrize("area", AREAS)
def test_local(local: str, area: str) -> None:
    check(run(local, area, "local"), "local")


def _is_query(case: Case) -> bool:
    """Whether other statements of the file answer the same without it."""
    text = case.text.lower()
    return text.startswith(("select", "with", "values", "table")) and not any(
        call in text for call in CHANGING
    )


def _some(first: int) -> Callable[[int, Case], bool]:
    """All that is no query, and of the queries one in SPARK_EVERY, from the first on."""
    return lambda number, case: not _is_query(case) or number % SPARK_EVERY == first


@pytest.mark.parametrize("area", [area for area in AREAS if area not in STATEFUL])
def test_binary_on_some(local: str, area: str) -> None:
    found: list[str] = []
    with session(local, area, "local") as connection:
        for number, case in enumerate(cases(area)):
            if not _is_query(case):
                ask(connection, case.text)
            elif number % BINARY_EVERY == 0 and " order by " in case.text and ";" not in case.text:
                told = differences(connection, case.text)
                found += [f"{case.text}: {difference}" for difference in told]
    assert not found, "\n".join(found)


@pytest.mark.spark
def test_spark_on_some(spark: str) -> None:
    # What makes an area's tables runs whole: the others are asked by `make spark`.
    thinned = [area for area in AREAS if area not in NOT_THINNED][::3]
    for number, area in enumerate(thinned):
        check(run(spark, area, "spark", _some(number % SPARK_EVERY)), "spark")


@pytest.mark.spark
@pytest.mark.parametrize(
    "lane", [pytest.param(SessionPoolName.MEDIUM, marks=pytest.mark.slow), SessionPoolName.LARGE]
)
def test_large_inputs(tmp_path: Path, lane: SessionPoolName) -> None:
    with meridian(tmp_path, lane=lane) as server:
        check(run(server.dsn, "large_inputs", "spark"), "spark")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("area", AREAS)
def test_spark(spark: str, area: str) -> None:
    check(run(spark, area, "spark"), "spark")
