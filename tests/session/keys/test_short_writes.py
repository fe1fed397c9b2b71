"""Writes by key alone in their transactions: the short way answers as the general one does."""

import asyncio
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import psycopg
import pytest

from coordinator.core.messages.replies import Refused, RefusedReason
from coordinator.core.messages.requests import Insertion
from coordinator.driver.timelines import Timelines
from coordinator.execution.context import ExecutionLimits
from sql.catalog.catalog import Column, Key, Table
from sql.statements.bound import Modify, OnConflict, ParameterizedStatement
from tests.support.connections import all_rows, blocked, connected, on_a_loop, pair
from tests.support.stack import WITHOUT_LOCKS, Stack, running

INSERT = "insert into t values (%s, %s, 'x')"
UPDATE = "update t set n = n + %s where a = %s"
DELETE = "delete from t where a = %s"
UPSERT = (
    "insert into t values (%s, %s, 'y')"
    " on conflict (a) do update set n = t.n + excluded.n, b = excluded.b"
)


class Counted:
    """How often the short way was taken, and how often it has led back to the general one."""

    def __init__(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        self.refused = 0
        timelines = stack.services.coordination
        assert isinstance(timelines, Timelines)
        begin_write = timelines.begin_write

        def counted(owner: Any, write: Any, on_reply: Any) -> None:
            def heard(reply: Any) -> None:
                is_refused = isinstance(reply, Refused)
                self.refused += is_refused and reply.reason is RefusedReason.STALE
                on_reply(reply)

            is_change = not isinstance(write, Insertion)
            self.taken += is_change
            begin_write(owner, write, heard if is_change else on_reply)

        monkeypatch.setattr(timelines, "begin_write", counted)


async def _warm(connection: Any) -> None:
    """A table, and the statements bound."""
    await connection.execute("create table nothing (a int)")
    await connection.execute("create table t (a int primary key, n int, b text)")
    for number in (1, 2, 3):
        await connection.execute(INSERT, (number, 0))
    await connection.execute(UPDATE, (0, 1))
    await connection.execute(DELETE, (100,))
    await connection.execute(UPSERT, (1, 0))


def test_it_knows_whatever_a_table_or_a_statement_has() -> None:
    """Who adds a field decides in `execution/short_writes/compile.py` what it means there (I2)."""
    assert {field.name for field in fields(Modify)} == {
        "kind", "table", "source", "tables", "returning", "columns", "old", "extras",
        "returning_old", "returning_tables", "xmins", "conflict", "view_checks", "calls",
        "locking",
    }  # fmt: skip
    assert {field.name for field in fields(OnConflict)} == {
        "arbiters", "update", "assigned", "tables", "indexes",
    }  # fmt: skip
    assert {field.name for field in fields(ParameterizedStatement)} == {
        "bound", "parameters", "tag", "uses_now", "rebind", "tells_timestamp", "look_ups", "uses",
        "supplied", "filled", "fails", "read",
    }  # fmt: skip
    assert {field.name for field in fields(Table)} == {
        "oid", "schema", "name", "shard", "columns", "version", "timeline", "history_us", "keys",
        "checks", "numbers", "foreign_keys", "on_commit", "clustered", "parameters", "unlogged",
        "unique_indexes", "query", "feed", "change_feed",
    }  # fmt: skip
    assert {field.name for field in fields(Key)} == {
        "name", "columns", "primary", "nulls_distinct", "index", "deferrable", "deferred",
        "orders", "parameters", "include",
    }  # fmt: skip
    assert {field.name for field in fields(Column)} == {
        "name", "type", "not_null", "has_default", "default", "expression", "number", "stored",
        "sequence", "identity", "generated", "not_null_name", "domain", "default_of_domain",
        "invariant", "collation", "default_text",
    }  # fmt: skip


@on_a_loop
async def test_the_second_one_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _warm(one)
        counted = Counted(stack, monkeypatch)
        assert (await other.execute(INSERT, (4, 7))).statusmessage == "INSERT 0 1"
        assert (await one.execute(UPDATE, (5, 4))).statusmessage == "UPDATE 1"
        assert (await other.execute(UPDATE, (5, 40))).statusmessage == "UPDATE 0"
        assert (await one.execute(DELETE, (3,))).statusmessage == "DELETE 1"
        assert (await one.execute(DELETE, (3,))).statusmessage == "DELETE 0"
        assert (await one.execute(DELETE, (None,))).statusmessage == "DELETE 0"
        assert (await other.execute(UPSERT, (2, 3))).statusmessage == "INSERT 0 1"
        assert (await other.execute(UPSERT, (9, 3))).statusmessage == "INSERT 0 1"
        assert (counted.taken, counted.refused) == (7, 0)  # NULL was bound anew
        found = await all_rows(other, "select a, n, b from t order by a")
        assert found == [(1, 0, "y"), (2, 3, "y"), (4, 12, "x"), (9, 3, "y")]


@on_a_loop
async def test_a_hot_row_is_a_chain_and_nobody_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 6) as connections:
        await _warm(connections[0])
        counted = Counted(stack, monkeypatch)

        async def count_up(connection: Any) -> None:
            for _ in range(20):
                await connection.execute(UPDATE, (1, 1))

        await asyncio.gather(*map(count_up, connections))
        assert (counted.taken, counted.refused) == (120, 0)
        assert await all_rows(connections[0], "select n from t where a = 1") == [(120,)]


