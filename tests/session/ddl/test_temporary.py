"""Temporary relations: each session's own, and gone with it, also when nobody said goodbye."""

import time
from pathlib import Path

import psycopg
import pytest

from tests.support.servers import meridian
from tests.support.stack import serving

LOOKS_MAX = 2_000
LEFT = (
    "select nspname from pg_namespace where nspname like 'pg_temp%'"
    " union all select relname from pg_class where relpersistence = 't'"
)

Connection = psycopg.Connection[tuple[object, ...]]


def _connect(dsn: str) -> Connection:
    return psycopg.connect(dsn, autocommit=True)


def _rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query.encode()).fetchall()


def _wait_until_gone(connection: Connection) -> None:
    """A session ends after its client has gone, as PostgreSQL's do."""
    for _ in range(LOOKS_MAX):
        if not _rows(connection, LEFT):
            return
        time.sleep(0.005)
    raise AssertionError(_rows(connection, LEFT))


def test_each_session_has_its_own() -> None:
    with serving() as dsn, _connect(dsn) as one, _connect(dsn) as two:
        one.execute("create table t (a int)")
        for connection, value in ((one, 1), (two, 2)):
            connection.execute("create temp table t (a int primary key)")
            connection.execute("create temp sequence s start 5")
            connection.execute("create temp view v as select a from t")
            # The same texts in both: what one of them was bound to is not the other's.
            for _ in range(2):
                connection.execute("insert into public.t values (0)")
                connection.execute("delete from t")
                connection.execute(f"insert into t values ({value})".encode())
                connection.execute("insert into t values (9)")
        assert _rows(one, "select a from v order by a") == [(1,), (9,)]
        assert _rows(two, "select a from v order by a") == [(2,), (9,)]
        assert _rows(one, "select nextval('s')") == _rows(two, "select nextval('s')") == [(5,)]
        shown = "select count(*) from information_schema.columns where table_name in ('t', 'v')"
        # The permanent one, and one's own table and view.
        assert _rows(one, shown) == _rows(two, shown) == [(3,)]
        ((schema,),) = _rows(
            two, "select nspname from pg_namespace where oid = pg_my_temp_schema()"
        )
        for statement in (
            f"select * from {schema}.t",
            f"insert into {schema}.t values (3)",
            f"drop table {schema}.t",
            f"create table {schema}.u (a int)",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="other sessions"):
                one.execute(statement.encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            one.execute(f"drop schema {schema} cascade".encode())
        one.execute("drop table t cascade")
        assert len(_rows(one, "select a from t")) == 4
        assert _rows(two, "select a from v order by a") == [(2,), (9,)]


def test_plans_are_not_shared_between_those_who_have_one_and_those_who_have_not() -> None:
    with serving() as dsn, _connect(dsn) as one, _connect(dsn) as two:
        one.execute("create table t (a int)")
        for _ in range(3):
            two.execute("insert into t values (1)")
        one.execute("create temp table t (b text, a int) on commit preserve rows")
        for _ in range(3):
            one.execute("insert into t values (1)")
            two.execute("insert into t values (1)")
        assert _rows(one, "select * from t") == [("1", None)] * 3
        assert _rows(two, "select * from t") == [(1,)] * 6
        one.execute("drop table t")
        one.execute("insert into t values (1)")
        assert len(_rows(two, "select * from t")) == 7


def test_what_a_session_leaves_goes_with_it() -> None:
    with serving() as dsn, _connect(dsn) as other:
        other.execute("create table t (a int)")
        one = _connect(dsn)
        one.execute("create temp table t (a serial, b int check (b > 0))")
        one.execute("insert into t (b) values (1)")
        one.execute("create index on t (b)")
        one.execute("create view v as select * from t")
        one.execute("create temp sequence s")
        one.execute("alter table public.t alter column a set default nextval('s')")
        one.execute("begin")
        one.execute("create temp table u (a int)")
        one.close()
        _wait_until_gone(other)
        other.execute("insert into t default values")
        assert _rows(other, "select * from t") == [(None,)]


def test_what_commit_ends() -> None:
    with serving() as dsn, _connect(dsn) as one:
        one.execute("create temp table e (a int primary key) on commit delete rows")
        for _ in range(2):
            one.execute("insert into e values (1)")
            assert _rows(one, "select * from e") == []
            with one.transaction():
                one.execute("insert into e select x from generate_series(1, 100) as x")
                assert _rows(one, "select count(*) from e") == [(100,)]
            with pytest.raises(psycopg.errors.UniqueViolation):
                one.execute("insert into e values (1), (1)")
            assert _rows(one, "select * from e") == []
        with one.cursor().copy("copy e from stdin") as copy:
            copy.write("7\n")
        assert _rows(one, "select * from e") == []
        one.execute("begin isolation level read committed")
        one.execute("create temp table d (a serial) on commit drop")
        one.execute("insert into d default values")
        one.execute("commit")
        with pytest.raises(psycopg.errors.UndefinedTable):
            one.execute("select * from d")
        left = "select relname from pg_class where relname in ('d', 'd_a_seq')"
        assert _rows(one, left) == []


def test_what_a_crash_leaves_is_gone_before_anybody_is_served(tmp_path: Path) -> None:
    with meridian(tmp_path, ["--spark-master", "none"]) as server:
        with _connect(server.dsn) as one:
            one.execute("set engine = local")
            one.execute("create table t (a int, b text)")
            one.execute("insert into t select x, 'n' || x from generate_series(1, 1000) as x")
            one.execute("create temp table w as select a from t where a % 2 = 0")
            one.execute("create index on w (a)")
            one.execute("create temp table u (a serial primary key)")
            one.execute("create view v as select a from w")
            found = _rows(one, "select count(*), min(t.b) from t join v using (a)")
            assert found == [(500, "n10")]
            one.execute("delete from w where a > 10")
            assert _rows(one, "select sum(a) from w") == [(30,)]
            ((before,),) = _rows(one, "select read_ts from meridian.timelines")
            server.kill()
        assert server.check().returncode == 0
        server.start()
        with _connect(server.dsn) as one:
            assert _rows(one, LEFT) == []
            assert _rows(one, "select count(*) from t") == [(1000,)]
            one.execute("create temp table mine (a int)")
            # Not even in the past is it anybody else's.
            with pytest.raises(psycopg.errors.UndefinedTable):
                one.execute(f"select * from w as of {before}".encode())
        server.stop()
        assert server.check().returncode == 0
