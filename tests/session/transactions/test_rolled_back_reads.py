"""Read sets after ROLLBACK TO, of TRUNCATE, and of casts: conflicts between sessions."""

import contextlib
from typing import LiteralString

import psycopg
import pytest

from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import WITHOUT_LOCKS, running

LEVELS: tuple[LiteralString, ...] = ("read committed", "repeatable read", "serializable")

UNDONE: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("insert into child values (99)", "insert into parent values (99)"),
    ("delete from parent where a = 2", "insert into child values (2)"),
    ("update parent set a = 7 where a = 2", "insert into child values (2)"),
    ("insert into child values (1)", "delete from parent where a = 1"),
    ("select * from parent where a = 1 for update", "delete from parent where a = 1"),
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("undone", "other"), UNDONE)
@on_a_loop
async def test_what_foreign_keys_looked_for_may_be_taken_back(
    undone: LiteralString, other: LiteralString, level: LiteralString
) -> None:
    async with running() as stack, connected(stack, 2) as (one, two):
        await one.execute("create table parent (a int primary key)")
        await one.execute("create table child (a int references parent)")
        await one.execute("create table elsewhere (x int)")
        await one.execute("insert into parent values (1), (2)")
        await one.execute(f"begin isolation level {level}")
        await one.execute("savepoint q")
        with contextlib.suppress(psycopg.errors.ForeignKeyViolation):
            await one.execute(undone)
        await one.execute("rollback to q")
        await one.execute("insert into elsewhere values (1)")
        await two.execute(other)
        with contextlib.suppress(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        # Whatever it was told, the server lives, and no row lacks the one that it refers to.
        orphans = "select * from child where a not in (select a from parent)"
        assert await all_rows(two, orphans) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("truncate", ["truncate parent cascade", "truncate parent, child"])
@on_a_loop
async def test_truncate_leaves_no_orphans(truncate: LiteralString, level: LiteralString) -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (one, two):
        await one.execute("create table parent (a int primary key)")
        await one.execute("create table child (a int references parent)")
        await one.execute("insert into parent values (1), (2)")
        await one.execute(f"begin isolation level {level}")
        await one.execute(truncate)
        await two.execute("insert into child values (2)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        assert await all_rows(two, "select a from child") == [(2,)]


@on_a_loop
async def test_an_alteration_that_is_taken_back_conflicts_with_nobody() -> None:
    async with running() as stack, connected(stack, 2) as (one, two):
        await one.execute("create table t (a int)")
        await one.execute("create table elsewhere (x int)")
        await one.execute("begin")
        await one.execute("savepoint q")
        await one.execute("alter table t add column b int")
        await one.execute("rollback to q")
        await one.execute("insert into elsewhere values (1)")
        await two.execute("insert into t values (1)")
        await one.execute("commit")
        assert await all_rows(two, "select a from t, elsewhere") == [(1,)]


CASTS: tuple[LiteralString, ...] = (
    "o = -1", "i::oid = 4294967295", "o::int4 = -1", "n::name = repeat('x', 63)::name",
    "i8::int4 = 1", "o = 8589934592 + 0 * i8",
)  # fmt: skip


@pytest.mark.parametrize("condition", CASTS)
@on_a_loop
async def test_casts_that_change_values_or_fail_are_computed(condition: LiteralString) -> None:
    """A query and a change of the same rows agree, also in their failure; a phantom is met."""
    async with running() as stack, connected(stack, 2) as (one, two):
        await one.execute("create table t (i int, i8 int8, o oid, n text)")
        await one.execute("create table elsewhere (x int)")
        begin = "begin isolation level serializable"
        row: LiteralString = "(-1, 5000000000, 4294967295, repeat('x', 70))"
        await one.execute(begin)
        await one.execute(f"select * from t where {condition}")
        await one.execute("insert into elsewhere values (1)")
        await two.execute(f"insert into t values {row}")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        told: list[object] = []
        for text in (
            f"select * from t where {condition} is true",
            f"select * from t where {condition}",
            f"update t set i = i where {condition}",
            f"delete from t where {condition}",
        ):
            try:
                told.append((await one.execute(text)).rowcount)
            except psycopg.Error as error:
                told.append(error.sqlstate)
        assert len(set(told)) == 1, told