@on_a_loop
async def test_one_group_makes_changes_and_removes_a_row() -> None:
    """What members ahead have made of a row is what the next ones see."""
    async with running() as stack, connected(stack, 5) as connections:
        one = connections[0]
        await _warm(one)
        for _ in range(10):
            sent: Sequence[tuple[str, Any]] = (
                (INSERT, (50, 1)), (UPDATE, (1, 50)), (UPSERT, (50, 5)), (DELETE, (50,)),
                (INSERT, (50, 2)),
            )  # fmt: skip
            work = [c.execute(*s) for c, s in zip(connections, sent, strict=True)]
            told = await asyncio.gather(*work, return_exceptions=True)
            done = [t for t in told if not isinstance(t, BaseException)]
            failed = [t for t in told if isinstance(t, BaseException)]
            assert all(isinstance(t, psycopg.errors.UniqueViolation) for t in failed)
            inserted = sum(str(d.statusmessage).startswith("INSERT") for d in done)
            found = await all_rows(one, "select n, b from t where a = 50")
            assert len(found) <= 1 <= inserted
            await one.execute(DELETE, (50,))


@on_a_loop
async def test_what_fails_fails_as_it_always_does() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (a int primary key, n int not null, b varchar(3) unique)")
        for number in (1, 2):
            await one.execute("insert into t values (%s, %s, %s)", (number, 0, f"b{number}"))
        for _ in range(2):
            with pytest.raises(psycopg.errors.UniqueViolation) as taken:
                await one.execute("insert into t values (%s, %s, %s)", (1, 0, "z"))
            assert taken.value.diag.constraint_name == "t_pkey"
            assert taken.value.diag.message_detail == "Key (a)=(1) already exists."
            with pytest.raises(psycopg.errors.UniqueViolation) as taken:
                await one.execute("insert into t values (%s, %s, %s)", (7, 0, "b2"))
            assert taken.value.diag.constraint_name == "t_b_key"
            with pytest.raises(psycopg.errors.NumericValueOutOfRange):
                await one.execute("update t set n = n + 2147483647 + 1 where a = %s", (1,))
            with pytest.raises(psycopg.errors.NotNullViolation) as null:
                await one.execute("update t set n = %s::int where a = %s", (None, 1))
            assert null.value.diag.message_detail == "Failing row contains (1, null, b1)."
            with pytest.raises(psycopg.errors.DivisionByZero):
                await one.execute("update t set n = 1 / n where a = %s", (2,))
        await one.execute("set default_transaction_read_only = on")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await one.execute("update t set n = 1 / n where a = %s", (2,))
        assert await all_rows(one, "select * from t order by a") == [(1, 0, "b1"), (2, 0, "b2")]


@on_a_loop
async def test_who_has_read_the_old_row_conflicts_and_others_do_not() -> None:
    async with running() as stack, connected(stack, 3) as (one, first, second):
        await _warm(one)
        await one.execute("create table seen (n int)")
        await pair(first, second)
        for connection, key in ((first, 1), (second, 2)):
            await connection.execute("insert into seen select n from t where a = %s", (key,))
        await one.execute(UPDATE, (1, 1))
        with pytest.raises(psycopg.errors.SerializationFailure):
            await first.execute("commit")
        await second.execute("commit")
        await pair(first, second)
        for connection, key in ((first, 1), (second, 2)):
            await connection.execute("insert into seen select n from t where a = %s", (key,))
        await one.execute(DELETE, (2,))
        with pytest.raises(psycopg.errors.SerializationFailure):
            await second.execute("commit")
        await first.execute("commit")


@on_a_loop
async def test_a_block_that_wants_the_key_conflicts() -> None:
    async with running() as stack, connected(stack, 3) as (one, first, second):
        await _warm(one)
        await pair(first, second)
        for connection, key in ((first, 7), (second, 8)):
            await connection.execute(INSERT, (key, 0))
        await one.execute(INSERT, (7, 1))
        with pytest.raises(psycopg.errors.UniqueViolation):
            await first.execute("commit")
        await second.execute("commit")
        assert await all_rows(one, "select a, n from t where a > 3 order by a") == [(7, 1), (8, 0)]


