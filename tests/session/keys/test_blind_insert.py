"""INSERT .. VALUES alone in its transaction: the short way answers as the general one does."""

from dataclasses import fields
from typing import Any

import psycopg
import pytest

from coordinator.core.messages.requests import Insertion
from coordinator.driver.timelines import Timelines
from sql.catalog.catalog import Column, Table
from sql.statements.bound import Modify
from tests.support.connections import all_rows, blocked, connected, on_a_loop, pair
from tests.support.stack import WITHOUT_LOCKS, Stack, running

INSERT = "insert into t values (%s, %s)"


class Counted:
    """How often the short way was taken."""

    def __init__(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        timelines = stack.services.coordination
        assert isinstance(timelines, Timelines)
        begin_write = timelines.begin_write

        def counted(owner: Any, write: Any, on_reply: Any) -> None:
            self.count += isinstance(write, Insertion)
            begin_write(owner, write, on_reply)

        monkeypatch.setattr(timelines, "begin_write", counted)


def test_it_knows_whatever_a_table_or_a_statement_has() -> None:
    """Who adds a field decides in `execution/blind_insert.py` what it means there (I2)."""
    assert {field.name for field in fields(Modify)} == {
        "kind", "table", "source", "tables", "returning", "columns", "old", "extras",
        "returning_old", "returning_tables", "xmins", "conflict", "view_checks", "calls",
        "locking",
    }  # fmt: skip
    assert {field.name for field in fields(Table)} == {
        "oid", "schema", "name", "shard", "columns", "version", "timeline", "history_us", "keys",
        "checks", "numbers", "foreign_keys", "on_commit", "clustered", "parameters", "unlogged",
        "unique_indexes", "query", "feed", "change_feed",
    }  # fmt: skip
    assert {field.name for field in fields(Column)} == {
        "name", "type", "not_null", "has_default", "default", "expression", "number", "stored",
        "sequence", "identity", "generated", "not_null_name", "domain", "default_of_domain",
        "invariant", "collation", "default_text",
    }  # fmt: skip


@on_a_loop
async def test_the_second_one_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        taken = Counted(stack, monkeypatch)
        await one.execute("create table t (a int not null, b text default 'x')")
        assert (await one.execute(INSERT, (1, "one"))).statusmessage == "INSERT 0 1"
        for number in (2, 3):
            done = await other.execute(
                "insert into t values (%s, %s), (%s, null)", [number, "o", 7]
            )
            assert done.statusmessage == "INSERT 0 2"
        await one.execute("insert into t (a) values (4)")
        await one.execute("insert into t (a) values (4)")
        assert taken.count >= 2
        found = await all_rows(other, "select a, b, count(*) from t group by a, b order by a, b")
        assert found == [(1, "one", 1), (2, "o", 1), (3, "o", 1), (4, "x", 2), (7, None, 2)]


@on_a_loop
async def test_what_fails_fails_as_it_always_does() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (a int not null, b varchar(3))")
        for _ in range(3):
            await one.execute(INSERT, (1, "abc"))
            with pytest.raises(psycopg.errors.NotNullViolation) as null:
                await one.execute(INSERT, (None, "abc"))
            assert null.value.diag.column_name == "a"
            assert null.value.diag.message_detail == "Failing row contains (null, abc)."
            with pytest.raises(psycopg.errors.StringDataRightTruncation):
                await one.execute(INSERT, (1, "abcd"))
            with pytest.raises(psycopg.errors.DivisionByZero):
                await one.execute("insert into t values (1 / %s::int, 'x')", [0])
        await one.execute("set default_transaction_read_only = on")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await one.execute(INSERT, (1, "abc"))
        assert await all_rows(one, "select count(*) from t") == [(3,)]


@on_a_loop
async def test_a_definition_that_changes_is_bound_again() -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (a int, b text)")
        for _ in range(2):
            await one.execute(INSERT, (1, "old"))
        await other.execute("begin")
        await other.execute("alter table t rename to gone")
        await other.execute("create table t (a bigint, b text not null)")
        await one.execute(INSERT, (2, "old"))
        await other.execute("commit")
        await one.execute(INSERT, (3_000_000_000, "new"))
        with pytest.raises(psycopg.errors.NotNullViolation):
            await one.execute(INSERT, (4, None))
        assert await all_rows(one, "select * from gone order by a, b") == [
            (1, "old"), (1, "old"), (2, "old"),
        ]  # fmt: skip
        assert await all_rows(one, "select * from t") == [(3_000_000_000, "new")]


@on_a_loop
async def test_who_waits_for_a_definition_is_bound_again() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (a int, b text)")
        for _ in range(2):
            await one.execute(INSERT, (1, "old"))
        await other.execute("begin")
        await other.execute("alter table t rename to gone")
        await other.execute("create table t (a int, b text, c text default 'new')")
        waiting = await blocked(stack, one, INSERT, (2, "old"))
        await other.execute("commit")
        await waiting
        assert await all_rows(one, "select * from gone") == [(1, "old"), (1, "old")]
        assert await all_rows(one, "select * from t") == [(2, "old", "new")]


@on_a_loop
async def test_who_has_read_the_rows_it_brings_conflicts() -> None:
    async with running() as stack, connected(stack, 3) as (one, first, second):
        await one.execute("create table nothing (a int)")
        await one.execute("create table t (a int, b text)")
        for _ in range(2):
            await one.execute(INSERT, (1, "x"))
        await pair(first, second)
        for connection in (first, second):
            await connection.execute(
                "insert into t select count(*), 'n' from t where a = %s",
                [1 if connection is first else 2],
            )
        await one.execute(INSERT, (1, "y"))
        with pytest.raises(psycopg.errors.SerializationFailure):
            await first.execute("commit")
        await second.execute("commit")


@on_a_loop
async def test_a_batch_of_many_statements_is_one_transaction() -> None:
    """In a pipeline the statement is not alone, so nothing of it stays when a later one fails."""
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (a int, b text)")
        for _ in range(2):
            await one.execute(INSERT, (1, "x"), prepare=True)

        async def together() -> None:
            async with one.pipeline():
                await one.execute(INSERT, (2, "y"), prepare=True)
                await one.execute("insert into t values ('no', 'z')")

        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            await together()
        assert await all_rows(one, "select count(*) from t") == [(2,)]
