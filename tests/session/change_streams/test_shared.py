"""Subscribers of one statement are told one step: each in its own formats, settings, parameters."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from tests.session.change_streams.followers import now


@pytest.fixture
def table(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t")
        yield connection


def told(
    dsn: str,
    statement: str,
    values: Sequence[object] = (),
    *,
    binary: bool = False,
    setup: str = "",
) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        if setup:
            connection.execute(setup.encode())
        cursor = connection.cursor(binary=binary)
        return [row[1:] for row in cursor.execute(statement.encode(), values).fetchall()]


def test_a_step_too_large_to_share_is_told_batch_by_batch(
    dsn: str, table: psycopg.Connection
) -> None:
    table.execute("create table t (a int, b text)")
    begin = now(table)
    for part in range(8):
        table.execute(
            "insert into t select %s * 1000 + g, repeat('x', 100) from generate_series(0, 999) g",
            (part,),
        )
    subscribe = f"SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {begin} UP TO {now(table) + 1}"
    for _ in range(2):
        found = sorted(int(str(row[1])) for row in told(dsn, subscribe))
        assert found == list(range(8000))


def test_each_is_told_in_its_own_way(dsn: str, table: psycopg.Connection) -> None:
    table.execute("create table t (a timestamptz, b text)")
    begin = now(table)
    table.execute("insert into t values ('2026-01-02 03:04:05+00', 'é')")
    text = "SELECT a, b FROM t"
    subscribe = f"SUBSCRIBE ({text}) WITH (SNAPSHOT = false) AS OF {begin} UP TO {now(table) + 1}"
    plain = told(dsn, subscribe)
    assert told(dsn, subscribe, binary=True) == plain
    assert told(dsn, subscribe, setup="set client_encoding = latin1") == plain
    with psycopg.connect(dsn, autocommit=True) as connection:
        shown = set()
        for zone in ("UTC", "Asia/Tokyo", "UTC"):
            connection.execute(f"set timezone = '{zone}'".encode())
            copy = connection.cursor().copy(f"COPY ({subscribe}) TO STDOUT".encode())
            with copy as lines:
                shown.add(bytes(next(iter(lines))).decode().split("\t")[2])
            rows = connection.pgconn.exec_(subscribe.encode())
            shown.add((rows.get_value(0, 2) or b"").decode())
    assert shown == {"2026-01-02 03:04:05+00", "2026-01-02 12:04:05+09"}


def test_each_has_its_own_parameters(dsn: str, table: psycopg.Connection) -> None:
    table.execute("create table t (a int, b int[])")
    begin = now(table)
    table.execute("insert into t values (1, '{1}'), (2, '{2}'), (3, '{3}')")
    end = now(table) + 1
    options = f"WITH (SNAPSHOT = false) AS OF {begin} UP TO {end}"
    for value in (1, 2, 3, 2):
        by_key = told(dsn, f"SUBSCRIBE (SELECT a FROM t WHERE a = %s) {options}", (value,))
        assert by_key == [(1, value)]
        by_list = told(
            dsn, f"SUBSCRIBE (SELECT a FROM t WHERE b = %s::int[]) {options}", ([value],)
        )
        assert by_list == [(1, value)]
