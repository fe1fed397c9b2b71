"""psycopg 3: text and binary, prepared statements, pipelines, COPY, transactions, cancel."""

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from tests.clients.drivers.levels import EXPLAIN, STRICT, named_level


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as opened:
        yield opened


COLUMNS = """b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(12,3), t text,
 v varchar(8), c char(4), d date, ts timestamp, tz timestamptz, x bytea, u uuid"""

ROWS = [
    (
        True, -3, 2**31 - 1, -(2**63), 1.5, 1e300, Decimal("-12345.678"), "häé\n\"',", "eight888",
        "ab  ", date(1969, 7, 20), datetime(2026, 1, 2, 3, 4, 5, 678901),
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), b"\x00\xff\\", UUID(int=7),
    ),
    (None,) * 15,
]  # fmt: skip


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_values_of_all_types_make_the_round_trip(
    connection: psycopg.Connection, binary: bool
) -> None:
    table = f"types_{'binary' if binary else 'text'}"
    connection.execute(f"create table {table} (k int4, {COLUMNS})")
    marker = "%b" if binary else "%t"
    values = ", ".join([marker] * 16)
    with connection.cursor(binary=binary) as cursor:
        for key, row in enumerate(ROWS):
            cursor.execute(f"insert into {table} values ({values})", (key, *row))
            assert cursor.statusmessage == "INSERT 0 1"
        cursor.execute(f"select * from {table} order by k")
        assert cursor.fetchall() == [(key, *row) for key, row in enumerate(ROWS)]


def test_prepared_statements_are_used_again(connection: psycopg.Connection) -> None:
    connection.execute("create table prepared_once (a int4)")
    for value in range(12):
        connection.execute("insert into prepared_once values (%s)", (value,), prepare=True)
    total = connection.execute("select sum(a), count(*) from prepared_once").fetchone()
    assert total == (66, 12)


def test_pipeline_is_one_transaction_up_to_its_sync(connection: psycopg.Connection) -> None:
    connection.execute("create table piped (a int4 not null)")
    with connection.pipeline():
        for value in range(5):
            connection.execute("insert into piped values (%s)", (value,))
    assert connection.execute("select count(*) from piped").fetchone() == (5,)
    with pytest.raises(errors.NotNullViolation):
        _insert_in_a_pipeline(connection, "7", "null")
    assert connection.execute("select count(*) from piped where a = 7").fetchone() == (0,)


def _insert_in_a_pipeline(connection: psycopg.Connection, *values: str) -> None:
    with connection.pipeline():
        for value in values:
            connection.execute(f"insert into piped values ({value})")


