"""pgjdbc: prepared statements (named after five uses), batches, fetch size, errors, COPY."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.clients.drivers.jdbc import fetch_driver, java_sql
from tests.clients.drivers.levels import EXPLAIN, STRICT, named_level

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM with the driver."""
    jar = fetch_driver()
    if jar is None:
        pytest.fail("the pgjdbc JAR is not cached and cannot be fetched")
    with java_sql(jar) as view:
        yield view


@pytest.fixture
def connection(jvm: Any, dsn: str) -> Iterator[Any]:
    address = urlsplit(dsn)
    url = f"jdbc:postgresql://{address.hostname}:{address.port}/meridian"
    opened = jvm.java.sql.DriverManager.getConnection(f"{url}?user=meridian&sslmode=disable")
    yield opened
    opened.close()


def rows(result: Any, *getters: str) -> list[tuple[Any, ...]]:
    """All rows, one getter a column."""
    found: list[tuple[Any, ...]] = []
    while result.next():
        found.append(tuple(getattr(result, name)(at) for at, name in enumerate(getters, 1)))
    return found


def test_prepared_statements_become_named_and_binary(jvm: Any, connection: Any) -> None:
    connection.createStatement().execute(
        "create table jp (a int4, b text, n numeric(10,2), t timestamp)"
    )
    insert = connection.prepareStatement("insert into jp values (?, ?, ?, ?)")
    for number in range(1, 9):
        insert.setInt(1, number)
        insert.setString(2, f"row {number}")
        insert.setBigDecimal(3, jvm.java.math.BigDecimal(f"{number}.25"))
        insert.setNull(4, jvm.java.sql.Types.TIMESTAMP)
        assert insert.executeUpdate() == 1
    select = connection.prepareStatement("select a, b, n::text from jp where a > ? order by a")
    for _ in range(7):
        select.setInt(1, 6)
        assert rows(select.executeQuery(), "getInt", "getString", "getString") == [
            (7, "row 7", "7.25"),
            (8, "row 8", "8.25"),
        ]


def test_batches_and_fetch_size_in_a_transaction(connection: Any) -> None:
    connection.createStatement().execute("create table jb (a int8)")
    connection.setAutoCommit(False)
    batch = connection.prepareStatement("insert into jb values (?)")
    for number in range(50):
        batch.setLong(1, number)
        batch.addBatch()
    assert list(batch.executeBatch()) == [1] * 50
    connection.commit()
    statement = connection.createStatement()
    statement.setFetchSize(7)
    result = statement.executeQuery("select a from jb order by a")
    assert rows(result, "getLong") == [(number,) for number in range(50)]
    connection.rollback()


def test_errors_have_their_sqlstate(connection: Any) -> None:
    from py4j.protocol import Py4JJavaError

    connection.setAutoCommit(False)
    statement = connection.createStatement()
    with pytest.raises(Py4JJavaError) as refused:
        statement.executeQuery("select 1/0")
    assert refused.value.java_exception.getSQLState() == "22012"
    with pytest.raises(Py4JJavaError) as refused:
        statement.executeQuery("select 1")
    assert refused.value.java_exception.getSQLState() == "25P02"
    connection.rollback()
    assert rows(statement.executeQuery("select 1"), "getInt") == [(1,)]


def test_copy(jvm: Any, connection: Any) -> None:
    connection.createStatement().execute("create table jc (a int4, b text)")
    manager = jvm.org.postgresql.copy.CopyManager(connection)
    data = jvm.java.io.StringReader("1,one\n2,two\n")
    assert manager.copyIn("copy jc from stdin (format csv)", data) == 2
    written = jvm.java.io.StringWriter()
    assert manager.copyOut("copy (select * from jc order by a) to stdout", written) == 2
    assert written.toString() == "1\tone\n2\ttwo\n"


def test_metadata_of_a_result(connection: Any) -> None:
    result = connection.createStatement().executeQuery("select 1::int8 as n, 'x'::varchar(5) as v")
    described = result.getMetaData()
    assert [described.getColumnTypeName(place) for place in (1, 2)] == ["int8", "varchar"]
    assert described.getPrecision(2) == 5


def test_the_level_is_read_and_set_back(jvm: Any, connection: Any) -> None:
    def in_force() -> str:
        result = connection.createStatement().executeQuery(EXPLAIN)
        return named_level(line for (line,) in rows(result, "getString"))

    levels = jvm.java.sql.Connection
    shown = connection.getTransactionIsolation()
    assert shown == levels.TRANSACTION_SERIALIZABLE
    connection.setTransactionIsolation(levels.TRANSACTION_READ_UNCOMMITTED)
    assert connection.getTransactionIsolation() == levels.TRANSACTION_READ_UNCOMMITTED
    assert in_force() == "read committed"
    connection.setTransactionIsolation(shown)
    assert connection.getTransactionIsolation() == shown
    assert in_force() == STRICT
    connection.setAutoCommit(False)
    assert in_force() == STRICT
    connection.rollback()


def test_notifications_are_polled(connection: Any, jvm: Any, dsn: str) -> None:
    connection.createStatement().execute("listen jdbc_jobs")
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("begin; notify jdbc_jobs, 'one'; notify jdbc_jobs, 'one'; commit")
        other.execute("select pg_notify('jdbc_jobs', 'two')")
        heard: list[tuple[int, str, str]] = []
        while len(heard) < 2:
            heard += [
                (told.getPID(), told.getName(), told.getParameter())
                for told in connection.getNotifications(20_000) or ()
            ]
        pid = other.info.backend_pid
        assert heard == [(pid, "jdbc_jobs", "one"), (pid, "jdbc_jobs", "two")]
