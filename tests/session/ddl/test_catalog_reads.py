"""Reads of the catalog conflict with nobody; definitions that a statement uses stay protected.

    one: begin, looks or uses ── other: changes that, done ── one: writes, commit ─▶ done, or 40001

A story's change is one that the look or use depends on: with `validate_catalog_reads` every look is
refused, too.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.errors import SerializationFailure

from tests.support.connections import GatedStash, all_rows, connected, on_a_loop, waiting
from tests.support.stack import WITHOUT_LOCKS, running, serving

Connection = psycopg.Connection[tuple[Any, ...]]

SETUP = "; ".join(
    (
        "drop schema if exists early, late, n cascade",
        "drop schema public cascade; create schema public",
        "create schema early",
        "create type mood as enum ('ok', 'sad')",
        "create type plain as enum ('ok', 'sad')",
        "create domain positive as int check (value > 0)",
        "create table t (id int, a text)",
        "create table u (id int, a text)",
        "create table numbered (id serial, a text)",
        "create table checked (a text check (a <> 'sad'::mood::text))",
        "create table computed (a int, b int generated always as (a + 1::positive) stored)",
        "create table filled (a int, b text default 'sad'::mood::text || random())",
        "create view v as select id, a from t",
        "create view over as select id, a from v",
        "create sequence q",
        "create index ti on t (id)",
        "insert into t values (1, 'q')",
    )
)

LOOKS = {
    "pg_class": ("select count(*) from pg_class", "create table x (a int)"),
    "information_schema": ("select * from information_schema.tables", "drop table u"),
    "columns of a table": (
        "select attname from pg_attribute where attrelid = 't'::regclass",
        "alter table t add column b int",
    ),
    "a definition as text": (
        "select pg_get_viewdef('v'::regclass)",
        "create or replace view v as select id, a || '!' as a from t",
    ),
    "regclass": ("select 'u'::regclass", "alter table u rename to x"),
    "regclass of what is made anew": (
        "select 'u'::regclass",
        "drop table u; create table u (a int)",
    ),
    "to_regclass of a missing name": ("select to_regclass('x')", "create table x (a int)"),
    "the index of a key": ("select to_regclass('x_pkey')", "create table x (a int primary key)"),
    "regtype": ("select 'mood'::regtype", "alter type mood add value 'new'"),
    "to_regtype of a missing name": ("select to_regtype('x')", "create type x as enum ()"),
    "regnamespace": ("select to_regnamespace('late')", "create schema late"),
    "regrole": ("select 'meridian'::regrole", "create table x (a int)"),
    "privileges": ("select has_table_privilege('u', 'select')", "grant select on u to public"),
    "a serial's sequence": (
        "select pg_get_serial_sequence('numbered', 'id')",
        "alter sequence numbered_id_seq rename to x",
    ),
    "create if not exists, there": ("create table if not exists u (a int)", "drop table u"),
    "create if not exists, a schema": ("create schema if not exists early", "drop schema early"),
    "drop if exists, a table": ("drop table if exists x", "create table x (a int)"),
    "drop if exists, a view": ("drop view if exists x", "create view x as select 1 as a"),
    "drop if exists, a type": ("drop type if exists x", "create type x as enum ('a')"),
    "drop if exists, a sequence": ("drop sequence if exists x", "create sequence x"),
    "drop if exists, in a missing schema": (
        "drop table if exists late.x",
        "create schema late",
    ),
    "an earlier schema of the search path": (
        "set local search_path = early, public; insert into t values (2, 'b')",
        "create table early.t (id int, a text)",
    ),
    "an earlier schema, a type": (
        "set local search_path = early, public; select 'ok'::mood",
        "create type early.mood as enum ('ok')",
    ),
    "an earlier schema, a view": (
        "set local search_path = early, public; insert into u select * from v",
        "create table early.v (id int, a text)",
    ),
    "rows made of the catalog": (
        "insert into u select count(*) from pg_class",
        "create table x (a int)",
    ),
    "a comment": ("comment on table u is 'said'", "alter table u rename to x"),
    "a comment on a type": ("comment on type mood is 'said'", "alter type mood add value 'new'"),
    "a grant": ("grant select on u to public", "alter table u rename to x"),
}
"""What one does, and what the other changes of it."""

USES = {
    "a view": (
        "insert into u select * from v",
        "create or replace view v as select id + 1 as id, a from t",
    ),
    "a view that is dropped": ("insert into u select * from over", "drop view over"),
    "a view below a view": (
        "insert into u select * from over",
        "create or replace view v as select id, a || '!' as a from t",
    ),
    "a view that is renamed": ("insert into u select * from v", "alter view v rename to x"),
    "a view that rows are written through": (
        "insert into v (id) values (7)",
        "alter view v alter column a set default 'new'",
    ),
    "a view that an update goes through": (
        "update over set a = 'new'",
        "create or replace view v as select id, a from t where id > 1",
    ),
    "a view that a table is made of": (
        "create table x as select * from v",
        "create or replace view v as select id, a from t where id > 1",
    ),
    "a label": (
        "insert into u select 1, 'ok'::plain::text",
        "alter type plain rename value 'ok' to 'w'",
    ),
    "the labels": (
        "insert into u select 1, enum_range(null::mood)::text",
        "alter type mood add value 'new'",
    ),
    "a type that is dropped": (
        "insert into u select 1, 'ok'::plain::text",
        "drop type plain",
    ),
    "a type that is renamed": (
        "insert into u select 1, 'ok'::plain::text",
        "alter type plain rename to x",
    ),
    "the type of a parameter": (
        "prepare p (plain) as insert into u select 1, $1::text; execute p ('ok')",
        "alter type plain rename value 'ok' to 'w'",
    ),
    "a domain": ("insert into u select 5::positive", "alter domain positive add check (value < 4)"),
    "a type in a CHECK": (
        "insert into checked values ('ok')",
        "alter type mood add value 'new'",
    ),
    "a domain in a generated column": (
        "insert into computed values (1)",
        "alter domain positive add check (value > 1)",
    ),
    "a type in a default": ("insert into filled values (1)", "alter type mood add value 'new'"),
    "a sequence": ("insert into u select nextval('q')", "drop sequence q"),
    "a sequence by a name in a row": (
        "insert into u select nextval(a) from t",
        "drop sequence q; create sequence q",
    ),
    "the sequence of a default": (
        "insert into numbered (a) values ('x')",
        "alter sequence numbered_id_seq rename to x",
    ),
    "columns for JSON": (
        "insert into u select id, a from json_populate_record(null::t, '{\"id\": 1}')",
        "alter table t add column b int",
    ),
    "a table that another is like": ("create table x (like t)", "alter table t add column b int"),
    "a table": ("insert into u values (2, 'b')", "alter table u add column b int"),
}
"""What one makes rows or a definition of, and what the other changes of it."""


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with serving() as started:
        yield started


@pytest.fixture(scope="module")
def lockless() -> Iterator[str]:
    """Here who changes a table waits for nobody who uses it."""
    with serving(core=WITHOUT_LOCKS) as started:
        yield started


@pytest.fixture
def pair(dsn: str) -> Iterator[tuple[Connection, Connection]]:
    with _connected_twice(dsn) as both:
        yield both


@pytest.fixture
def lockless_pair(lockless: str) -> Iterator[tuple[Connection, Connection]]:
    with _connected_twice(lockless) as both:
        yield both


@contextlib.contextmanager
def _connected_twice(dsn: str) -> Iterator[tuple[Connection, Connection]]:
    with (
        psycopg.connect(dsn, autocommit=True) as one,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        _run(other, SETUP)
        yield one, other


def _run(connection: Connection, *texts: str) -> None:
    for text in texts:
        connection.execute(text.encode())


def _play(pair: tuple[Connection, Connection], level: str, done: str, change: str) -> None:
    """The commit may be refused, and nothing else."""
    one, other = pair
    _run(one, f"begin isolation level {level}; {done}")
    _run(other, change)
    _run(one, "create table public.mine (a int)")
    try:
        _run(one, "commit")
    except SerializationFailure:
        _run(one, "rollback")
        raise
    assert other.execute("select to_regclass('public.mine') is not null").fetchall() == [(True,)]


@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_conflicts_with_nobody(pair: tuple[Connection, Connection], look: str) -> None:
    _play(pair, "serializable", *LOOKS[look])


@pytest.mark.parametrize("look", LOOKS)
def test_who_wants_it_is_told_that_the_catalog_has_changed(
    pair: tuple[Connection, Connection], look: str
) -> None:
    _run(pair[0], "set validate_catalog_reads = on")
    with pytest.raises(SerializationFailure):
        _play(pair, "serializable", *LOOKS[look])


@pytest.mark.parametrize("level", ["serializable", "read committed"])
@pytest.mark.parametrize("use", USES)
def test_no_row_is_committed_by_a_definition_that_is_no_more(
    lockless_pair: tuple[Connection, Connection], use: str, level: str
) -> None:
    with pytest.raises(SerializationFailure) as refused:
        _play(lockless_pair, level, *USES[use])
    assert "concurrent definition change" in str(refused.value)


COPIED_AND_DROPPED = "insert into u select * from t", "drop table t cascade"


def test_a_table_that_rows_come_from_counts_where_reads_are_validated(
    lockless_pair: tuple[Connection, Connection],
) -> None:
    """At read committed they are those of an earlier moment; nothing says that it lasts."""
    with pytest.raises(SerializationFailure, match="concurrent definition change"):
        _play(lockless_pair, "serializable", *COPIED_AND_DROPPED)
    _run(lockless_pair[1], SETUP)
    _play(lockless_pair, "read committed", *COPIED_AND_DROPPED)


REPLACED = "create or replace view v as select id + 1 as id, a from t"


def test_what_a_query_has_used_counts_where_reads_are_validated(
    pair: tuple[Connection, Connection],
) -> None:
    for level in ("repeatable read", "read committed"):
        _play(pair, level, "select * from v; insert into u values (3, 'c')", REPLACED)
        _run(pair[1], "drop table mine")
    with pytest.raises(SerializationFailure):
        _play(pair, "serializable", "select * from v; insert into u values (3, 'c')", REPLACED)


def test_who_only_reads_is_not_refused(pair: tuple[Connection, Connection]) -> None:
    one, other = pair
    _run(one, "set validate_catalog_reads = on; begin; select * from v, pg_class")
    _run(other, REPLACED)
    assert one.execute("select id from v").fetchall() == [(1,)]
    _run(one, "commit")


def test_the_catalog_of_a_transaction_and_of_the_past_stays_what_it_is(
    pair: tuple[Connection, Connection],
) -> None:
    one, other = pair
    tables = "select relname from pg_class where relkind = 'r' and relnamespace = 2200 order by 1"
    before = one.execute(tables.encode()).fetchall()
    (now,) = one.execute("select meridian_now()").fetchall()[0]
    _run(one, "begin; create table mine (a int)")
    _run(other, "create table theirs (a int); drop table u")
    assert one.execute(tables.encode()).fetchall() == sorted([*before, ("mine",)])
    assert one.execute(f"{tables} as of {now}".encode()).fetchall() == before
    _run(one, "commit")
    after = sorted([*before, ("mine",), ("theirs",)])
    after.remove(("u",))
    assert one.execute(tables.encode()).fetchall() == after
    assert one.execute(f"{tables} as of {now}".encode()).fetchall() == before


def test_the_setting_counts_for_the_statements_that_run_under_it(
    pair: tuple[Connection, Connection],
) -> None:
    one, other = pair
    assert one.execute("show validate_catalog_reads").fetchall() == [("off",)]
    looking = "select count(*) from pg_class"
    _run(one, "begin", looking, "set local validate_catalog_reads = on; select 1")
    _run(other, "create table x (a int)")
    _run(one, "create table y (a int); commit")
    _run(one, "begin; set local validate_catalog_reads = on", looking)
    _run(one, "set local validate_catalog_reads = off; create table z (a int)")
    _run(other, "drop table x")
    with pytest.raises(SerializationFailure, match="concurrent definition change") as refused:
        _run(one, "commit")
    assert refused.value.diag.message_detail == (
        "The catalog was changed by a concurrent transaction."
    )
    assert one.execute("show validate_catalog_reads").fetchall() == [("off",)]


def test_a_statement_alone_finds_what_has_come_meanwhile(
    pair: tuple[Connection, Connection],
) -> None:
    one, other = pair
    told: list[str | None] = []
    one.add_notice_handler(lambda notice: told.append(notice.message_primary))
    _run(other, "create table x (a int)")
    _run(one, "create table if not exists x (b text)")
    assert told == ['relation "x" already exists, skipping']


@on_a_loop
async def test_an_insert_of_a_known_statement_looks_no_name_up_again() -> None:
    """It has been bound, and waits for its group when a table comes before its own in the path."""
    for validated, counts in (("off", [(0, 3)]), ("on", [(1, 2)])):
        stash = GatedStash()
        async with (
            running(stash=stash) as stack,
            connected(stack, 4) as (setup, inserting, defining, other),
        ):
            for text in ("create schema early", "create table t (a int)", "create table n (a int)"):
                await setup.execute(text.encode())
            await inserting.execute("set search_path = early, public")
            await inserting.execute(f"set validate_catalog_reads = {validated}".encode())
            for _ in range(2):
                await inserting.execute("insert into t values (1)")
            stash.gate.clear()
            async with asyncio.TaskGroup() as tasks:
                texts = ("insert into n values (1)", "create table early.t (a int)")
                for count, (connection, text) in enumerate(
                    zip((other, defining), texts, strict=True), 1
                ):
                    tasks.create_task(connection.execute(text.encode()))
                    await waiting(stack, setup, count)
                tasks.create_task(inserting.execute("insert into t values (1)"))
                await waiting(stack, setup, 3)
                stash.gate.set()
            both = "select (select count(*) from early.t), (select count(*) from public.t)"
            assert await all_rows(setup, both) == counts
