"""Migrations side by side: unrelated definitions in open blocks all commit, at the first try.

each: begin, look into the catalog, define ── all: commit, one after the other or at once
                                                ▼
                         nobody is refused; the catalog has all of it, also after a restart
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import psycopg
import pytest

from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.connections import (
    Connection,
    GatedStash,
    all_rows,
    connected,
    on_a_loop,
    waiting,
)
from tests.support.stack import running

LEVELS: Final = ("serializable", "read committed")
MIGRATIONS: Final = 40

BEFORE: Final = (
    "create schema old",
    "create schema spare",
    "create role reader",
    "create role writer",
    "create type kind as enum ('a')",
    "create type other_kind as enum ('a')",
    "create domain small as int check (value < 10)",
    "create sequence counter",
    "create table parent (id int primary key)",
    *(f"create table t{n} (id int primary key, a int, b text)" for n in range(16)),
    *(f"create view v{n} as select id, a from t{n}" for n in range(3)),
    "create index i0 on t0 (a)",
)

UNRELATED: Final = (
    "create table made (id int primary key, a int unique, b serial)",
    "create table old.made (id int primary key, a int)",
    "create table filled as select * from t0",
    "create table child (id int references t1)",
    "create table if not exists perhaps (id int)",
    "create temp table passing (id int)",
    "create temp view glance as select 1 as a",
    "create temp table passing (id int) on commit drop",
    "create schema one",
    "create schema two create table inside (id int)",
    "create view seen as select * from t0",
    "create or replace view v0 as select id, a + 1 as a from t0",
    "drop view v1",
    "create sequence another",
    "alter sequence counter restart with 5",
    "create type mood as enum ('ok')",
    "alter type kind add value 'b'",
    "create domain large as int check (value > 10)",
    "alter domain small set default 1",
    "create index i2 on t2 (a)",
    "create unique index i3 on t3 (a)",
    "drop index i0",
    "alter table t4 add column c int default 7",
    "alter table t5 rename to renamed",
    "alter table t6 set schema old",
    "alter table t7 add constraint positive check (a > 0)",
    "alter table t8 drop column b",
    "drop table t9",
    "truncate t10",
    "insert into t11 values (1, 1, 'x')",
    "comment on table t0 is 'said'",
    "comment on column t12.a is 'said'",
    "comment on schema old is 'said'",
    "comment on type other_kind is 'said'",
    "grant select on t13 to reader",
    "grant select on t14 to writer",
    "alter table t15 owner to writer",
    "alter default privileges in schema spare grant select on tables to reader",
    "create role extra",
    "grant reader to writer",
    "create timeline line manual",
    "create read hold kept at now()",
)
"""No two of these are about one thing, but for being in the same schema or beside a table."""

LOOKS: Final = (
    "select count(*) from pg_class",
    "select table_name from information_schema.tables",
    "select to_regclass('nothing')",
)


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_unrelated_definitions_all_commit(level: str) -> None:
    """Every block is open while every other one commits, so this is about all pairs."""
    async with running() as stack, connected(stack, len(UNRELATED) + 1) as (setup, *blocks):
        for text in BEFORE:
            await setup.execute(text.encode())
        for number, (block, text) in enumerate(zip(blocks, UNRELATED, strict=True)):
            await block.execute(f"begin isolation level {level}".encode())
            await block.execute(LOOKS[number % len(LOOKS)].encode())
            await block.execute(text.encode())
        for block, text in zip(blocks, UNRELATED, strict=True):
            try:
                await block.execute("commit")
            except psycopg.Error as error:
                raise AssertionError(f"{text}: {error} {error.diag.message_detail}") from error
        found = await all_rows(setup, "select count(*) from pg_class where relname = 'made'")
        assert found == [(2,)]


SAME_NAME: Final = (
    ("create table n (a int)", "create table n (b text)"),
    ("create table if not exists n (a int)", "create table if not exists n (b text)"),
    ("create table n (a int)", "create view n as select 1 as a"),
    ("create view n as select 1 as a", "create or replace view n as select 2 as a"),
    ("create table n (a int)", "alter table t0 rename to n"),
    ("alter table t1 rename to n", "alter table t0 rename to n"),
    ("create index n on t0 (a)", "create index n on t1 (a)"),
    ("create index n on t0 (a)", "create table n (a int)"),
    ("create table x (a int constraint n primary key)", "create sequence n"),
    ("create sequence n", "create sequence if not exists n"),
    ("create schema n", "create schema n"),
    ("create schema if not exists n", "alter schema old rename to n"),
    ("create type n as enum ('a')", "create domain n as int"),
    ("create type n as enum ('a')", "create table n (a int)"),
    ("create role n", "create role n"),
    ("create timeline n manual", "create timeline n manual"),
    ("create read hold n at now()", "create read hold n at now()"),
)
"""What two make under one name."""


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_of_two_who_make_one_name_the_first_wins(level: str) -> None:
    async with running() as stack, connected(stack, 3) as (setup, first, second):
        for made in SAME_NAME:
            await _begin_both(setup, (first, second), made, level)
            assert [await _commit(first), await _commit(second)] == ["", "40001"], made


@on_a_loop
async def test_in_one_group_one_of_two_who_make_one_name_wins() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 4) as (setup, first, second, third):
        await setup.execute("create schema kept create table nothing (a int)")
        for made in SAME_NAME:
            await _begin_both(setup, (first, second), made, "read committed")
            stash.gate.clear()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(third.execute("insert into kept.nothing values (1)"))
                await waiting(stack, setup, 1)
                both = [tasks.create_task(_commit(block)) for block in (first, second)]
                await waiting(stack, setup, 3)
                stash.gate.set()
            assert sorted(task.result() for task in both) == ["", "40001"], made


async def _begin_both(
    setup: Connection, blocks: Sequence[Connection], made: Sequence[str], level: str
) -> None:
    """Two open blocks that have made these, where nothing of that name is."""
    for text in (
        "drop timeline if exists n",
        "drop read hold if exists n",
        "drop role if exists n",
        "drop schema if exists public, old, n cascade",
        "create schema public",
        "create schema old",
        "create table t0 (a int)",
        "create table t1 (a int)",
    ):
        await setup.execute(text.encode())
    for block, text in zip(blocks, made, strict=True):
        await block.execute(f"begin isolation level {level}".encode())
        await block.execute(text.encode())


async def _commit(block: Connection) -> str:
    """What it heard at its commit, if it was refused."""
    try:
        await block.execute("commit")
    except psycopg.Error as error:
        return error.sqlstate or "no answer"
    return ""


async def _migrate(connection: Connection, number: int) -> None:
    """What a migration tool does, twice: everything in one block, nothing tried again."""
    schema = f"s_{number}"
    await connection.execute("begin")
    asked = "select count(*) from pg_namespace where nspname = %s"
    assert await (await connection.execute(asked, (schema,))).fetchall() == [(0,)]
    for text in (
        f"select to_regclass('{schema}.version')",
        f"create schema {schema}",
        f"create table {schema}.version (number int primary key, at timestamptz default now())",
        f"create table {schema}.customer (id serial primary key, name text unique)",
        f"create table {schema}.purchase (id int primary key, amount numeric(8, 2),"
        f" customer int not null references {schema}.customer)",
        f"create index on {schema}.purchase (customer)",
        f"comment on table {schema}.purchase is 'of {number}'",
        f"insert into {schema}.version values (1)",
        "commit",
    ):
        await connection.execute(text.encode())
    await connection.execute("begin")
    if number % 8 == 0:
        # The reference engine takes its time for this one.
        asked = "select column_name from information_schema.columns where table_schema = %s"
        assert len(await (await connection.execute(asked, (schema,))).fetchall()) == 7
    assert await all_rows(connection, f"select number from {schema}.version") == [(1,)]
    for text in (
        f"alter table {schema}.customer add column email text default 'none'",
        f"create view {schema}.spent as select name, sum(amount) as total"
        f" from {schema}.customer c join {schema}.purchase p on p.customer = c.id group by name",
        f"insert into {schema}.customer (name) values ('ada')",
        f"insert into {schema}.purchase values (1, 9.99, 1)",
        f"insert into {schema}.version values (2)",
        "commit",
    ):
        await connection.execute(text.encode())


@on_a_loop
async def test_forty_migrations_at_once_are_done_at_the_first_try() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    async with (
        running(stash=stash, store=store) as stack,
        connected(stack, MIGRATIONS) as connections,
    ):
        async with asyncio.TaskGroup() as tasks:
            for number, connection in enumerate(connections):
                tasks.create_task(_migrate(connection, number))
        await _look(connections[0])
    async with (
        running(stash=stash.crash(), store=store.crash()) as stack,
        connected(stack, 1) as (again,),
    ):
        await _look(again)


async def _look(connection: Connection) -> None:
    """Everything that all of them have made is there."""
    found = await all_rows(
        connection,
        "select relkind::text, relname, count(*) from pg_class c"
        " join pg_namespace n on n.oid = relnamespace and nspname ~ '^s_' group by 1, 2",
    )
    assert {(kind, name): count for kind, name, count in found} == dict.fromkeys(
        [
            *(("r", name) for name in ("version", "customer", "purchase")),
            *(("i", name) for name in ("version_pkey", "customer_pkey", "purchase_pkey")),
            *(("i", name) for name in ("customer_name_key", "purchase_customer_idx")),
            *(("S", "customer_id_seq"), ("v", "spent")),
        ],
        MIGRATIONS,
    )
    users = "select description from pg_description where objoid >= 16384 order by 1"
    said = await all_rows(connection, users)
    assert sorted(said) == sorted((f"of {number}",) for number in range(MIGRATIONS))
    keys = "select count(*), count(distinct confrelid) from pg_constraint where contype = 'f'"
    assert await all_rows(connection, keys) == [(MIGRATIONS, MIGRATIONS)]
    for number in range(MIGRATIONS):
        versions = f"select number from s_{number}.version order by 1"
        assert await all_rows(connection, versions) == [(1,), (2,)]
        spent = f"select name, total::text from s_{number}.spent"
        assert await all_rows(connection, spent) == [("ada", "9.99")]
