"""Isolation levels as sessions have them: what each sees, and what it may do."""

import asyncio

import psycopg
import pytest
from psycopg import errors

from storage.errors import Determinate
from storage.memory import MemoryStash
from storage.types import Epoch
from tests.session.transactions.test_staged_files import ForgetfulStash
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import WITHOUT_LOCKS, running


async def value(connection: Connection, text: str) -> object:
    """The one value of a query."""
    return (await all_rows(connection, text))[0][0]


async def setup(connection: Connection) -> None:
    await connection.execute("create table t (a int)")
    await connection.execute("insert into t values (1), (2)")


async def refused(connection: Connection, text: str, error: type[psycopg.Error]) -> str:
    """The text of the error."""
    with pytest.raises(error) as caught:
        await connection.execute(text)
    return str(caught.value)


@on_a_loop
async def test_read_committed_sees_what_others_commit_between_statements() -> None:
    async with running() as stack, connected(stack, 2) as (reader, other):
        await setup(other)
        await reader.execute("begin isolation level read committed")
        assert await value(reader, "select count(*) from t") == 2
        await reader.execute("insert into t values (10)")
        await other.execute("insert into t values (3)")
        assert await all_rows(reader, "select a from t order by a") == [(1,), (2,), (3,), (10,)]
        await reader.execute("commit")


@on_a_loop
async def test_repeatable_read_does_not() -> None:
    async with running() as stack, connected(stack, 2) as (reader, other):
        await setup(other)
        await reader.execute("begin isolation level repeatable read")
        assert await value(reader, "select count(*) from t") == 2
        await other.execute("insert into t values (3)")
        assert await value(reader, "select count(*) from t") == 2
        await reader.execute("insert into t values (10)")
        # What was read has changed, but no row that this transaction replaces: it commits.
        await reader.execute("commit")
        assert await value(reader, "select count(*) from t") == 4


@on_a_loop
async def test_the_strongest_does_not_commit_then() -> None:
    async with running() as stack, connected(stack, 2) as (reader, other):
        await setup(other)
        await reader.execute("begin isolation level serializable")
        assert await value(reader, "select count(*) from t") == 2
        await other.execute("insert into t values (3)")
        await reader.execute("insert into t values (10)")
        await refused(reader, "commit", errors.SerializationFailure)


@on_a_loop
async def test_read_committed_has_its_own_ddl_on_top() -> None:
    async with running() as stack, connected(stack, 2) as (writer, other):
        await setup(other)
        await writer.execute("begin isolation level read committed")
        await writer.execute("create table u (b int)")
        await writer.execute("insert into u values (7)")
        await other.execute("create table v (c int)")
        assert await all_rows(writer, "select b from u") == [(7,)]
        assert await all_rows(writer, "select c from v") == []
        await writer.execute("savepoint s")
        await writer.execute("drop table u")
        await writer.execute("rollback to s")
        await writer.execute("commit")
        assert await all_rows(other, "select b from u") == [(7,)]


@on_a_loop
async def test_read_committed_never_shows_two_versions_of_a_row() -> None:
    """Who changes a row that somebody else has changed since cannot commit, and hears it at once:
    the first committer wins the row (A5).
    """
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (writer, other):
        for change in ("update t set a = a + 100 where a = 1", "delete from t where a = 1"):
            await setup(other)
            for statement in (
                "select a from t",
                "update t set a = 0 where a = 11",
                "delete from t",
                "insert into t select 1 from t",
                "commit",
            ):
                await writer.execute("begin isolation level read committed")
                await writer.execute("update t set a = a + 10 where a = 1")
                await other.execute(change)
                # What does not look at the table goes on.
                assert await value(writer, "select 1") == 1
                text = await refused(writer, statement, errors.SerializationFailure)
                assert 'a row of table "t" that this transaction has changed' in text.lower()
                await writer.execute("rollback")
                await other.execute("delete from t; insert into t values (1), (2)")
            await other.execute("drop table t")


@on_a_loop
async def test_read_committed_goes_on_from_a_savepoint_before_its_change() -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (writer, other):
        await setup(other)
        await writer.execute("begin isolation level read committed")
        await writer.execute("insert into t values (20)")
        await writer.execute("savepoint s")
        await writer.execute("update t set a = a + 10 where a = 1")
        await other.execute("update t set a = a + 100 where a = 1")
        await refused(writer, "select a from t", errors.SerializationFailure)
        await writer.execute("rollback to s")
        assert await all_rows(writer, "select a from t order by a") == [(2,), (20,), (101,)]
        await writer.execute("update t set a = a + 10 where a = 101")
        assert await all_rows(writer, "select a from t order by a") == [(2,), (20,), (111,)]
        await writer.execute("commit")
        assert await all_rows(other, "select a from t order by a") == [(2,), (20,), (111,)]


