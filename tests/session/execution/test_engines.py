"""`SET engine`: which engine runs a statement, and what EXPLAIN says."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pyarrow as pa
import pytest

from compute.executor import EngineUnavailable
from compute.reference.executor import ReferenceExecutor
from coordinator.server.engines import LateEngine
from tests.support.servers import Meridian, meridian

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module", params=["reference", "none"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with two engines, and one that has the local engine only."""
    options = ("--spark-master", request.param, "--set", "inline_bytes_max=4096")
    with meridian(tmp_path_factory.mktemp("engines"), options) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table t (a int, b text, c numeric(10,2), d timestamptz)")
            connection.execute("insert into t values (1, 'x', 1.5, '2024-03-31 01:30+00')")
            for n in range(2, 4):
                # Large enough to be staged as files.
                connection.execute("insert into t select %s, %s, 2.25", (n, "y" * 5000))
            connection.execute("create table pairs (a int, other int)")
            connection.execute("insert into pairs values (1, 10), (3, 30), (4, 40)")
        yield server, request.param


@pytest.fixture
def connection(server: Any) -> Iterator[Connection]:
    with psycopg.connect(server[0].dsn, autocommit=True) as connection:
        connection.execute("set engine = local")
        yield connection


REFUSED = "select array_agg(distinct a * interval '1 day') from t"
"""What the local engine does not do."""


def engine_of(connection: Connection, text: str) -> str:
    *_, (line,) = connection.execute(cast("Any", f"explain {text}")).fetchall()
    return str(line)


def test_explain_says_which_engine_and_why(server: Any, connection: Connection) -> None:
    other = "local" if server[1] == "none" else "reference"
    query = "select length(b) from t"
    assert engine_of(connection, query) == "Engine: local"
    assert engine_of(connection, "select 1") == "Engine: reference"
    connection.execute("set engine = spark")
    why = " (this server has no Spark)" if other == "local" else ""
    assert engine_of(connection, query) == f"Engine: {other}{why}"
    connection.execute("set engine = auto")
    if other == "local":
        assert engine_of(connection, query) == (
            "Engine: local (auto: the only engine of this server)"
        )
        return
    assert engine_of(connection, query) == (
        "Engine: local (auto: it has every function, and the inputs fit)"
    )
    what = "DISTINCT of values of type interval on the local engine is not supported"
    line = f"Engine: reference (auto: {what})"
    refused = REFUSED
    assert engine_of(connection, refused) == line
    connection.execute("create table if not exists many_rows (a numeric)")
    connection.execute("insert into many_rows values (1), (2), (3), (4), (5), (6), (7), (8)")
    for _ in range(4):
        connection.execute("insert into many_rows select x.a from many_rows x, pairs, pairs p")
    assert engine_of(connection, "select sum(a) from many_rows").startswith("Engine: local")
    assert engine_of(connection, "select sqrt(a) from many_rows") == (
        "Engine: reference (auto: functions that the local engine computes row by row)"
    )
    connection.execute("create table if not exists few (a int)")
    few = engine_of(connection, "select a from few")
    assert few == "Engine: reference (auto: a few rows in memory)"


def test_verbose_shows_the_statement_of_the_engine(connection: Connection) -> None:
    text = "explain (verbose) select a from t where b >= 'x'"
    lines = [line for (line,) in connection.execute(cast("Any", text)).fetchall()]
    (statement,) = [line for line in lines if line.startswith("Engine SQL: ")]
    assert '"t"' in statement
    assert "'x'" not in statement, "values are bound"
    assert lines[-1] == "Engine: local"


def test_the_setting(connection: Connection) -> None:
    assert connection.execute("show engine").fetchall() == [("local",)]
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute("set engine = duckdb")
    connection.execute("reset engine")
    assert connection.execute("show engine").fetchall() == [("auto",)]


