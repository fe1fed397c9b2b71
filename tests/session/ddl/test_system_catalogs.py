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
