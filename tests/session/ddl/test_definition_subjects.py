"""COMMENT ON, GRANT, REVOKE and OWNER TO of everything there is, and is not, under every name.

INVARIANTS
  J1  the binder finds nothing that the core does not know: the server lives, and says no XX000.
  J2  what was said is there after a restart, and is shown by every catalog.
"""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.stack import serving

SETUP = (
    "create role r",
    "create schema n",
    "create type mood as enum ('sad', 'ok')",
    "create domain d as int constraint dc check (value > 0) constraint dn not null",
    "create table t (id serial primary key, g int generated always as identity, m mood, e d,"
    " u int unique, c int constraint tc check (c > 0), nn int constraint tn not null,"
    " f int constraint tf references t, k text)",
    "create index i on t (c)",
    "create table p (k int, l text) partition by range (k)",
    "create table n.t (a int)",
    "create table made as select 1 as a",
    "create view v as select id, m from t",
    "create sequence s",
    "create temp table tt (a int primary key, b int constraint bc check (b > 0))",
    "create temp view tv as select a from tt",
    "create temp sequence ts",
    "create index ti on tt (b)",
)
NAMES = (
    *("t", "p", "made", "n.t", "v", "s", "t_id_seq", "t_g_seq", "t_pkey", "t_u_key", "i"),
    *("tt", "tv", "ts", "tt_pkey", "ti", "pg_temp.tt", "nosuch", "n.nosuch", "nosuch.t"),
    *("mood", "_mood", "mood[]", "d", "_d", "d[]", "int", "int[]", "_int4", "pg_catalog.int4"),
    *("n", "public", "pg_catalog", "information_schema", "meridian", "pg_temp", "r", '"public"'),
    *("pg_class", "pg_catalog.pg_class", "information_schema.tables", "meridian.frontiers"),
    *("pg_class_oid_index", "a.b.c", "a.b.c.d", "t.id", "t.nosuch", "v.id", "s.last_value"),
    *("tt.a", "i.c", "mood.sad", "tc", "dc", "pg_class.relname", "meridian.public.t", "''"),
    *("current_user", "meridian.frontiers.shard", "postgres", "template1", '"r"', "t.ctid"),
)
CONSTRAINTS = (
    *("tc", "tn", "tf", "t_pkey", "t_u_key", "t_id_not_null", "t_g_not_null", "nosuch"),
    *("bc", "tt_pkey", "tt_a_not_null", "i", "dc", "dn"),
)
OF_CONSTRAINTS = (
    "t",
    "tt",
    "v",
    "nosuch",
    "i",
    "n.t",
    "pg_class",
    "domain d",
    "domain mood",
    "mood",
)
COMMENTED = (
    *("table", "view", "sequence", "index", "column", "schema", "database", "role", "type"),
    *("domain", "materialized view", "foreign table", "collation", "conversion", "language"),
    *("extension", "tablespace", "access method", "event trigger", "server", "statistics"),
    *("text search parser", "foreign data wrapper", "publication", "subscription"),
    *("text search dictionary", "text search configuration", "text search template"),
)
GRANTED = (
    *("select on", "all on", "update on table", "usage on sequence", "all on sequence"),
    *("usage on schema", "all on schema", "usage on type", "all on type", "usage on domain"),
    *("connect on database", "all on database", "execute on function", "all on language"),
    *("all on tablespace", "usage on foreign server", "all on all tables in schema"),
    *("all on all sequences in schema", "all on large object", "set on parameter"),
    *("select (id) on", "all (a) on", "update (nosuch) on", "execute on all functions in schema"),
)
OWNED = (
    *("table", "view", "sequence", "index", "schema", "database", "type", "domain", "collation"),
    *("materialized view", "foreign table", "conversion", "language", "tablespace", "statistics"),
    *("table if exists", "view if exists", "sequence if exists", "function", "operator"),
)
FORMS = ("{0}", "begin; {0}; {0}; rollback")
OWNERS = ("r", "nosuch", "current_user", "public", "meridian")

CATALOGS = (
    "select objoid::regclass::text, classoid::regclass::text, objsubid, description"
    " from pg_description order by 1, 2, 3, 4",
    "select description from pg_shdescription order by 1",
    "select relname, relowner, relacl::text from pg_class where oid >= 16384"
    " and relnamespace::regnamespace::text in ('public', 'n') order by 1, 2, 3",
    "select typname, typowner, typacl::text from pg_type where oid >= 16384"
    " and typnamespace::regnamespace::text in ('public', 'n') order by 1, 2, 3",
    "select nspname, nspowner, nspacl::text from pg_namespace"
    " where nspname not like 'pg_temp%' order by 1",
    "select datname, datdba, datacl::text from pg_database order by 1",
    "select attrelid::regclass::text, attname, attacl::text from pg_attribute"
    " where attacl is not null and attrelid::regclass::text not like 'pg_temp%' order by 1, 2",
)


def comments() -> Iterator[str]:
    """Every kind, with every name."""
    for name in NAMES:
        for kind in COMMENTED:
            yield f"comment on {kind} {name} is 'said'"
        yield f"comment on function {name}(int) is 'said'"
    for name in CONSTRAINTS:
        for of in OF_CONSTRAINTS:
            yield f"comment on constraint {name} on {of} is 'said'"
            yield f"comment on trigger {name} on {of} is 'said'"


def grants() -> Iterator[str]:
    """Both ways."""
    for name in NAMES:
        for what in GRANTED:
            yield f"grant {what} {name} to r with grant option"
            yield f"revoke {what} {name} from public"
    for what in ("tables", "sequences", "types", "schemas", "functions"):
        for name in ("n", "nosuch", "pg_temp", "pg_catalog"):
            yield f"alter default privileges in schema {name} grant all on {what} to r"
        yield f"alter default privileges revoke all on {what} from public"


def owners() -> Iterator[str]:
    """To those who are there, and are not."""
    for name in NAMES:
        for kind in OWNED:
            for owner in OWNERS if kind in ("table", "type") else OWNERS[:1]:
                yield f"alter {kind} {name} owner to {owner}"


@pytest.mark.parametrize("said", [comments, grants, owners])
def test_nothing_that_is_said_ends_the_server(said: Callable[[], Iterator[str]]) -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        for text in SETUP:
            one.execute(text.encode())
        done = sum(_is_done(one, form.format(text)) for text in said() for form in FORMS)
        # Those of temporary relations go with them.
        one.execute("drop table tt cascade")
        one.execute("drop sequence ts")
        shown = _shown(one)
    assert done > 50, "some of it makes sense"
    stash, store = stash.crash(), store.crash()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        assert _shown(one) == shown


def _is_done(connection: "psycopg.Connection[tuple[object, ...]]", text: str) -> bool:
    """Whether it is not refused; the server lives (J1)."""
    refused = None
    try:
        connection.execute(text.encode())
    except psycopg.Error as error:
        refused = error
    assert refused is None or refused.sqlstate not in (None, "XX000"), f"{text}: {refused}"
    if refused is not None:
        connection.execute("rollback")
    return refused is None


def _shown(connection: "psycopg.Connection[tuple[object, ...]]") -> list[list[tuple[object, ...]]]:
    return [connection.execute(query.encode()).fetchall() for query in CATALOGS]
