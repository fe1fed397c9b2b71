"""CREATE EXTENSION: what it brings, what depends on it, and what is refused."""

import psycopg
import pytest

from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

THERE = "select extname, extnamespace::regnamespace::text from pg_extension order by 1"
KNOWN = (
    (
        "uuid_generate_v3(uuid_ns_url(), 'http://www.postgresql.org')",
        "cf16fe52-3365-3a1f-8572-288d8d2aaa46",
    ),
    ("uuid_generate_v5(uuid_ns_dns(), 'python.org')", "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
    ("uuid_nil()", "00000000-0000-0000-0000-000000000000"),
    ("encode(digest('abc', 'sha1'), 'hex')", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ("encode(digest('abc'::bytea, 'MD5'), 'hex')", "900150983cd24fb0d6963f7d28e17f72"),
    ("left(encode(hmac('data', 'key', 'sha256'), 'hex'), 16)", "5031fe3d989c6d15"),
)


@on_a_loop
async def test_functions_come_and_go_with_their_extension() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        assert await all_rows(one, THERE) == [("plpgsql", "pg_catalog")]
        with pytest.raises(psycopg.errors.UndefinedFunction):
            await one.execute("select uuid_nil()")
        await one.execute("begin")
        await one.execute('create extension "uuid-ossp"')
        await one.execute("select uuid_nil()")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            await other.execute("select uuid_nil()")
        await one.execute("rollback")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            await one.execute("select uuid_nil()")
        await one.execute('create extension "uuid-ossp"')
        await one.execute("create schema s")
        await one.execute("create extension if not exists pgcrypto with schema s version '1.4'")
        await one.execute('create extension if not exists "uuid-ossp" cascade')
        for expression, expected in KNOWN:
            assert await all_rows(other, f"select ({expression})::text") == [(expected,)]
        await other.execute("select s.digest('a', 'md5'), public.uuid_nil()")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            await other.execute("select public.digest('a', 'md5')")
        assert await all_rows(other, THERE) == [
            ("pgcrypto", "s"), ("plpgsql", "pg_catalog"), ("uuid-ossp", "public"),
        ]  # fmt: skip
        await one.execute("drop schema s cascade")
        assert len(await all_rows(other, THERE)) == 2


@on_a_loop
async def test_a_default_that_calls_it_keeps_an_extension() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute('create extension "uuid-ossp"')
        await one.execute("create table t (id uuid default uuid_generate_v4(), n int)")
        await one.execute("insert into t (n) values (1), (2)")
        assert await all_rows(one, "select count(distinct id) from t") == [(2,)]
        with pytest.raises(psycopg.errors.DependentObjectsStillExist) as refused:
            await one.execute('drop extension "uuid-ossp"')
        said = 'default value for column id of table t depends on extension "uuid-ossp"'
        assert refused.value.diag.message_detail == said
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            await one.execute('drop extension "uuid-ossp" cascade')
        await one.execute("drop table t")
        # Two who have not seen each other: one makes what the other takes away.
        await one.execute("begin")
        await other.execute("begin")
        await one.execute("create table t (id uuid default uuid_generate_v4())")
        await other.execute('drop extension "uuid-ossp"')
        await one.execute("commit")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await other.execute("commit")


@on_a_loop
async def test_what_an_extension_says_of_itself() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create extension pgcrypto")
        said = "select obj_description(oid, 'pg_extension') from pg_extension order by extname"
        assert await all_rows(one, said) == [
            ("cryptographic functions",), ("PL/pgSQL procedural language",),
        ]  # fmt: skip
        await one.execute("comment on extension pgcrypto is 'ours'")
        assert (await all_rows(one, said))[0] == ("ours",)
        installed = "select name, installed_version from pg_available_extensions order by 1"
        assert await all_rows(one, installed) == [
            ("pg_stat_statements", None), ("pgcrypto", "1.4"), ("plpgsql", "1.0"),
            ("uuid-ossp", None),
        ]  # fmt: skip


REFUSED = (
    ("create extension citext", "0A000", 'extension "citext" is not available'),
    ("create extension plpgsql", "42710", 'extension "plpgsql" already exists'),
    ("create extension pgcrypto schema nosuch", "3F000", 'schema "nosuch" does not exist'),
    ("drop extension nosuch", "42704", 'extension "nosuch" does not exist'),
    ("comment on extension nosuch is 'x'", "42704", 'extension "nosuch" does not exist'),
    ("alter extension nosuch update", "42704", 'extension "nosuch" does not exist'),
    ("drop extension plpgsql", "0A000", "DROP EXTENSION plpgsql is not supported"),
    ("select crypt('a', 'b')", "42883", "function crypt(unknown, unknown) does not exist"),
)


@on_a_loop
async def test_refusals() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        for statement, sqlstate, message in REFUSED:
            with pytest.raises(psycopg.Error) as refused:
                await all_rows(one, statement)
            diag = refused.value.diag
            assert (diag.sqlstate, diag.message_primary) == (sqlstate, message), statement
        await one.execute("drop extension if exists nosuch")
        await one.execute("create extension pgcrypto")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            await one.execute("select crypt('a', 'b')")


@on_a_loop
async def test_random_values_differ_from_row_to_row() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute('create extension "uuid-ossp"')
        await one.execute("create extension pgcrypto")
        await one.execute("create table t as select generate_series(1, 50) as n")
        for call in ("gen_random_bytes(16)", "uuid_generate_v1()", "uuid_generate_v1mc()"):
            for source in ("generate_series(1, 50)", "t"):
                query = (
                    f"select count(distinct x), count(*) from (select {call} as x from {source}) q"
                )
                assert await all_rows(one, query) == [(50, 50)], call
        query = "select uuid_extract_version(x), uuid_extract_timestamp(x) - now() < '1 minute'"
        assert await all_rows(one, f"{query} from (select uuid_generate_v1() as x) q") == [
            (1, True)
        ]
        assert await all_rows(one, "select length(gen_random_bytes(1024))") == [(1024,)]
        with pytest.raises(psycopg.Error, match="Length not in range") as refused:
            await one.execute("select gen_random_bytes(0)")
        assert refused.value.sqlstate == "39000"
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            await one.execute("select crypt('a', gen_salt('bf'))")


DEFINED = (
    "select (select pg_get_expr(adbin, adrelid) from pg_attrdef"
    " where adrelid = 'public.g'::regclass), pg_get_constraintdef(c.oid),"
    " pg_get_viewdef('public.v'::regclass, true)"
    " from pg_constraint c where conname = 'g_check'"
)


@on_a_loop
async def test_texts_name_a_function_with_its_schema_where_the_search_path_does_not() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create schema ex")
        await one.execute('create extension "uuid-ossp" schema ex')
        await one.execute(
            "create table g (a uuid default ex.uuid_generate_v4(),"
            " constraint g_check check (ex.uuid_nil() <> a))"
        )
        await one.execute("create view v as select uuid_nil() as x")
        qualified = [
            ("ex.uuid_generate_v4()", "CHECK ((ex.uuid_nil() <> a))", " SELECT ex.uuid_nil() AS x;")
        ]
        plain = [tuple(text.replace("ex.", "") for text in qualified[0])]
        for path, expected in (("''", qualified), ("ex", plain), ("public", qualified)):
            await one.execute(f"set search_path = {path}".encode())
            assert await all_rows(one, DEFINED) == expected
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="column a of table g"):
            await one.execute("alter schema ex rename to ey")
        await one.execute("drop table g")
        await one.execute("alter schema ex rename to ey")
        shown = await all_rows(one, "select pg_get_viewdef('v'::regclass, true)")
        assert shown == [(" SELECT ey.uuid_nil() AS x;",)]


@on_a_loop
async def test_pgcrypto_has_a_function_that_pg_catalog_has_too() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        with pytest.raises(psycopg.errors.UndefinedFunction):
            await one.execute("select public.gen_random_uuid()")
        await one.execute("create extension pgcrypto schema public")
        await one.execute("select public.gen_random_uuid(), gen_random_uuid()")
        await one.execute(
            "create table t (a uuid default public.gen_random_uuid(),"
            " b uuid default pg_catalog.gen_random_uuid(), c uuid default gen_random_uuid())"
        )
        await one.execute("insert into t default values")
        assert await all_rows(one, "select count(*) from t where a <> b and b <> c") == [(1,)]
        texts = await all_rows(one, "select pg_get_expr(adbin, adrelid) from pg_attrdef order by 1")
        assert texts == [("gen_random_uuid()",)] * 2 + [("public.gen_random_uuid()",)]
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            await one.execute("drop extension pgcrypto")
        await one.execute("alter table t alter column a drop default")
        await one.execute("drop extension pgcrypto")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            await one.execute("select public.gen_random_uuid()")
        await one.execute("insert into t default values")