@on_a_loop
async def test_who_meets_a_lock_waits_and_begins_again() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _warm(one)
        for statement, values, left in (
            (UPDATE, (10, 1), [(11, "y")]),
            (UPSERT, (1, 10), [(21, "y")]),
            (DELETE, (1,), []),
        ):
            await other.execute("begin")
            await other.execute("update t set n = n + 1 where a = 1 and n < 5")
            await other.execute("select * from t where a = 1 for update")
            await one.execute(UPDATE, (1, 2))  # another row is nobody's
            waiting = await blocked(stack, one, statement, values)
            await other.execute("commit")
            await waiting
            assert await all_rows(one, "select n, b from t where a = 1") == left


@on_a_loop
async def test_a_table_that_is_locked_is_waited_for() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _warm(one)
        await other.execute("begin")
        await other.execute("lock table t in share mode")
        waiting = await blocked(stack, one, UPDATE, (10, 1))
        await other.execute("commit")
        await waiting
        assert await all_rows(one, "select n from t where a = 1") == [(10,)]


@on_a_loop
async def test_a_definition_that_changes_is_bound_again() -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (one, other):
        await _warm(one)
        await other.execute("begin")
        await other.execute("alter table t add check (n < 3)")
        await one.execute(UPDATE, (2, 1))
        with pytest.raises(psycopg.errors.SerializationFailure):
            await other.execute("commit")
        await other.execute("alter table t add check (n < 3)")
        with pytest.raises(psycopg.errors.CheckViolation):
            await one.execute(UPDATE, (2, 1))
        await other.execute("create table child (a int references t)")
        await other.execute("insert into child values (2)")
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            await one.execute(DELETE, (2,))


GENERAL = (
    "create table o (a int primary key, n int check (n < 100))",
    "create table o (a int primary key, n int, m int generated always as (n + 1) stored)",
    "create table o (a int primary key, n int references p)",
    "create table o (a int primary key deferrable, n int)",
    "create table o (a numeric primary key, n int)",
    "create table o (a int primary key, n int, unique nulls not distinct (n))",
    "create table o (a int primary key, n int); create unique index on o ((n + 1)) where n > 1000",
    "create temp table o (a int primary key, n int) on commit delete rows",
)


@pytest.mark.parametrize("made", GENERAL)
def test_what_is_not_built_goes_the_general_way(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @on_a_loop
    async def story() -> None:
        async with running() as stack, connected(stack, 1) as (one,):
            await one.execute("create table p (a int primary key)")
            await one.execute("insert into p values (0), (1), (2), (3)")
            for statement in made.split("; "):
                await one.execute(statement.encode())
            counted = Counted(stack, monkeypatch)
            for key in (1, 2, 3):
                await one.execute("insert into o (a, n) values (%s, %s)", (key, key))
                await one.execute("update o set n = n - 1 where a = %s", (key,))
            assert counted.taken == 0

    story()


OTHER_STATEMENTS = (
    "update t set n = n + 1 where a = %s returning old.n",
    "update t set n = n + 1 where a = %s returning xmin",
    "update t set n = n + 1 where a = %s returning (select 1)",
    "update t set n = n + 1 where a = %s returning random()",
    "update t set n = n + 1 where a = %s returning now()",
    "update t set a = a + 10 where a = %s",
    "update t set n = (select max(n) from t) where a = %s",
    "update t set n = random() where a = %s",
    "update t set b = now()::text where a = %s",
    "update t set b = 'x' where a = %s and now() is not null",
    "update t set b = repeat(b, 2) where a = %s",
    "update t set n = 5 where n = %s",
    "delete from t using t u where t.a = u.a and t.a = %s",
)


@on_a_loop
async def test_other_statements_go_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await _warm(one)
        counted = Counted(stack, monkeypatch)
        for statement in OTHER_STATEMENTS:
            for key in (1, 1, 1):
                await one.execute(statement, (key,))
        assert counted.taken == 0


@on_a_loop
async def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ExecutionLimits(short_writes=False)
    async with running(limits=limits) as stack, connected(stack, 1) as (one,):
        counted = Counted(stack, monkeypatch)
        await _warm(one)
        for _ in range(3):
            await one.execute(UPDATE, (1, 1))
        assert counted.taken == 0


@on_a_loop
async def test_rows_in_files_are_found_once_they_are_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await _warm(one)
        await one.execute("optimize t")
        counted = Counted(stack, monkeypatch)
        for _ in range(3):
            assert (await one.execute(UPDATE, (1, 1))).statusmessage == "UPDATE 1"
            with pytest.raises(psycopg.errors.UniqueViolation):
                await one.execute(INSERT, (2, 5))
        assert counted.taken == 6
        assert await all_rows(one, "select * from t where a = 1") == [(1, 3, "y")]
