"""Clients that follow and do what no driver does: garbage, half-closed sockets, no reading."""

import struct
import threading
from collections.abc import Iterator

import psycopg
import pytest

from coordinator.config import Settings
from coordinator.pgwire.messages import CommandComplete, DataRows, ErrorResponse, Query
from tests.session.change_streams.followers import cancel, subscriptions, until
from tests.support.stack import serving
from tests.support.wire import WireClient, show


@pytest.fixture
def table(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t")
        connection.execute("create table t (a int)")
        connection.execute("insert into t values (1)")
        yield connection


def following(dsn: str, statement: str = "SUBSCRIBE t") -> WireClient:
    client = WireClient(dsn)
    client.send(Query(statement))
    client.answers(0, count=2)  # RowDescription, and a row
    return client


@pytest.mark.parametrize(
    "garbage",
    [b"\0" * 9, b"Q\0\0\0\1", b"Z\xff\xff\xff\xff", b"\x7f" * 300, struct.pack("!ci", b"d", 2**30)],
)
def test_garbage_ends_only_who_sends_it(
    dsn: str, table: psycopg.Connection, garbage: bytes
) -> None:
    with following(dsn) as other, following(dsn) as client:
        client.send_bytes(garbage)
        table.execute("insert into t values (2)")
        (row,) = other.answers(0, count=1)
        assert show(row).endswith("|1|2")
        client.close()
        until(lambda: subscriptions(table) == 1)
    until(lambda: subscriptions(table) == 0)


def test_a_half_closed_socket_is_told_until_it_is_closed(
    dsn: str, table: psycopg.Connection
) -> None:
    with following(dsn) as client:
        client.shut()
        table.execute("insert into t values (2)")
        (row,) = client.answers(0, count=1)
        assert show(row).endswith("|1|2")
    # Nothing is told any more: the server asks whether anybody is there.
    until(lambda: subscriptions(table) == 0)


def test_queries_behind_it_wait_for_its_end(dsn: str, table: psycopg.Connection) -> None:
    with following(dsn) as client:
        client.send(Query("select 7"), Query("select 8"))
        cancel(table)
        told = [show(message) for message in client.answers(3)]
        assert told[0].startswith("ERROR 57014 ")
        assert [line for line in told if line.startswith("DataRow")] == ["DataRow 7", "DataRow 8"]


def test_cancelled_in_the_middle_of_rows_the_connection_goes_on(
    dsn: str, table: psycopg.Connection
) -> None:
    table.execute("create table if not exists wide (b text)")
    with WireClient(dsn) as client:
        client.send(Query("SUBSCRIBE wide"))
        client.answers(0, count=1)  # RowDescription
        # More than the sockets take: the server waits in the middle of a commit.
        table.execute("insert into wide select repeat('x', 1000) from generate_series(1, 50000)")
        client.answers(0, count=10)
        cancel(table)
        answers = client.answers(1)
        rows = sum(isinstance(message, DataRows) for message in answers)
        assert rows > 0
        assert isinstance(answers[-2], ErrorResponse)
        assert dict(answers[-2].fields)["C"] == "57014"
        client.send(Query("select 7"))
        assert any(isinstance(message, CommandComplete) for message in client.answers(1))
    table.execute("drop table wide")


def test_who_reads_nothing_is_ended_in_time() -> None:
    settings = Settings(slow_reader_timeout_s=0.5)
    with serving(settings) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (a int, b text)")
        with WireClient(dsn) as client:
            client.send(Query("SUBSCRIBE t"))
            client.answers(0, count=1)
            connection.execute(
                "insert into t select g, repeat('x', 1000) from generate_series(1, 50000) g"
            )
            until(lambda: subscriptions(connection) == 0)
            held = connection.execute("select kind from meridian.read_holds").fetchall()
            assert ("subscription",) not in held


def test_a_snapshot_that_is_not_read_is_held(table: psycopg.Connection, dsn: str) -> None:
    """Commits to other tables, of which it need not hear, move it only behind its snapshot."""
    table.execute("create table if not exists other (a int)")
    table.execute("create table if not exists wide (b text)")
    table.execute("insert into wide select repeat('x', 1000) from generate_series(1, 50000) g")
    with WireClient(dsn) as client:
        client.send(Query("SUBSCRIBE wide"))
        client.answers(0, count=1)
        for _ in range(20):
            table.execute("insert into other values (1)")
            threading.Event().wait(0.01)  # longer than between two looks at all who sleep
        held = "select s.position = s.as_of, h.ts = s.as_of from meridian.subscriptions s"
        found = table.execute(
            f"{held} join meridian.read_holds h on h.kind = 'subscription'".encode()
        ).fetchall()
    assert found == [(True, True)]
    until(lambda: subscriptions(table) == 0)
    table.execute("drop table wide, other")


def test_copy_in_binary(dsn: str, table: psycopg.Connection) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute("select meridian_now()").fetchone()
        assert found is not None
        begin = int(found[0])
        table.execute("update t set a = null")
        found = connection.execute("select meridian_now()").fetchone()
        assert found is not None
        end = int(found[0])
        subscribe = f"SUBSCRIBE t WITH (PROGRESS) AS OF {begin} UP TO {end + 1}"
        copy_statement = f"COPY ({subscribe}) TO STDOUT (FORMAT binary)".encode()
        with connection.cursor().copy(copy_statement) as copy:
            copy.set_types(["int8", "bool", "int8", "int4"])
            told = list(copy.rows())
    assert told == [
        (begin, False, 1, 1),
        (begin + 1, True, None, None),
        (end, False, -1, 1),
        (end, False, 1, None),
        (end + 1, True, None, None),
    ]
