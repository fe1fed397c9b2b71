"""What definitions are after a restart, in the past, and for sequences: no value twice."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from coordinator.core.catalog import apply_changes, compact_history, decode_changes
from sql.catalog.catalog import Catalog
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Put
from storage.types import Timestamp
from tests.support.stack import serving

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


def test_a_table_that_was_altered_and_dropped_at_once_can_be_read_as_of_before() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create table t (a int)")
        one.execute("insert into t values (1)")
        (before,) = one.execute("select now()").fetchone() or ()
        with one.transaction():
            one.execute("alter table t add column b int default 5")
            one.execute("drop table t")
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        found = one.execute(f"select * from t as of '{before}'::timestamptz".encode())
        assert found.fetchall() == [(1,)]


def test_an_oid_is_never_given_twice_also_after_a_restart() -> None:
    """Tables, sequences, views, indexes, roles, types and their arrays have their oids from one."""
    stash, store = MemoryStash(), MemoryObjectStore()
    last_of_each = [
        "create sequence s{}",
        "create table t{} (id int generated always as identity)",
        "create view v{} as select 1",
        "create index i{} on t1 (id)",
        "create domain d{} as int",
        "create type e{} as enum ('a')",
        "create role r{}",
    ]
    seen: list[int] = []
    first = last_of_each[1].format(1)
    for number, text in enumerate([*last_of_each[2:], *last_of_each], 2):
        statement = text.format(number)
        with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn) as one:
            for one_of_them in (first, statement) if not seen else (statement,):
                one.execute(one_of_them.encode())
            found = one.execute(
                "select oid from pg_class where oid >= 16384 and relnamespace = 2200"
                " union all select oid from pg_type where oid >= 16384 and typtype in ('e', 'd')"
                " union all select oid from pg_roles where oid >= 16384"
                " union all select typarray from pg_type where oid >= 16384 and typtype = 'e'"
            )
            seen = [int(oid) for (oid,) in found]
        assert len(seen) == len(set(seen)), statement
        stash, store = stash.crash(), store.crash()
    assert len(seen) > len(last_of_each)


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


def test_comments_survive_also_in_a_compacted_history() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create table t (a int primary key, b int check (b > 0))")
        one.execute("create schema s")
        one.execute("comment on table t is 'first'")
        one.execute("comment on table t is 'second'")
        one.execute("comment on column t.b is 'of b'")
        one.execute("comment on constraint t_b_check on t is 'of the check'")
        one.execute("comment on schema s is 'of s'")
        one.execute("comment on database meridian is 'of all'")
    stash = stash.crash()
    records = asyncio.run(stash.scan("catalog"))
    short, _ = compact_history(records, Timestamp(1 << 62))
    kept = {write.key: write.value for write in short if isinstance(write, Put)}
    assert len(kept) < len(records)
    ((_, changes),) = decode_changes(kept)
    made = apply_changes(Catalog(), changes, version=1, replayed=True)
    with (
        serving(stash=stash, store=store.crash()) as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
    ):
        found = one.execute(
            "select description from pg_description where objoid >= 16384 union all"
            " select description from pg_shdescription where objoid ="
            " (select oid from pg_database where datname = 'meridian') order by 1"
        ).fetchall()
    said = ["of all", "of b", "of s", "of the check", "second"]
    assert found == [(text,) for text in said]
    assert sorted(made.comments.values()) == said


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
