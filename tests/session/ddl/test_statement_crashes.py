"""A crash at every write of every kind of definition, as a session says it: all or nothing.

    prepared ─▶ [one story: a statement or a transaction] ─▶ stop
                   │ the n-th write of stash or store is the last one, done or not
                   ▼
                what is durable: `meridian check` has nothing to say, and it is the old state or the
                new one, catalog and rows; the new one if it was acknowledged ─▶ it goes on

INVARIANTS
  C1  what is found is what one of two whole lives has left, every field of every definition.
  C2  the catalog that is found is the one that the server had, so no field is lost on the way.
"""

import asyncio
import contextlib
import copy
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import psycopg
import pytest
from psycopg import AsyncConnection

from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes
from coordinator.core.settings import CoreSettings
from coordinator.execution.context import ExecutionLimits
from coordinator.server.check import find_inconsistencies
from sql.catalog.catalog import Catalog
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError
from storage.errors import Fatal
from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.mortal import Life, MortalStash, MortalStore
from tests.support.stack import Stack, running

SETUP: Final = (
    "create role r; create role r2; create schema s",
    "create type e as enum ('x', 'y'); create domain d as int check (value > 0)",
    "create sequence q start 7",
    "create table p (id int primary key, u text constraint pu unique)",
    "create table t (a int, b text, c int default 3, m e, n d)",
    "create table s.t (a int references p on delete cascade, b int generated always as (a) stored)",
    "create view v as select a, b from t; create view s.w as select * from v",
    "create index x on t (c); comment on table t is 'old'; comment on column t.a is 'old'",
    "grant select on t to r; grant r to r2",
    "insert into p values (1, 'u'), (2, 'w'); insert into s.t (a) values (1), (2)",
    "insert into t values (1, 'one', 1, 'x', 1), (2, 'two', 2, 'y', 2)",
)

QUICK: Final = {
    "everything": "begin; create table n (a int primary key, b d default 2, g e default 'y');"
    " insert into n values (1), (2); alter table t rename to old; alter table n rename to t;"
    " drop table old cascade; create view v as select * from t; create sequence n owned by t.a;"
    " create index on t (b); comment on table t is 'new'; grant all on t to r2;"
    " create role n; create schema n authorization n; alter type e rename value 'y' to 'z';"
    " alter domain d add constraint few check (value < 9); truncate p cascade; commit",
    "a rewrite": "alter table t alter column c type text, add column k int default 5,"
    " drop column n",
    "a schema that goes": "drop schema s cascade",
    "of a query": "create table n as select a, b, m from t",
}

STORIES: Final = {
    **QUICK,
    "table": "create table n (a serial, b int generated always as identity, c e[], u d unique)",
    "table dropped": "drop table p cascade",
    "table altered": "alter table t add column k text, alter column c set not null",
    "column dropped": "alter table t drop column c",
    "column with a view": "alter table t drop column a cascade",
    "column renamed": "alter table t rename column a to k",
    "column of sequences": "alter table t add column k bigserial, add column l int not null"
    " generated always as identity",
    "generated": "alter table t add column k int generated always as (a * 2) stored",
    "select into": "select * into s.n from t where a > 1",
    "like": "create table n (like t including all)",
    "truncate": "truncate p cascade",
    "swap": "begin; alter table p rename to swap; alter table t rename to p;"
    " alter table swap rename to t; commit",
    "other schema": "alter table p set schema s",
    "schema": "create schema n authorization r",
    "schema renamed": "alter schema s rename to n",
    "view": "create view n as select x.a, y.id from t x join p y on y.id = x.a",
    "view replaced": "create or replace view v as select a, b, c from t",
    "view with defaults": "alter view v alter column a set default 9",
    "view dropped": "drop view v cascade",
    "sequence": "create sequence n start 5 increment 3 owned by t.a",
    "sequence altered": "alter sequence q restart with 50 increment 2",
    "sequence renamed": "begin; alter sequence q rename to n;"
    " alter sequence n set schema s; commit",
    "sequence dropped": "drop sequence q",
    "index": "create index n on t (lower(b)) where c > 0",
    "unique index": "create unique index n on t (a, b)",
    "index renamed": "alter index x rename to n",
    "index dropped": "drop index x",
    "primary key": "alter table t add primary key (a)",
    "check": "alter table t add constraint n check (a > 0)",
    "foreign key": "alter table t add constraint n foreign key (a) references p on delete set null",
    "foreign key dropped": "alter table s.t drop constraint t_a_fkey",
    "key dropped": "alter table p drop constraint p_pkey cascade",
    "deferrable": "alter table s.t alter constraint t_a_fkey deferrable initially deferred",
    "comments": "begin; comment on table t is 'new'; comment on column t.a is null;"
    " comment on schema s is 'new'; comment on constraint pu on p is 'new';"
    " comment on role r is 'new'; comment on database meridian is 'new'; commit",
    "role": "create role n login connection limit 5 role r",
    "role altered": "alter role r createdb connection limit 3",
    "role renamed": "alter role r rename to n",
    "owner": "begin; alter table t owner to r; alter schema s owner to r2; commit",
    "grants": "begin; grant update (a) on t to r with grant option; revoke select on t from r;"
    " grant usage on schema s to public; commit",
    "default privileges": "alter default privileges for role r grant select on tables to r2",
    "revoked": "revoke r from r2",
    "drop owned": "begin; drop owned by r; revoke r from r2; drop role r; commit",
    "enum": "create type n as enum ('p', 'q')",
    "enum with more": "alter type e add value 'w' before 'x'",
    "enum with another": "alter type e rename value 'x' to 'w'",
    "enum renamed": "begin; alter type e rename to n; alter type n set schema s; commit",
    "enum dropped": "drop type e cascade",
    "domain": "create domain n as numeric(8, 2) default 1.5 not null check (value > 1)",
    "domain altered": "begin; alter domain d add constraint few check (value < 9);"
    " alter domain d set default 4; alter domain d rename to n; commit",
    "domain dropped": "drop domain d cascade",
    "clustered": "alter table t set (cluster_by = 'a', history = '2 hours')",
    "timeline": "begin; create timeline n manual; create table n (a int) in timeline n;"
    " create read hold n; commit",
}