@on_a_loop
async def test_read_committed_sees_others_change_what_it_has_not_changed() -> None:
    async with running() as stack, connected(stack, 2) as (writer, other):
        await setup(other)
        await writer.execute("begin isolation level read committed")
        await writer.execute("update t set a = a + 10 where a = 1")
        await other.execute("update t set a = a + 100 where a = 2")
        assert await all_rows(writer, "select a from t order by a") == [(11,), (102,)]
        await writer.execute("update t set a = a + 10")
        await other.execute("insert into t values (3)")
        assert await all_rows(writer, "select a from t order by a") == [(3,), (21,), (112,)]
        await writer.execute("commit")


@on_a_loop
async def test_read_committed_never_shows_a_key_twice() -> None:
    async with running() as stack, connected(stack, 2) as (writer, other):
        await other.execute("create table k (a int primary key, b int)")
        await writer.execute("begin isolation level read committed")
        await writer.execute("insert into k values (1, 1)")
        await other.execute("insert into k values (1, 2)")
        await refused(writer, "select a from k", errors.UniqueViolation)
        await writer.execute("rollback")
        assert await all_rows(writer, "select * from k") == [(1, 2)]


@on_a_loop
async def test_bounded_staleness_reads_and_does_not_write() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        await connection.execute("begin")
        await connection.execute("set consistency = 'bounded staleness 10s'")
        assert await value(connection, "select count(*) from t") == 2
        assert await value(connection, "show transaction_read_only") == "on"
        assert await value(connection, "select current_setting('transaction_read_only')") == "on"
        await refused(connection, "insert into t values (3)", errors.ReadOnlySqlTransaction)
        await connection.execute("rollback")
        await connection.execute("begin")
        await connection.execute("set consistency = 'bounded staleness 10s'")
        await refused(connection, "set transaction read write", errors.ActiveSqlTransaction)
        await connection.execute("rollback")
        assert await value(connection, "show transaction_read_only") == "off"
        await connection.execute("set consistency = 'bounded staleness 10s'")
        await refused(connection, "create table u (a int)", errors.ReadOnlySqlTransaction)
        assert await value(connection, "select count(*) from t") == 2


@on_a_loop
async def test_bounded_staleness_does_not_wait_for_a_commit_on_its_way() -> None:
    stash = ForgetfulStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (reader, writer):
        await setup(writer)
        stash.silent = True
        writing = asyncio.ensure_future(writer.execute("insert into t values (3)"))  # noqa: TID251
        await stash.asked.wait()
        await reader.execute("set consistency = 'bounded staleness 1h'")
        assert await value(reader, "select count(*) from t") == 2
        await reader.execute("set consistency = 'bounded staleness 1ms'")
        await asyncio.sleep(0.01)
        await refused(reader, "select count(*) from t", errors.SerializationFailure)
        stash.silent = False
        await writing
        await reader.execute("set consistency = 'bounded staleness 1h'")
        assert await value(reader, "select count(*) from t") == 3


# --- snapshots -----------------------------------------------------------------------------------


@on_a_loop
async def test_a_snapshot_is_shared_while_its_owner_lives() -> None:
    async with running() as stack, connected(stack, 3) as (first, second, other):
        await setup(other)
        await first.execute("begin isolation level repeatable read read only")
        name = await value(first, "select pg_export_snapshot()")
        await other.execute("insert into t values (3)")
        await other.execute("create table later (a int)")
        await second.execute("begin isolation level serializable")
        await second.execute(f"set transaction snapshot '{name}'")
        assert await value(second, "select count(*) from t") == 2
        await refused(second, "select * from later", errors.UndefinedTable)
        await second.execute("rollback")
        await first.execute("commit")
        await second.execute("begin isolation level repeatable read")
        await refused(second, f"set transaction snapshot '{name}'", errors.UndefinedObject)
        await second.execute("rollback")


@on_a_loop
async def test_who_writes_at_an_imported_snapshot_is_validated_from_there() -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 3) as (first, second, other):
        await setup(other)
        await first.execute("begin isolation level repeatable read")
        name = await value(first, "select pg_export_snapshot()")
        await other.execute("update t set a = 20 where a = 2")
        await second.execute("begin isolation level repeatable read")
        await second.execute(f"set transaction snapshot '{name}'")
        await second.execute("delete from t where a = 2")
        await refused(second, "commit", errors.SerializationFailure)


class UnansweringStash(MemoryStash):
    """Says so many times more who leads; None: always."""

    answers: int | None = None

    async def confirm(self, epoch: Epoch) -> None:
        if self.answers is not None:
            self.answers -= 1
            if self.answers < 0:
                raise Determinate("away")
        await super().confirm(epoch)


@on_a_loop
async def test_a_snapshot_is_imported_by_who_still_leads() -> None:
    """Strict reads of it come after a take-over, so they need the stash's word (D4)."""
    stash = UnansweringStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (owner, other):
        await setup(owner)
        await owner.execute("begin isolation level repeatable read")
        await value(owner, "select count(*) from t")
        name = await value(owner, "select pg_export_snapshot()")
        stash.answers = 0
        await other.execute("begin isolation level serializable")
        await refused(other, f"set transaction snapshot '{name}'", errors.IoError)
        await other.execute("rollback")
        await other.execute("begin isolation level repeatable read")
        await other.execute(f"set transaction snapshot '{name}'")
        assert await value(other, "select count(*) from t") == 2
        await other.execute("rollback")
        stash.answers = None
        await other.execute("begin isolation level serializable")
        await other.execute(f"set transaction snapshot '{name}'")
        assert await value(other, "select count(*) from t") == 2
        await other.execute("rollback")