def test_copy_both_ways(connection: psycopg.Connection) -> None:
    connection.execute("create table copied (a int4, b text)")
    rows = [(number, f"row {number}\t\\ ") for number in range(1000)]
    with connection.cursor() as cursor:
        with cursor.copy("copy copied from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        assert cursor.statusmessage == "COPY 1000"
        with cursor.copy("copy (select * from copied order by a) to stdout") as copy:
            copy.set_types(["int4", "text"])
            assert list(copy.rows()) == rows


def test_copy_that_fails_leaves_nothing_and_a_usable_connection(
    connection: psycopg.Connection,
) -> None:
    connection.execute("create table copied_badly (a int4)")
    with (
        pytest.raises(errors.InvalidTextRepresentation) as refused,
        connection.cursor() as cursor,
        cursor.copy("copy copied_badly from stdin") as copy,
    ):
        copy.write("1\n2\nthree\n")
    assert refused.value.diag.context is not None
    assert "COPY copied_badly, line 3, column a" in refused.value.diag.context
    with pytest.raises(ZeroDivisionError):
        _give_up(connection)
    assert connection.execute("select count(*) from copied_badly").fetchone() == (0,)


def _give_up(connection: psycopg.Connection) -> None:
    with connection.cursor() as cursor, cursor.copy("copy copied_badly from stdin") as copy:
        copy.write("1\n")
        raise ZeroDivisionError("the client gives up")


def test_transactions_and_their_errors(connection: psycopg.Connection) -> None:
    connection.execute("create table accounts (id int4, amount int8)")
    with connection.transaction():
        connection.execute("insert into accounts values (1, 10), (2, 20)")
    with pytest.raises(ZeroDivisionError):
        _ruin(connection)
    total = connection.execute("select sum(amount) from accounts").fetchone()
    assert total == (30,)
    with pytest.raises(errors.UndefinedTable) as refused:
        connection.execute("select 1 from nowhere")
    assert refused.value.diag.statement_position == "15"


def _ruin(connection: psycopg.Connection) -> None:
    with connection.transaction():
        connection.execute("update accounts set amount = 0")
        raise ZeroDivisionError


def _insert_and_fail(connection: psycopg.Connection) -> None:
    with connection.transaction():
        connection.execute("insert into nested values (2)")
        connection.execute("select 1/0")


def test_transactions_within_transactions(connection: psycopg.Connection) -> None:
    connection.execute("create table nested (a int4)")
    with connection.transaction():
        connection.execute("insert into nested values (1)")
        with pytest.raises(errors.DivisionByZero):
            _insert_and_fail(connection)
        with connection.transaction() as inner:
            connection.execute("insert into nested values (3)")
            raise psycopg.Rollback(inner)
        with connection.transaction(), connection.transaction():
            connection.execute("insert into nested values (4)")
    assert connection.execute("select a from nested order by a").fetchall() == [(1,), (4,)]


def test_cursors_of_the_server(connection: psycopg.Connection) -> None:
    connection.execute("create table walked (a int4)")
    connection.execute("insert into walked values (1), (2), (3), (4), (5)")
    query = "select a from walked where a > %s order by a"
    with connection.transaction():
        with connection.cursor("forward") as cursor:
            cursor.itersize = 2
            cursor.execute(query, (1,))
            assert list(cursor) == [(2,), (3,), (4,), (5,)]
        with connection.cursor("both", scrollable=True) as cursor:
            cursor.execute(query, (0,))
            assert cursor.fetchmany(2) == [(1,), (2,)]
            cursor.scroll(1)
            assert cursor.fetchone() == (4,)
            cursor.scroll(0, mode="absolute")
            assert cursor.fetchall() == [(1,), (2,), (3,), (4,), (5,)]
    with connection.cursor("held", withhold=True) as cursor:
        cursor.execute(query, (3,))
        connection.execute("delete from walked")
        assert cursor.fetchall() == [(4,), (5,)]


def test_isolation_by_the_driver(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        shown = {}
        for level in psycopg.IsolationLevel:
            connection.isolation_level = level
            row = connection.execute("show transaction_isolation").fetchone()
            assert row is not None
            shown[level.name] = row[0]
            connection.rollback()
        assert shown == {
            "READ_UNCOMMITTED": "read uncommitted",
            "READ_COMMITTED": "read committed",
            "REPEATABLE_READ": "repeatable read",
            "SERIALIZABLE": "serializable",
        }
        connection.read_only = True
        with pytest.raises(errors.ReadOnlySqlTransaction):
            connection.execute("create table never (a int4)")


def test_the_level_is_read_and_set_back(connection: psycopg.Connection) -> None:
    def in_force() -> str:
        return named_level(line for (line,) in connection.execute(EXPLAIN).fetchall())

    shown = connection.execute("show transaction_isolation").fetchone()
    assert shown == ("serializable",)
    connection.isolation_level = psycopg.IsolationLevel[shown[0].upper()]
    with connection.transaction():
        assert in_force() == STRICT
    connection.isolation_level = None
    for name in ("default_transaction_isolation", "transaction_isolation"):
        connection.execute("begin")
        connection.execute(f"set {name} = '{shown[0]}'".encode())
        assert in_force() == STRICT
        connection.execute("commit")
    assert in_force() == STRICT


def test_write_conflict_is_a_serialization_failure(dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        second.execute("create table contended (a int4)")
        second.execute("insert into contended values (1)")
        assert first.execute("select a from contended").fetchone() == (1,)
        second.execute("update contended set a = a + 10")
        with pytest.raises(errors.SerializationFailure):
            first.execute("update contended set a = a + 1")
        first.rollback()
        assert second.execute("select a from contended").fetchone() == (11,)


def test_concurrent_updates_retry_by_themselves(dsn: str) -> None:
    clients, rounds = 4, 5
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table counter (n int4)")
        connection.execute("insert into counter values (0)")

        def count() -> None:
            with psycopg.connect(dsn, autocommit=True) as own:
                for _ in range(rounds):
                    own.execute("update counter set n = n + 1")

        threads = [threading.Thread(target=count) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert connection.execute("select n from counter").fetchone() == (clients * rounds,)


def test_server_side_parameters_without_types(connection: psycopg.Connection) -> None:
    row = connection.execute("select %s::int8 + 1, %s || 'x', %s::date", (1, "a", "2026-01-02"))
    assert row.fetchone() == (2, "ax", date(2026, 1, 2))


def test_notices_reach_the_client(connection: psycopg.Connection) -> None:
    heard: list[str | None] = []
    connection.add_notice_handler(lambda notice: heard.append(notice.message_primary))
    connection.execute("drop table if exists never_there")
    assert heard == ['table "never_there" does not exist, skipping']


def test_results_name_columns_by_the_numbers_of_the_catalog(
    connection: psycopg.Connection,
) -> None:
    connection.execute("create table numbered (a int, b int)")
    connection.execute("alter table numbered drop column a, add column c int")
    numbers = (
        "select attnum from pg_attribute where attname = %s and attrelid = 'numbered'::regclass"
    )
    for query in ("select b, c from numbered", "insert into numbered values (1, 2) returning b, c"):
        result = connection.execute(query.encode()).pgresult
        assert result is not None
        for place, name in enumerate("bc"):
            told = (result.ftablecol(place),)
            assert connection.execute(numbers, (name,)).fetchone() == told
    connection.execute("drop table numbered")


def test_other_databases_do_not_exist(dsn: str) -> None:
    with pytest.raises(psycopg.OperationalError, match='database "other" does not exist'):
        psycopg.connect(dsn, dbname="other")


def test_unknown_settings_at_startup_are_fatal(dsn: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="unrecognized configuration parameter"):
        psycopg.connect(dsn, options="-c nonsense=1")
    with psycopg.connect(dsn, options="-c TimeZone=Asia/Tokyo") as connection:
        assert connection.execute("show timezone").fetchone() == ("Asia/Tokyo",)


def test_notifications_reach_who_listens(connection: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("listen psycopg_jobs")
        with connection.transaction():
            connection.execute("notify psycopg_jobs, 'first'")
            connection.execute("select pg_notify(%s, %s)", ("psycopg_jobs", "zweite ä"))
            connection.execute("notify psycopg_jobs, 'first'")
        with pytest.raises(ZeroDivisionError):
            _notify_and_fail(connection)
        connection.execute("notify psycopg_jobs")
        heard = list(other.notifies(timeout=20, stop_after=3))
        assert [(n.channel, n.payload, n.pid) for n in heard] == [
            ("psycopg_jobs", payload, connection.info.backend_pid)
            for payload in ("first", "zweite ä", "")
        ]
        # In a pipeline they come at its end.
        told: list[str] = []
        other.add_notify_handler(lambda notification: told.append(notification.payload))
        with other.pipeline():
            other.execute("select pg_notify('psycopg_jobs', 'own')")
            other.execute("select 1")
        assert told == ["own"]


def _notify_and_fail(connection: psycopg.Connection) -> None:
    with connection.transaction():
        connection.execute("notify psycopg_jobs, 'rolled back'")
        raise ZeroDivisionError