@dataclass(frozen=True, slots=True)
class State:
    """What there is."""

    catalog: Catalog
    rows: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Death:
    """At which write a life ends, and whether that is done."""

    life: Life
    write: int
    done: bool


@contextlib.asynccontextmanager
async def _connected(stack: Stack) -> "AsyncIterator[AsyncConnection[tuple[object, ...]]]":
    """A connection that is closed without a word to the server, which may be dead."""
    connection = await AsyncConnection.connect(stack.dsn, autocommit=True)
    try:
        yield connection
    finally:
        connection.pgconn.finish()


async def _lived(
    stash: MemoryStash, store: MemoryObjectStore, statements: Sequence[str], death: Death | None
) -> Catalog | None:
    """The catalog that the server had when all was acknowledged, None if it was not."""
    catalog = None
    # Everything is staged that can be, and cut at once.
    limits, core = ExecutionLimits(inline_bytes_max=1), CoreSettings(cut_age_us=1)
    try:
        async with running(stash=stash, store=store, limits=limits, core=core) as stack:
            async with _connected(stack) as connection:
                if death is not None:
                    death.life.end_at(death.write, done=death.done)
                for statement in statements:
                    await connection.execute(statement.encode())
            catalog = stack.services.coordination.newest_catalog
    except* (Fatal, psycopg.Error, SqlError):  # the last two: who waited for the dead
        assert death is not None, "nothing fails in a whole life"
    return catalog


async def _state(stash: MemoryStash, store: MemoryObjectStore) -> State:
    """What is found, of which `meridian check` has nothing to say."""
    directories = {name.partition("/")[0] for name in await store.list("")}
    findings, _ = await find_inconsistencies(stash, store, directories)
    assert [found for found in findings if found.severity == "error"] == []
    catalog = VersionedCatalog(decode_changes(await stash.scan(COLLECTION))).current
    rows: dict[str, Sequence[str]] = {}
    async with (
        running(stash=stash, store=store) as stack,
        _connected(stack) as connection,
    ):
        assert stack.services.coordination.newest_catalog == catalog
        for table in catalog.tables.values():
            found = await connection.execute(f"select * from {table.qualified}".encode())
            rows[table.qualified] = sorted(str(row) for row in await found.fetchall())
        for sequence in catalog.sequences():
            await connection.execute(f"select nextval('{sequence.qualified}')".encode())
    return State(catalog, rows)


def _again(state: State) -> State:
    """Without the names of shards and states of sequences, and times: every life has its own."""
    catalog = state.catalog
    tables = {name: replace(table, shard="") for name, table in catalog.tables.items()}
    objects = {
        name: replace(thing, state="") if isinstance(thing, SequenceDefinition) else thing
        for name, thing in catalog.objects.items()
    }
    timelines = {name: replace(line, part="") for name, line in catalog.timelines.items()}
    holds = {name: replace(hold, ts=0) for name, hold in catalog.read_holds.items()}
    made = replace(catalog, tables=tables, objects=objects, timelines=timelines, read_holds=holds)
    return replace(state, catalog=made)


async def _told(story: str, prepared: tuple[MemoryStash, MemoryObjectStore]) -> int:
    """All deaths of a story; how many there were."""
    statements = [STORIES[story]]
    whole = copy.deepcopy(prepared)
    live = await _lived(*whole, statements, None)
    old, new = await _state(*copy.deepcopy(prepared)), await _state(*whole)
    assert live == new.catalog, "C2: what is found is what there was"
    assert old != new, "a story changes something"
    deaths = 0
    for done in (False, True):
        for write in itertools.count(1):
            life = Life()
            stash, store = MortalStash(life, prepared[0]), MortalStore(life, prepared[1])
            acknowledged = await _lived(stash, store, statements, Death(life, write, done))
            if not life.is_over:
                break
            deaths += 1
            left = stash.crash(), store.crash()
            found = await _state(*copy.deepcopy(left))
            assert found == old or _again(found) == _again(new), (write, done)
            assert found != old or acknowledged is None, (write, done)
            if found == old:
                await _lived(*left, statements, None)
                assert _again(await _state(*left)) == _again(new), (write, done)
    return deaths


@pytest.fixture(scope="module")
def prepared() -> tuple[MemoryStash, MemoryObjectStore]:
    stash, store = MemoryStash(), MemoryObjectStore()
    asyncio.run(_lived(stash, store, SETUP, None))
    return stash, store


@pytest.mark.parametrize(
    "story",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STORIES],
)
def test_all_or_nothing_at_every_write(
    story: str, prepared: tuple[MemoryStash, MemoryObjectStore]
) -> None:
    assert asyncio.run(_told(story, prepared)) > 3, "the commit and the cut behind it write more"
