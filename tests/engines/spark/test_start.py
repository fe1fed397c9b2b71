"""`spark_start`: when a server starts the JVM, and what it does without one."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from tests.support.processes import children
from tests.support.servers import meridian

pytestmark = pytest.mark.spark

STARTED_SECONDS_MAX = 120
"""Only against waiting for ever."""


def _lines(connection: "psycopg.Connection[Any]", text: str) -> list[str]:
    return [line for (line,) in connection.execute(cast("Any", text)).fetchall()]


def _filled(connection: "psycopg.Connection[Any]") -> None:
    connection.execute("create table t (a int, b interval)")
    connection.execute("insert into t select g, '1 day' from generate_series(1, 1000) g")


REFUSED_LOCALLY = "select count(*) from (select array_agg(distinct b) from t) x"


def test_eager_starts_it_and_nobody_asked(tmp_path: Path) -> None:
    with meridian(tmp_path, ("--set", "spark_start=eager")) as server:
        end = time.monotonic() + STARTED_SECONDS_MAX
        while not children(server.pid):
            assert time.monotonic() < end, server.log
            time.sleep(0.05)
        assert server.stop() == 0, server.log


def test_lazy_starts_it_for_the_first_who_needs_it(tmp_path: Path) -> None:
    with meridian(tmp_path) as server, psycopg.connect(server.dsn, autocommit=True) as connection:
        _filled(connection)
        assert connection.execute("select sum(a) from t").fetchall() == [(500_500,)]
        assert _lines(connection, f"explain {REFUSED_LOCALLY}")[-1].startswith("Engine: spark (")
        assert not children(server.pid), "EXPLAIN and what runs locally start no JVM"
        assert connection.execute(REFUSED_LOCALLY).fetchall() == [(1,)]
        assert children(server.pid)


def test_what_does_not_fit_into_the_local_engine_runs_on_spark(tmp_path: Path) -> None:
    query = "select count(*), max(n) from (select b, count(*) as n from t group by b) x"
    with (
        meridian(tmp_path, ("--set", "local_memory_mb=8")) as server,
        psycopg.connect(server.dsn, autocommit=True) as connection,
    ):
        connection.execute("create table t (a int, b text)")
        with connection.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
            copy.write("".join(f"{n}\ttext {n} {'x' * 20}\n" for n in range(300_000)).encode())
        assert connection.execute(query).fetchall() == [(300_000, 1)]
        assert "local has given up (out of memory): the plan runs on spark" in server.log
        assert children(server.pid)


@pytest.mark.parametrize(
    "options", [("--set", "spark_start=off"), ("--spark-master", "none")], ids=["off", "none"]
)
def test_off_runs_locally_what_it_can_and_refuses_the_rest(
    tmp_path: Path, options: Sequence[str]
) -> None:
    with (
        meridian(tmp_path, options) as server,
        psycopg.connect(server.dsn, autocommit=True) as connection,
    ):
        _filled(connection)
        for engine in ("auto", "local", "spark"):
            connection.execute(f"set engine = {engine}".encode())
            assert connection.execute("select sum(a) from t").fetchall() == [(500_500,)]
            with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
                connection.execute(REFUSED_LOCALLY)
            assert "on the local engine" in str(refused.value)
        assert _lines(connection, "explain select sum(a) from t")[-1] == (
            "Engine: local (this server has no Spark)"
        )
        assert not children(server.pid)
