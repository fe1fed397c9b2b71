"""pg_catalog in transactions: who reads it depends on all definitions, if that is wanted."""

import psycopg
import pytest

from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

TABLES = "select relname from pg_class where relnamespace = 2200 and relkind = 'r' order by 1"


@on_a_loop
async def test_who_has_read_the_catalog_conflicts_with_definitions() -> None:
    """Without the setting: `test_catalog_reads.py`."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("set validate_catalog_reads = on")
        await one.execute("create table t (a int)")
        await one.execute("begin")
        assert await all_rows(one, TABLES) == [("t",)]
        await one.execute("insert into t select count(*) from pg_class where relname = 'u'")
        await other.execute("create table u (a int)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        assert await all_rows(one, TABLES) == [("t",), ("u",)]


@on_a_loop
async def test_a_reader_with_definitions_of_its_own_conflicts_too() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("set validate_catalog_reads = on")
        await one.execute("begin")
        await one.execute("create table t (a int)")
        assert await all_rows(one, TABLES) == [("t",)]
        await other.execute("create table u (a int)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")


@on_a_loop
async def test_who_only_reads_it_conflicts_with_nobody() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("begin")
        assert await all_rows(one, TABLES) == []
        await other.execute("create table u (a int)")
        assert await all_rows(one, TABLES) == []
        await one.execute("commit")
        assert await all_rows(one, f"{TABLES} as of now() - interval '1 hour'") == []


@on_a_loop
async def test_the_database_looks_like_one_of_postgresql() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        databases = "select datname, oid >= 16384, datistemplate, datallowconn from pg_database"
        assert await all_rows(one, f"{databases} order by oid") == [
            ("template1", False, True, True),
            ("template0", False, True, False),
            ("postgres", False, False, True),
            ("meridian", True, False, True),
        ]
        await one.execute("create table t (a int)")
        for name in ("postgres", "template1"):
            async with await psycopg.AsyncConnection.connect(stack.dsn, dbname=name) as other:
                assert await all_rows(other, "select current_database()") == [(name,)]
                assert await all_rows(other, TABLES) == [("t",)]
        for name, said in (
            ("template0", "is not currently accepting connections"),
            ("nosuch", "does not exist"),
        ):
            with pytest.raises(psycopg.OperationalError, match=f'database "{name}" {said}'):
                await psycopg.AsyncConnection.connect(stack.dsn, dbname=name)
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            await one.execute("comment on database postgres is 'x'")
        await one.execute("comment on database meridian is 'ours'")
        said = (
            "select datname from pg_database where shobj_description(oid, 'pg_database') = 'ours'"
        )
        assert await all_rows(one, said) == [("meridian",)]


@on_a_loop
async def test_the_schema_of_the_server_is_a_system_schema_with_an_older_name() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        users = "select nspname from pg_namespace where nspname !~ '^pg_' order by 1"
        assert await all_rows(one, users) == [("information_schema",), ("public",)]
        for name in ("meridian", "pg_meridian"):
            assert await all_rows(one, f"select count(*) > 0 from {name}.timelines") == [(True,)]
            (shown,) = await all_rows(
                one,
                f"select '{name}.cuts'::regclass::text, '{name}'::regnamespace::text,"
                f" to_regclass('{name}.cuts')::text, to_regnamespace('{name}')::text,"
                f" has_schema_privilege('{name}', 'usage')",
            )
            assert shown == (*("pg_meridian.cuts", "pg_meridian") * 2, True)
            await one.execute(f"set search_path = {name}")
            assert await all_rows(one, "select count(*) > 0 from timelines") == [(True,)]
            await one.execute("reset search_path")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await one.execute(f"create table {name}.t (a int)")
            with pytest.raises(psycopg.Error):
                await one.execute(f"create schema {name}")
        definitions = "select pg_get_viewdef(oid) = definition from pg_views join pg_class c"
        definitions += " on relname = viewname where schemaname = 'pg_meridian'"
        definitions += " and relnamespace = 'pg_meridian'::regnamespace"
        assert set(await all_rows(one, definitions)) == {(True,)}
