"""SELECT FOR UPDATE and its kin, and LOCK TABLE: nobody waits, what was read is validated."""

import re

import pytest
from psycopg import errors

from tests.session.transactions.test_isolation import refused, value
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

WEAK = ("repeatable read", "read committed")


@pytest.mark.parametrize("level", WEAK)
@pytest.mark.parametrize("words", ["for update", "for no key update", "for share", "for key share"])
@on_a_loop
async def test_what_was_locked_has_not_changed_at_the_commit(level: str, words: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("create table log (v int)")
        await other.execute("insert into t values (1, 10), (2, 20)")
        await one.execute(f"begin isolation level {level}".encode())
        assert await value(one, f"select v from t where id = 1 {words}") == 10
        await other.execute("update t set v = 11 where id = 1")
        await one.execute("insert into log values (10)")
        await refused(one, "commit", errors.SerializationFailure)
        assert await all_rows(other, "select v from log") == []


@pytest.mark.parametrize("level", WEAK)
@on_a_loop
async def test_the_detail_says_when_it_was_read_and_changed(level: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int)")
        await one.execute(f"begin isolation level {level}".encode())
        await one.execute("select id from t for update")
        await other.execute("insert into t values (1)")
        await one.execute("insert into t values (2)")
        with pytest.raises(errors.SerializationFailure) as caught:
            await one.execute("commit")
        detail = caught.value.diag.message_detail or ""
        changed, read = (int(number) for number in re.findall(r"\d+", detail))
        assert changed > read, detail


@pytest.mark.parametrize("level", WEAK)
@on_a_loop
async def test_without_the_words_it_may_have_changed(level: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("insert into t values (1, 10)")
        await one.execute(f"begin isolation level {level}".encode())
        assert await value(one, "select v from t where id = 1") == 10
        await other.execute("update t set v = 11 where id = 1")
        await one.execute("insert into t values (3, 30)")
        await one.execute("commit")


@pytest.mark.parametrize("level", WEAK)
@on_a_loop
async def test_other_rows_may_change(level: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("insert into t values (1, 10), (2, 20)")
        await one.execute(f"begin isolation level {level}".encode())
        assert await value(one, "select v from t where id = 1 for update") == 10
        await other.execute("update t set v = 21 where id = 2")
        await one.execute("update t set v = 12 where id = 1")
        await one.execute("commit")
        assert await all_rows(other, "select v from t order by id") == [(12,), (21,)]


@pytest.mark.parametrize(
    "query",
    [
        "select v from plain where id = 1 for update",
        "select v from over_plain where id = 1 for share of over_plain",
        "select v from (select id, v from plain) s where id = 1 for update",
    ],
)
@on_a_loop
async def test_a_view_is_locked_by_its_tables(query: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("create table log (v int)")
        await other.execute("create view plain as select id, v from t")
        await other.execute("create view over_plain as select * from plain where v > 0")
        await other.execute("alter table t rename to renamed")
        await other.execute("insert into renamed values (1, 10), (2, 20)")
        await one.execute("begin isolation level repeatable read")
        assert await value(one, query) == 10
        await other.execute("update renamed set v = 11 where id = 1")
        await one.execute("insert into log values (10)")
        await refused(one, "commit", errors.SerializationFailure)


@on_a_loop
async def test_a_view_may_lock() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("create table log (v int)")
        await other.execute("create view locking as select id, v from t for update")
        await other.execute("insert into t values (1, 10), (2, 20)")
        await one.execute("begin isolation level repeatable read")
        assert await value(one, "select v from locking where id = 1") == 10
        await other.execute("update t set v = 11 where id = 1")
        await one.execute("insert into log values (10)")
        await refused(one, "commit", errors.SerializationFailure)


@on_a_loop
async def test_each_statement_of_read_committed_locks_what_it_saw() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("insert into t values (1, 10), (2, 20)")
        await one.execute("begin isolation level read committed")
        assert await value(one, "select v from t where id = 1 for update") == 10
        await other.execute("update t set v = 21 where id = 2")
        assert await value(one, "select v from t where id = 2 for update") == 21
        await one.execute("update t set v = v + 1")
        await one.execute("commit")
        await one.execute("begin isolation level read committed")
        assert await value(one, "select v from t where id = 2 for update") == 22
        await other.execute("update t set v = 0 where id = 1")
        assert await value(one, "select v from t where id = 1 for update") == 0
        await other.execute("update t set v = 1 where id = 2")
        await one.execute("insert into t values (3, 3)")
        await refused(one, "commit", errors.SerializationFailure)


@on_a_loop
async def test_only_the_tables_that_are_named() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("create table u (id int)")
        await other.execute("insert into t values (1, 10)")
        await other.execute("insert into u values (1)")
        await one.execute("begin isolation level read committed")
        await one.execute("select v from t join u using (id) for update of t")
        await other.execute("insert into u values (2)")
        await one.execute("insert into t values (2, 20)")
        await one.execute("commit")
        await one.execute("begin isolation level read committed")
        await one.execute("select v from t join u using (id) for update of t")
        await other.execute("insert into t values (3, 30)")
        await one.execute("insert into u values (3)")
        await refused(one, "commit", errors.SerializationFailure)


@on_a_loop
async def test_who_only_reads_commits() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int)")
        await other.execute("insert into t values (1)")
        await one.execute("begin isolation level read committed")
        assert await value(one, "select id from t for share") == 1
        await other.execute("delete from t")
        await one.execute("commit")


@on_a_loop
async def test_two_workers_take_two_rows_of_a_queue() -> None:
    take = (
        "update q set taken = true where id = (select id from q where not taken order by id"
        " for update skip locked limit 1) returning id"
    )
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table q (id int, taken bool)")
        await one.execute("insert into q values (1, false), (2, false)")
        assert await all_rows(one, take) == [(1,)]
        assert await all_rows(other, take) == [(2,)]
        assert await all_rows(other, take) == []


@pytest.mark.parametrize("level", ["serializable", *WEAK])
@on_a_loop
async def test_a_locked_table_has_not_changed_at_the_commit(level: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await other.execute("create table log (v int)")
        await one.execute(f"begin isolation level {level}".encode())
        await one.execute("lock table t in share mode")
        await other.execute("insert into t values (1, 10)")
        await one.execute("insert into log values (10)")
        await refused(one, "commit", errors.SerializationFailure)
        assert await all_rows(other, "select v from log") == []


@pytest.mark.parametrize("mode", ["access share", "row share", "row exclusive"])
@on_a_loop
async def test_a_lock_that_lets_writers_in_refuses_nobody(mode: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int, v int)")
        await one.execute("begin")
        await one.execute(f"lock table t in {mode} mode".encode())
        await other.execute("insert into t values (1, 10)")
        await one.execute("insert into t values (2, 20)")
        await one.execute("commit")
        assert await all_rows(other, "select v from t order by id") == [(10,), (20,)]


@on_a_loop
async def test_of_two_who_lock_a_table_and_write_to_it_one_commits() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await other.execute("create table t (id int)")
        for connection in (one, other):
            await connection.execute("begin")
            await connection.execute("lock table t in exclusive mode")
            assert await value(connection, "select count(*) from t") == 0
            await connection.execute("insert into t values (1)")
        await one.execute("commit")
        await refused(other, "commit", errors.SerializationFailure)
        assert await all_rows(one, "select id from t") == [(1,)]
