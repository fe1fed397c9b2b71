"""Queries that are followed on DuckDB: the same answers, envelopes and orders."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from tests.engines.duckdb.optimizers import NO_FILES
from tests.session.change_streams.history import History, make_history, now
from tests.session.change_streams.test_histories import (
    COMPARED,
    LINEAR,
    check_fold,
    check_resumed,
    check_upserts,
)
from tests.support.stack import serving


@pytest.fixture(scope="module")
def followed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[psycopg.Connection, History]]:
    directory: Path = tmp_path_factory.mktemp("local")
    executor = LocalExecutor(LocalSettings(directory, directory / "spill"))
    with serving(local=executor, core=NO_FILES) as dsn, contextlib.ExitStack() as stack:
        connection = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        history = make_history(connection, seed=35, transactions=25, compacts=False)
        connection.execute("set engine = local")
        yield connection, history


def test_changes_and_answers(followed: tuple[psycopg.Connection, History]) -> None:
    for query in LINEAR:
        check_fold(*followed, query)
    for query in COMPARED:
        check_resumed(*followed, query)


def test_an_engine_sorts(followed: tuple[psycopg.Connection, History]) -> None:
    connection, history = followed
    check_upserts(connection, history)
    # More than is sorted in process.
    connection.execute("create table many (a int, b numeric(9, 2), c text)")
    connection.execute("insert into many select g, g, 'x' from generate_series(1, 9000) g")
    begin = now(connection)
    connection.execute("update many set b = -b")
    order = "WITHIN TIMESTAMP ORDER BY a % 10 DESC, b, meridian_diff"
    statement = f"SUBSCRIBE many {order} AS OF {begin} UP TO {now(connection) + 1}"
    rows = connection.execute(statement.encode()).fetchall()
    assert len(rows) == 27_000
    keys = [(ts, -(a % 10), b, diff) for ts, diff, a, b, _ in rows]
    assert keys == sorted(keys)
    assert sum(diff * b for _, diff, _, b, _ in rows) == -9_000 * 9_001 // 2