@on_a_loop
async def test_a_snapshot_comes_before_any_query() -> None:
    async with running() as stack, connected(stack, 2) as (first, second):
        await setup(first)
        await first.execute("begin isolation level repeatable read")
        name = await value(first, "select pg_export_snapshot()")
        await second.execute("begin isolation level repeatable read")
        await second.execute("select * from t")
        await refused(second, f"set transaction snapshot '{name}'", errors.ActiveSqlTransaction)
        await second.execute("rollback")
        await second.execute("begin isolation level read committed")
        await refused(second, f"set transaction snapshot '{name}'", errors.FeatureNotSupported)
        await second.execute("rollback")


# --- the past ------------------------------------------------------------------------------------


@on_a_loop
async def test_a_whole_transaction_in_the_past() -> None:
    async with running() as stack, connected(stack, 2) as (reader, other):
        await setup(other)
        then = await value(other, "select meridian_now()")
        await other.execute("insert into t values (3)")
        await other.execute("create table later (a int)")
        await reader.execute(f"begin as of {then}")
        assert await value(reader, "select meridian_now()") == then
        assert await value(reader, "select count(*) from t") == 2
        assert await value(reader, "show transaction_read_only") == "on"
        await reader.execute("savepoint s")
        await refused(reader, "select * from later", errors.UndefinedTable)
        await reader.execute("rollback to s")
        await other.execute("delete from t")
        assert await value(reader, "select count(*) from t") == 2
        await refused(reader, "insert into t values (4)", errors.ReadOnlySqlTransaction)
        await reader.execute("rollback")
        assert await value(reader, "select count(*) from t") == 0


@on_a_loop
async def test_at_least_then() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        then = await value(connection, "select meridian_now()")
        await connection.execute("insert into t values (3)")
        await connection.execute(
            f"start transaction isolation level serializable as of at least {then}"
        )
        assert await value(connection, "select count(*) from t") == 3
        await connection.execute("commit")


@on_a_loop
async def test_a_level_may_be_named_with_the_past() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        then = await value(connection, "select meridian_now()")
        await connection.execute("insert into t values (3)")
        for level in ("repeatable read", "read committed"):
            await connection.execute(f"begin isolation level {level} as of {then}")
            assert await value(connection, "show transaction_isolation") == level
            assert await value(connection, "select count(*) from t") == 2
            assert await value(connection, "select meridian_now()") == then
            await connection.execute("commit")
        await refused(
            connection, "begin isolation level repeatable read as of 1", errors.SnapshotTooOld
        )
        assert connection.pgconn.transaction_status == 0
        assert await value(connection, "show transaction_isolation") == "serializable"
        assert await value(connection, "show transaction_read_only") == "off"


@on_a_loop
async def test_too_long_ago_begins_nothing() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await refused(connection, "begin as of 1", errors.SnapshotTooOld)
        assert connection.pgconn.transaction_status == 0
        await refused(connection, "begin read write as of 1", errors.ReadOnlySqlTransaction)
        await refused(connection, "commit as of 1", errors.FeatureNotSupported)
        await connection.execute("begin")
        await refused(connection, "begin as of 1", errors.ActiveSqlTransaction)
        assert connection.pgconn.transaction_status == 3
        await connection.execute("rollback")


@on_a_loop
async def test_now_is_where_a_statement_reads() -> None:
    async with running() as stack, connected(stack, 2) as (connection, other):
        await setup(other)
        await connection.execute("begin isolation level read committed")
        first = await value(connection, "select meridian_now()")
        await other.execute("insert into t values (3)")
        second = await value(connection, "select meridian_now()")
        await connection.execute("commit")
        assert await value(connection, f"select count(*) from t as of {first}") == 2
        assert await value(connection, f"select count(*) from t as of {second}") == 3
        await connection.execute("begin")
        third = await value(connection, "select meridian_now()")
        assert await value(connection, "select count(*) from t as of meridian_now()") == 3
        back = f"meridian_now() - {third} + {first}"
        assert await value(connection, f"select count(*) from t as of {back}") == 2
        await other.execute("insert into t values (4)")
        assert await value(connection, "select meridian_now()") == third


@on_a_loop
async def test_copy_out_of_the_past() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await setup(connection)
        then = await value(connection, "select meridian_now()")
        await connection.execute("delete from t where a = 1")
        for text in (
            f"copy (select a from t as of {then} ) to stdout",
            f"copy t to stdout as of {then}",
        ):
            async with connection.cursor().copy(text) as copy:  # type: ignore[arg-type]
                assert [row async for row in copy.rows()] == [("1",), ("2",)]
