"""Sources that stand: what they say, and how a person lets them go on at the same record."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.ingest.sources.asking import refusal, rows
from tests.ingest.upstream_database import UpstreamDatabase
from tests.session.change_streams.followers import until

STANDS = "select state, code, reason, hint, place from meridian.sources"


def broken(client: psycopg.Connection) -> tuple[Any, ...]:
    """What the source says once it is broken: code, reason, hint, place."""
    until(lambda: rows(client, STANDS)[0][0] == "broken")
    ((_, *told),) = rows(client, STANDS)
    return tuple(told)


def newest(client: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    """With all that upstream has."""
    client.execute("set real_time_recency = on")
    try:
        return rows(client, query)
    finally:
        client.execute("reset real_time_recency")


@pytest.fixture
def fed(connected: psycopg.Connection, database: UpstreamDatabase) -> psycopg.Connection:
    database.execute(
        "CREATE TABLE t (at date PRIMARY KEY, a int, b text)",
        "INSERT INTO t VALUES ('2020-01-01', 1, 'x')",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    connected.execute("create source s from postgres connection c (publication 'p')")
    connected.execute("create table t from source s (reference 'public.t')")
    assert rows(connected, "select a, b from t") == [(1, "x")]
    return connected


def test_a_record_whose_key_cannot_be_read_is_skipped_by_a_person(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    assert refusal(fed, "alter source s skip record") == (
        "55000",
        'source "s" is at no record to skip',
    )
    database.execute("INSERT INTO t VALUES ('2020-01-02', 2, 'y'), ('infinity', 3, 'z')")
    database.execute("INSERT INTO t VALUES ('2020-01-04', 4, 'w')")
    code, reason, hint, place = broken(fed)
    assert code == "22008"
    assert "key of a row of public.t cannot be read" in reason
    assert "SKIP RECORD" in hint
    assert place["row"] == 2
    # Nothing of its transaction is here, and trying again changes nothing.
    assert rows(fed, "select a from t") == [(1,)]
    fed.execute("alter source s resume")
    assert broken(fed)[3] == place
    fed.execute("begin")
    fed.execute("alter source s skip record")
    fed.execute("rollback")
    assert broken(fed)[3] == place
    fed.execute("alter source s skip record")
    assert newest(fed, "select a from t order by a") == [(1,), (2,), (4,)]
    found = rows(fed, "select table_name, place, key, code, resolved from s_errors")
    assert found == [("t", place, None, code, None)]


def test_a_column_that_is_gone_upstream_is_dropped_here(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    database.execute(
        "ALTER TABLE t ADD COLUMN c int",
        "INSERT INTO t VALUES ('2020-01-02', 2, 'y', 9)",
        "ALTER TABLE t DROP COLUMN b",
        "INSERT INTO t VALUES ('2020-01-03', 3, 9)",
    )
    code, reason, _, place = broken(fed)
    assert (code, place) == ("42703", None)
    assert 'column "b"' in reason
    assert rows(fed, "select a, b from t order by a") == [(1, "x"), (2, "y")]
    assert refusal(fed, "alter table t drop column at")[0] == "0A000"
    assert refusal(fed, "alter table t add column z int")[0] == "0A000"
    assert refusal(fed, "alter table t alter column a type bigint")[0] == "0A000"
    fed.execute("alter table t drop column b")
    assert newest(fed, "select * from t order by a")[2][1:] == (3,)
    database.execute("UPDATE t SET a = 5 WHERE a = 1", "DELETE FROM t WHERE a = 2")
    assert newest(fed, "select a from t order by a") == [(3,), (5,)]


def test_columns_may_be_called_otherwise_here(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    fed.execute("alter table t rename column b to what")
    fed.execute("alter table t rename column at to day")
    database.execute("UPDATE t SET b = 'y'", "INSERT INTO t VALUES ('2020-01-02', 2, 'z')")
    assert newest(fed, "select what from t order by day") == [("y",), ("z",)]
    database.execute("ALTER TABLE t ALTER COLUMN b TYPE int USING 7")
    database.execute("INSERT INTO t VALUES ('2020-01-03', 3, 8)")
    # Its values fit: every int is a text.
    assert newest(fed, "select what from t order by day")[2] == ("8",)
    database.execute("ALTER TABLE t ALTER COLUMN a TYPE bigint")
    database.execute("INSERT INTO t VALUES ('2020-01-05', 1, 1)")
    _, reason, _, _ = broken(fed)
    assert "integer" in reason
    assert "bigint" in reason


def test_lag_and_positions_are_shown(fed: psycopg.Connection, database: UpstreamDatabase) -> None:
    database.execute("INSERT INTO t VALUES ('2020-01-02', 2, 'y')")
    assert newest(fed, "select count(*) from t") == [(2,)]
    ((connection, upstream, position, lag),) = rows(
        fed, "select connection, upstream, position, lag_bytes from meridian.sources"
    )
    assert connection == "c"
    assert upstream["lsn"] >= position["lsn"] > 0
    assert 0 <= lag <= upstream["lsn"]
    ((hydrated,),) = rows(fed, "select hydrated_at < now() from meridian.source_tables")
    assert hydrated


def test_a_record_that_does_not_fit_stops_who_wants_that(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    """And so do too many of them."""
    database.execute("ALTER TABLE t ADD COLUMN c date", "UPDATE t SET c = '2021-01-01'")
    fed.execute("drop source s cascade")
    fed.execute(
        "create source s from postgres connection c (publication 'p') with (on_error = 'stop')"
    )
    fed.execute("create table t from source s (reference 'public.t')")
    assert rows(fed, "select a from t") == [(1,)]
    database.execute(
        "INSERT INTO t VALUES ('2020-01-02', 2, 'y', NULL), ('2020-01-03', 3, 'z', 'infinity')"
    )
    code, reason, hint, place = broken(fed)
    assert code == "22008"
    assert 'column "c"' in reason
    assert "SKIP RECORD" in hint
    assert place["row"] == 2
    assert rows(fed, "select a from t") == [(1,)]
    fed.execute("alter source s skip record")
    assert newest(fed, "select a from t order by a") == [(1,), (2,)]
    fed.execute("alter source s set (on_error = 'record', error_limit = 1)")
    database.execute("UPDATE t SET c = 'infinity' WHERE a < 3")
    code, reason, hint, place = broken(fed)
    assert (code, place) == ("54000", None)
    assert "more than 1 records" in reason
    fed.execute("alter source s set (error_limit = 2)")
    assert newest(fed, "select a from t order by a") == []
    assert rows(fed, "select count(*) from s_errors") == [(3,)]
    # What is copied has to fit, too: beside the source, and at first.
    fed.execute("alter source s set (on_error = 'stop')")
    fed.execute("alter source s resnapshot")
    assert broken(fed)[:2] == ("22000", "3 rows cannot be read")
    assert rows(fed, "select count(*) from s_errors") == [(3,)]
    fed.execute("drop source s cascade")
    fed.execute(
        "create source s from postgres connection c (publication 'p') with (on_error = 'stop')"
    )
    fed.execute("create table t from source s (reference 'public.t')")
    code, reason, hint, _ = broken(fed)
    assert (code, reason) == ("22000", "3 rows cannot be read")
    assert "on_error = 'record'" in hint


def test_errors_that_are_done_with_are_deleted(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    """By whoever may; the source goes on writing to their table, and to no other writes anybody."""
    database.execute("ALTER TABLE t ADD COLUMN c date", "INSERT INTO t (at) VALUES ('2020-02-01')")
    fed.execute("drop source s cascade")
    fed.execute("create source s from postgres connection c (publication 'p')")
    fed.execute("create table t from source s (reference 'public.t')")
    database.execute("UPDATE t SET c = 'infinity'")
    until(lambda: rows(fed, "select count(*) from s_errors") == [(2,)])
    with fed.transaction():
        assert fed.execute("delete from s_errors where code = '22008' and at < now()").rowcount == 2
        # The source does not wait for it, and does not lose to it.
        database.execute("INSERT INTO t VALUES ('2020-03-01', 7, 'w', '-infinity')")
        until(lambda: rows(fed, "select errors from meridian.sources") == [(3,)])
    assert rows(fed, "select count(*) from s_errors") == [(1,)]
    for change in ("insert into s_errors (code) values ('')", "update s_errors set code = ''"):
        assert refusal(fed, change)[0] == "42809"
    assert refusal(fed, "truncate s_errors")[0] == "42809"
    assert refusal(fed, "alter source s clear errors")[0] == "0A000"
    fed.execute("alter source s resnapshot")
    until(lambda: rows(fed, "select count(*) from s_errors") == [(4,)])
    assert fed.execute("delete from s_errors").rowcount == 4
    until(lambda: rows(fed, "select state from meridian.sources") == [("running",)])
