"""What definitions are after a restart, in the past, and for sequences: no value twice."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.stack import serving

SESSIONS = 4
EACH = 40


def _values(dsn: str) -> list[int]:
    found: list[int] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(EACH):
            query = b"insert into t (x) values (1), (2) returning id"
            if number % 3:
                query = b"insert into t (x) select x from u returning id"
            if number % 2:
                connection.execute("begin")
                found += [int(str(row[0])) for row in connection.execute(query)]
                connection.execute("rollback")
            else:
                found += [int(str(row[0])) for row in connection.execute(query)]
    return found


def test_no_value_is_handed_out_twice_also_after_a_restart() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    seen: list[int] = []
    for attempt in range(2):
        with serving(stash=stash, store=store) as dsn:
            if not attempt:
                with psycopg.connect(dsn, autocommit=True) as connection:
                    connection.execute("create table t (id bigserial primary key, x int)")
                    connection.execute("create table u (x int)")
                    connection.execute("insert into u values (1), (2), (3)")
            with ThreadPoolExecutor(SESSIONS) as threads:
                for values in threads.map(_values, [dsn] * SESSIONS):
                    seen += values
        stash, store = stash.crash(), store.crash()
    assert len(seen) == len(set(seen))
    assert len(seen) > SESSIONS * EACH


def test_the_catalog_survives_with_what_it_has() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create table t (id int generated always as identity, a int check (a > 0))")
        one.execute("create sequence s start 7")
        one.execute("alter table t add column g int generated always as (a + 1) stored")
        one.execute("alter table t rename column a to b")
        one.execute("insert into t (b) values (1)")
    with (
        serving(stash=stash.crash(), store=store.crash()) as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
    ):
        one.execute("insert into t (b) values (2)")
        assert one.execute("select b, g from t order by 1").fetchall() == [(1, 2), (2, 3)]
        assert one.execute("select nextval('s')").fetchall() == [(7,)]
        with pytest.raises(psycopg.errors.CheckViolation) as violation:
            one.execute("insert into t (b) values (-1)")
        assert violation.value.diag.constraint_name == "t_a_check"


def test_the_past_has_the_views_of_its_time() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create table t (a int)")
        one.execute("insert into t values (1)")
        one.execute("create view v as select a as shown from t")
        row = one.execute("select read_ts from meridian.timelines").fetchone()
        assert row is not None
        one.execute("create or replace view v as select a + 1 as shown from t")
        one.execute("alter table t rename column a to b")
        one.execute("insert into t values (5)")
    with (
        serving(stash=stash.crash(), store=store.crash()) as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
    ):
        assert one.execute("select shown from v order by 1").fetchall() == [(2,), (6,)]
        past = f"select shown from v as of {row[0]}"
        assert one.execute(past.encode()).fetchall() == [(1,)]
