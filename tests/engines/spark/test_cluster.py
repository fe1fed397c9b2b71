"""A standalone cluster of Spark: without executors it says so, with one it answers."""

import time
from pathlib import Path

import psycopg
import pytest

from tests.engines.spark.standalone import (
    java_with_vectors,
    standalone_master,
    standalone_worker,
)
from tests.support.servers import meridian

pytestmark = pytest.mark.spark

PATIENCE_S = 240
"""Only against waiting for ever."""

QUERY = "select count(*) from (select array_agg(distinct b) from t) x"
"""One that the local engine refuses."""


def test_a_cluster_without_executors_says_so_and_answers_when_it_has_one(tmp_path: Path) -> None:
    with standalone_master(tmp_path / "master") as url:
        options = ("--spark-master", url)
        for given in ("driver_host=127.0.0.1", "wait_s=2", "cores_max=1", "executor_memory_mb=512"):
            options += ("--set", f"spark_{given}")
        with (
            meridian(tmp_path / "server", options) as server,
            psycopg.connect(server.dsn, autocommit=True) as connection,
        ):
            connection.execute("create table t (a int, b interval)")
            connection.execute("insert into t select g, '1 day' from generate_series(1, 1000) g")
            with pytest.raises(psycopg.errors.CannotConnectNow, match="cluster has no executors"):
                connection.execute(QUERY)
            (line,) = [one for one in server.log.splitlines() if "compute.spark.cluster" in one]
            assert "jdk.incubator.vector" in line
            with standalone_worker(tmp_path / "worker", url, java_with_vectors(tmp_path / "java")):
                deadline = time.monotonic() + PATIENCE_S
                while (found := _answer(connection)) is None:
                    assert time.monotonic() < deadline, server.log
            assert found == 1


def _answer(connection: "psycopg.Connection[tuple[int]]") -> int | None:
    """None while there is no executor yet."""
    try:
        row = connection.execute(QUERY).fetchone()
    except psycopg.errors.CannotConnectNow:
        return None
    assert row is not None, "an aggregate has a row"
    return row[0]