def test_joins_aggregates_and_parameters(connection: Connection) -> None:
    text = (
        "select t.a, other, sum(c) over_all, count(*) filter (where b like 'y%%') from t"
        " left join pairs on t.a = pairs.a where t.a >= %s group by t.a, other order by t.a desc"
    )
    found = connection.execute(text, (1,)).fetchall()
    assert [(a, other, str(total), count) for a, other, total, count in found] == [
        (3, 30, "2.25", 1), (2, None, "2.25", 1), (1, 10, "1.50", 0),
    ]  # fmt: skip


def test_time_zones(connection: Connection) -> None:
    text = "select d::text, d::date::text, d at time zone 'America/New_York' from t where a = 1"
    for zone, shown, day in (
        ("Europe/Berlin", "2024-03-31 03:30:00+02", "2024-03-31"),
        ("America/Los_Angeles", "2024-03-30 18:30:00-07", "2024-03-30"),
        ("UTC", "2024-03-31 01:30:00+00", "2024-03-31"),
    ):
        connection.execute(cast("Any", f"set timezone = '{zone}'"))
        [(text_, date, local)] = connection.execute(cast("Any", text)).fetchall()
        assert (text_, date, str(local)) == (shown, day, "2024-03-30 21:30:00")


def test_a_transaction_sees_its_own_writes(connection: Connection) -> None:
    def state() -> list[Any]:
        return connection.execute("select a, length(b) from t order by a").fetchall()

    before = state()
    assert before == [(1, 1), (2, 5000), (3, 5000)]
    connection.execute("begin")
    connection.execute("insert into t values (10, 'own')")
    connection.execute("insert into t values (11, %s)", ("z" * 6000,))
    assert state() == [*before, (10, 3), (11, 6000)]
    connection.execute("update t set b = b || '!' where a in (1, 2, 10)")
    assert state() == [(1, 2), (2, 5001), (3, 5000), (10, 4), (11, 6000)]
    connection.execute("delete from t where a = 3 or length(b) = 6000")
    assert state() == [(1, 2), (2, 5001), (10, 4)]
    text = "update t set a = a + 100 where b like 'y%%' returning a, length(b)"
    assert connection.execute(cast("Any", text.replace("%%", "%"))).fetchall() == [(102, 5001)]
    assert state() == [(1, 2), (10, 4), (102, 5001)]
    connection.execute("rollback")
    assert state() == before


def test_errors_have_positions_and_states(connection: Connection) -> None:
    for text, sqlstate in (
        ("select 1 / (a - 1) from t", "22012"),
        ("select b::int from t", "22P02"),
        ("select a + 2147483647 from t", "22003"),
        (REFUSED, "0A000"),
        ("select (select a from t)", "21000"),
    ):
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(cast("Any", text))
        assert caught.value.sqlstate == sqlstate, text


def test_a_query_can_be_cancelled(server: Any, connection: Connection) -> None:
    connection.execute("create table if not exists many (a int8)")
    connection.execute("insert into many values (1), (2), (3), (4), (5), (6), (7), (8)")
    for _ in range(4):
        connection.execute("insert into many select x.a * 8 + y.a from many x, pairs y")
    text = "select count(*) from many a, many b, many c, many d where a.a * b.a % 7 = c.a * d.a % 5"
    timer = threading.Timer(0.3, connection.cancel)
    timer.start()
    try:
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(text)
    finally:
        timer.join()
    connection.execute("set statement_timeout = '300ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(text)
    assert connection.execute("select count(*) > 0 from many where a > 0").fetchall() == [(True,)]
    assert isinstance(server[0], Meridian)


def test_an_engine_that_could_not_be_made_is_made_by_the_next_who_asks() -> None:
    """Whatever went wrong: a disk is not full for ever."""
    failures: list[Exception] = [OSError(28, "full"), EngineUnavailable("no JVM")]
    engine = ReferenceExecutor(lambda _shard, _file: pa.table({}))

    def make() -> ReferenceExecutor:
        if failures:
            raise failures.pop()
        return engine

    async def story() -> None:
        late = LateEngine("late", make)
        with pytest.raises(EngineUnavailable):
            await late.warm()
        with pytest.raises(OSError, match="full"):
            await late.warm()
        assert await late.warm() is engine
        await late.close()

    asyncio.run(story())
