"""CREATE TABLE(S) FROM SOURCE: upstream's columns and keys, and what is chosen of them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.ingest.sources.asking import refusal, refused, rows
from tests.ingest.upstream_database import UpstreamDatabase

UPSTREAM = (
    "CREATE SCHEMA shop",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TABLE shop.orders (id bigint, at timestamptz NOT NULL, total numeric(12, 2),"
    " how mood, tags text[], PRIMARY KEY (id))",
    "CREATE TABLE lines (n int, o bigint, what varchar(20), span int4range, PRIMARY KEY (o, n))",
    "CREATE PUBLICATION p FOR TABLE shop.orders, lines",
)
COLUMNS = """
    select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute
    where attrelid = '%s'::regclass and attnum > 0 order by attnum
"""
KEY = "select pg_get_constraintdef(oid), conname from pg_constraint where conrelid = '%s'::regclass"
LINES = "create table lines %s from source s (reference 'public.lines') %s"


@pytest.fixture
def source(
    connected: psycopg.Connection, database: UpstreamDatabase
) -> Iterator[psycopg.Connection]:
    database.execute(*UPSTREAM)
    connected.execute("create source s from postgres connection c (publication 'p')")
    connected.execute("alter source s pause")
    yield connected
    connected.execute("drop source if exists s cascade")
    database.execute("DROP SCHEMA shop CASCADE")


def test_tables_have_the_columns_and_keys_of_upstream(source: psycopg.Connection) -> None:
    source.execute("create table o from source s (reference 'shop.orders')")
    assert rows(source, COLUMNS % "o") == [
        ("id", "bigint", True),
        ("at", "timestamp with time zone", True),
        ("total", "numeric(12,2)", False),
        ("how", "text", False),
        ("tags", "text[]", False),
    ]
    assert rows(source, KEY % "o")[0] == ("PRIMARY KEY (id)", "o_pkey")
    shown = "select table_name, reference from meridian.source_tables"
    assert rows(source, shown) == [("o", "shop.orders")]


def test_all_tables_at_once(source: psycopg.Connection, database: UpstreamDatabase) -> None:
    error = refused(source, "create tables from source s")
    assert error.sqlstate == "0A000"
    assert "int4range" in str(error.diag.message_primary)
    assert rows(source, "select count(*) from meridian.source_tables") == [(0,)]
    database.execute("ALTER TABLE lines DROP COLUMN span")
    source.execute("create schema if not exists x")
    source.execute("create table o from source s (reference 'shop.orders')")
    source.execute("create tables from source s in schema x")
    shown = "select table_schema, table_name, reference from meridian.source_tables order by 3"
    assert rows(source, shown) == [("x", "lines", "public.lines"), ("here", "o", "shop.orders")]
    source.execute("drop source s cascade")
    source.execute("drop schema x")


def test_columns_may_be_chosen(source: psycopg.Connection) -> None:
    source.execute(
        (LINES % ("", "with (text_columns = 'span', exclude_columns = 'what')")).encode()
    )
    assert rows(source, COLUMNS % "lines") == [
        ("n", "integer", True),
        ("o", "bigint", True),
        ("span", "text", False),
    ]
    assert rows(source, KEY % "lines")[0] == ("PRIMARY KEY (o, n)", "lines_pkey")
    source.execute("alter table lines detach source")
    source.execute("drop table lines")
    source.execute((LINES % ("(what text, o numeric(30) not null, n bigint)", "")).encode())
    assert rows(source, COLUMNS % "lines") == [
        ("what", "text", False),
        ("o", "numeric(30,0)", True),
        ("n", "bigint", True),
    ]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("create table t from source s", "42601"),
        ("create table t from source s (reference 'public.t')", "42704"),
        (LINES % ("", ""), "0A000"),
        (LINES % ("", "with (exclude_columns = 'span, n')"), "0A000"),
        (LINES % ("", "with (exclude_columns = 'span, nothing')"), "42703"),
        (LINES % ("", "with (exclude_columns = '')"), "22023"),
        (LINES % ("", "with (colour = 'red')"), "22023"),
        (LINES % ("(n int, o int)", ""), "42804"),
        (LINES % ("(n int, o bigint, what varchar(19))", ""), "42804"),
        (LINES % ("(n int, o bigint, span text)", "with (text_columns = 'n')"), "42804"),
        (LINES % ("(n int, o bigint, what text not null)", ""), "0A000"),
        (LINES % ("(n int, o bigint, primary key (o))", ""), "0A000"),
        (LINES % ("(n int)", ""), "0A000"),
        (LINES % ("(n int, o bigint, other int)", ""), "42703"),
        (LINES % ("(n int, o bigint default 7)", ""), "0A000"),
        (LINES % ("(n int, o bigint, check (n > 0))", ""), "0A000"),
        (LINES % ("(n int, o bigint)", "format json"), "0A000"),
        ("create table s_errors from source s (reference 'shop.orders')", "42P07"),
        ("create table t from source s (reference 'shop.orders') in timeline m", "42601"),
    ],
)
def test_refusals(source: psycopg.Connection, statement: str, sqlstate: str) -> None:
    assert refusal(source, statement)[0] == sqlstate
    assert rows(source, "select count(*) from meridian.source_tables") == [(0,)]


def test_a_reference_without_its_schema_is_told(source: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject) as caught:
        source.execute("create table t from source s (reference 'orders')")
    assert caught.value.diag.message_hint == "Name it with its schema: shop.orders."
    with pytest.raises(psycopg.errors.UndefinedObject) as caught:
        source.execute("create table t from source s (reference 'public.t')")
    assert str(caught.value.diag.message_hint).endswith("ADD TABLE public.t.")


def test_a_table_is_fed_once(source: psycopg.Connection) -> None:
    source.execute("create table o from source s (reference 'shop.orders')")
    assert refusal(source, "create table o2 from source s (reference 'shop.orders')")[0] == "0A000"
    source.execute("create table if not exists o from source s (reference 'shop.orders')")
    assert refusal(source, "insert into o values (1, now())")[0] == "42809"
    assert refusal(source, "alter table o drop column id")[0] == "0A000"


def test_nothing_is_left_of_a_rollback(
    source: psycopg.Connection, database: UpstreamDatabase
) -> None:
    source.execute("begin")
    source.execute("create source s2 from postgres connection c (publication 'p')")
    source.execute("create table o from source s2 (reference 'shop.orders')")
    source.execute("alter source s2 rename to s3")
    source.execute("rollback")
    assert database.slots() == []
    assert rows(source, "select source_name from meridian.sources") == [("s",)]


def test_a_source_is_renamed_and_moved_with_its_errors(source: psycopg.Connection) -> None:
    source.execute("create index on s_errors (code)")
    source.execute("alter source s rename to feed")
    assert rows(source, "select count(*) from feed_errors") == [(0,)]
    source.execute("create schema x")
    source.execute("alter source feed set schema x")
    assert rows(source, "select count(*) from x.feed_errors") == [(0,)]
    source.execute("create role bob")
    source.execute("alter source x.feed owner to bob")
    source.execute("comment on source x.feed is 'all'")
    source.execute("alter source x.feed set (schema_changes = 'stop')")
    source.execute("alter source x.feed owner to meridian")
    source.execute("drop role bob")
    assert refusal(source, "drop schema x")[0] == "2BP01"
    source.execute("drop schema x cascade")
    assert rows(source, "select count(*) from meridian.sources") == [(0,)]


def test_a_schema_does_not_tear_sources_from_what_they_need(source: psycopg.Connection) -> None:
    source.execute("create schema x")
    source.execute("create source x.s from postgres connection c (publication 'p')")
    source.execute("create table o from source x.s (reference 'shop.orders')")
    assert refusal(source, "drop schema x cascade") == (
        "2BP01",
        "cannot drop source s because table here.o depends on it",
    )
    source.execute("alter connection c set schema x")
    source.execute("drop source x.s cascade")
    assert refusal(source, "drop schema x cascade") == (
        "2BP01",
        "cannot drop connection c because source here.s depends on it",
    )
    source.execute("drop connection x.c cascade")
    source.execute("drop schema x")
