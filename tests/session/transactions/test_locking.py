"""SELECT FOR UPDATE and its kin, and LOCK TABLE: who waits, and what the commit asks for besides.

How sessions wait for each other is compared with PostgreSQL in `tests/postgres/locking`. Here are
views, subqueries and cursors that lock, what validation adds at each level, and what is refused.
"""

import pytest
from psycopg import errors

from coordinator.core.settings import CoreSettings
from coordinator.execution.context import ExecutionLimits
from tests.session.transactions.test_isolation import refused, value
from tests.support.connections import Connection, all_rows, blocked, connected, on_a_loop
from tests.support.stack import running

WEAK = ("repeatable read", "read committed")
LEVELS = ("serializable", *WEAK)
JOBS = (
    "create table q (id int primary key, kind int, done bool default false)",
    "create table allowed (kind int)",
    "insert into q values (1, 1), (2, 1), (3, 1)",
    "insert into allowed values (1)",
)
TAKE = "select id from q where not done order by id limit 1 for update skip locked"


async def setup(connection: Connection, *more: str) -> None:
    for text in (
        "create table t (id int primary key, v int)",
        "create table log (v int)",
        "insert into t values (1, 10), (2, 20)",
        *more,
    ):
        await connection.execute(text.encode())


async def begin(connection: Connection, level: str, *texts: str) -> None:
    for text in (f"begin isolation level {level}", *texts):
        await connection.execute(text.encode())


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_who_changes_a_locked_row_waits_and_changes_it_as_it_is_then(level: str) -> None:
    async with running() as stack, connected(stack, 3) as (one, other, third):
        await setup(one)
        await begin(one, level)
        assert await value(one, "select v from t where id = 1 for update") == 10
        waiting = await blocked(stack, other, "update t set v = v + 1 where id = 1 returning v")
        assert await value(third, "update t set v = 21 where id = 2 returning v") == 21
        assert await value(third, "select v from t where id = 1") == 10
        await one.execute("update t set v = 100 where id = 1")
        await one.execute("commit")
        assert await (await waiting).fetchall() == [(101,)]


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_a_query_that_has_waited_finds_the_rows_of_then(level: str) -> None:
    """Above READ COMMITTED, too, unless its transaction has seen what is not so any more."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        for seen in (2, 1):
            await begin(one, level, f"update t set v = v + 100 where id = {3 - seen}")
            await begin(other, level)
            assert await value(other, f"select v from t where id = {seen}") is not None
            waiting = await blocked(
                stack, other, "select sum(v) from (select v from t for update) s"
            )
            await one.execute("commit")
            assert await (await waiting).fetchall() == [(130 if seen == 2 else 230,)]
            await other.execute("commit")
        await begin(one, level, "update t set v = 0 where id = 1")
        await begin(other, level)
        assert await value(other, "select v from t where id = 1") == 110
        waiting = await blocked(stack, other, "select v from t where id = 1 for update")
        await one.execute("commit")
        if level == "read committed":
            assert await (await waiting).fetchall() == [(0,)]
        else:
            with pytest.raises(errors.SerializationFailure):
                await waiting


@pytest.mark.parametrize("level", WEAK)
@pytest.mark.parametrize("words", ["for update", "for no key update", "for share", "for key share"])
@on_a_loop
async def test_who_only_locks_keeps_its_rows_until_it_commits(level: str, words: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, level)
        assert await value(one, f"select v from t where id = 1 {words}") == 10
        waiting = await blocked(stack, other, "delete from t where id = 1")
        await one.execute("commit")
        assert (await waiting).rowcount == 1


@on_a_loop
async def test_nowait_says_so() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, "read committed", "select v from t where id = 1 for update")
        with pytest.raises(errors.LockNotAvailable) as error:
            await other.execute("select v from t for share nowait")
        assert error.value.diag.message_primary == 'could not obtain lock on row in relation "t"'
        assert await all_rows(other, "select v from t where id = 2 for update nowait") == [(20,)]
        with pytest.raises(errors.LockNotAvailable) as error:
            await other.execute("begin; lock table t in exclusive mode nowait")
        assert error.value.diag.message_primary == 'could not obtain lock on relation "t"'


@pytest.mark.parametrize(
    "query",
    [
        "select v from plain where id = 1 for update",
        "select v from over_plain where id = 1 for share of over_plain",
        "select v from (select id, v from plain) s where id = 1 for update",
        "select v from locking where id = 1",
    ],
)
@on_a_loop
async def test_a_view_is_locked_by_its_tables(query: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(
            one,
            "create view plain as select id, v from t",
            "create view over_plain as select * from plain where v > 0",
            "create view locking as select id, v from t where id < 2 for update",
            "alter table t rename to renamed",
        )
        await begin(one, "repeatable read")
        assert await value(one, query) == 10
        await other.execute("update renamed set v = 21 where id = 2")
        waiting = await blocked(stack, other, "update renamed set v = 11 where id = 1")
        await one.execute("commit")
        await waiting


@on_a_loop
async def test_only_the_tables_that_are_named() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one, "create table u (id int primary key, w int)", "insert into u values (1)")
        await begin(one, "read committed", "select v from t join u using (id) for update of t")
        await other.execute("update u set w = 1")
        await other.execute("update t set v = 21 where id = 2")
        waiting = await blocked(stack, other, "update t set v = 11 where id = 1")
        await one.execute("commit")
        await waiting


@on_a_loop
async def test_a_cursor_holds_all_its_rows_from_its_declaration_on() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, "read committed")
        await one.execute("declare c cursor for select id, v from t order by id for update")
        assert await all_rows(one, "fetch c") == [(1, 10)]
        waiting = await blocked(stack, other, "update t set v = 21 where id = 2")
        assert await all_rows(one, "fetch c") == [(2, 20)]
        await one.execute("close c")
        await one.execute("commit")
        await waiting


@on_a_loop
async def test_rows_of_another_timeline_are_locked_there() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(
            one,
            "create timeline counted clock system",
            "create table c (id int primary key, v int) in timeline counted",
            "insert into c values (1, 10)",
        )
        await begin(one, "serializable", "update c set v = v + 1 where id = 1")
        with pytest.raises(errors.LockNotAvailable):
            await other.execute("select v from c for update nowait")
        await other.execute("set lock_timeout = '1ms'")
        with pytest.raises(errors.LockNotAvailable):
            await other.execute("update c set v = v + 1 where id = 1")
        await one.execute("commit")
        assert await value(other, "update c set v = v + 1 where id = 1 returning v") == 12


# --- queues ---------------------------------------------------------------------------------------

TAKING = (
    f"update q set done = true where id = ({TAKE}) returning id",
    f"with job as ({TAKE}) update q set done = true from job where q.id = job.id returning q.id",
    f"with job as materialized ({TAKE}) delete from q using job where q.id = job.id returning q.id",
    f"with job as ({TAKE}), i as (insert into log select id from job) select id from job",
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("take", TAKING)
@on_a_loop
async def test_each_worker_takes_another_job_and_nobody_is_refused(take: str, level: str) -> None:
    async with running() as stack, connected(stack, 3) as workers:
        await setup(workers[0], *JOBS)
        for number, worker in enumerate(workers, 1):
            await begin(worker, level)
            assert await all_rows(worker, take) == [(number,)]
        for worker in workers[::-1]:
            await worker.execute("commit")


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_what_a_worker_reads_besides_its_queue_is_validated(level: str) -> None:
    taking = f"{TAKE.partition(' where')[0]} join allowed using (kind) order by id limit 1"
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one, *JOBS)
        await begin(one, level)
        assert await value(one, f"{taking} for update of q skip locked") == 1
        await one.execute("insert into log values (1)")
        assert await value(other, f"{TAKE}") == 2
        await other.execute("delete from q where id = 3")
        await other.execute("delete from allowed")
        if level == "serializable":
            await refused(one, "commit", errors.SerializationFailure)
        else:
            await one.execute("commit")


# --- what the commit asks for ---------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_rows_that_would_have_been_locked_count_at_the_serializable_levels(
    level: str,
) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, level, "select v from t where v >= 10 for update")
        await one.execute("insert into log values (1)")
        await other.execute("insert into t values (3, 30)")
        if level == "serializable":
            await refused(one, "commit", errors.SerializationFailure)
        else:
            await one.execute("commit")


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_what_was_locked_behind_a_savepoint_is_given_back_with_it(level: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, level, "insert into log values (1)", "savepoint s")
        await one.execute("select v from t where id = 1 for update")
        await one.execute("rollback to s")
        await other.execute("update t set v = 11 where id = 1")
        if level == "serializable":  # what was read stays read
            await refused(one, "commit", errors.SerializationFailure)
        else:
            await one.execute("commit")


@on_a_loop
async def test_each_statement_of_read_committed_locks_what_it_saw() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, "read committed")
        assert await value(one, "select v from t where id = 1 for update") == 10
        await other.execute("update t set v = 21 where id = 2")
        assert await value(one, "select v from t where id = 2 for update") == 21
        await one.execute("update t set v = v + 1")
        await one.execute("commit")
        assert await all_rows(other, "select v from t order by id") == [(11,), (22,)]


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_a_locked_table_does_not_change_until_the_commit(level: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, level, "lock table t in share mode")
        assert await value(one, "select count(*) from t") == 2
        waiting = await blocked(stack, other, "insert into t values (3, 30)")
        assert await value(one, "select count(*) from t") == 2
        await one.execute("insert into log values (2)")
        await one.execute("commit")
        await waiting


@pytest.mark.parametrize("mode", ["access share", "row share", "row exclusive"])
@on_a_loop
async def test_a_lock_that_lets_writers_in_makes_nobody_wait(mode: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, "serializable", f"lock table t in {mode} mode")
        await other.execute("insert into t values (3, 30)")
        await one.execute("insert into t values (4, 40)")
        await one.execute("commit")


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_the_second_who_locks_a_table_sees_what_the_first_has_left(level: str) -> None:
    async with running() as stack, connected(stack, 3) as (one, other, reader):
        await setup(one)
        await begin(one, level, "lock table log")
        await begin(other, level)
        waiting = await blocked(stack, other, "lock table log")
        assert await value(one, "select count(*) from log") == 0
        assert await value(reader, "select count(*) from log") == 0
        await one.execute("insert into log values (1)")
        await one.execute("commit")
        await waiting
        assert await value(other, "select count(*) from log") == 1
        await other.execute("insert into log values (2)")
        await other.execute("commit")


# --- limits ---------------------------------------------------------------------------------------


@on_a_loop
async def test_waiting_is_no_attempt() -> None:
    limits = ExecutionLimits(attempts_max=1)
    async with running(limits=limits) as stack, connected(stack, 2) as (one, other):
        await setup(one)
        for _ in range(2):
            await begin(one, "serializable", "update t set v = v + 10 where id = 1")
            waiting = await blocked(stack, other, "update t set v = v + 1 where id = 1")
            await one.execute("commit")
            await waiting
        assert await value(one, "select v from t where id = 1") == 32


@on_a_loop
async def test_those_who_have_waited_together_all_end() -> None:
    """They are woken together, one of them is first, and the others lose no attempt by it."""
    limits = ExecutionLimits(attempts_max=1)
    async with running(limits=limits) as stack, connected(stack, 5) as (one, *others):
        await setup(one)
        await begin(one, "serializable", "update t set v = v + 10 where id = 1")
        text = "update t set v = v + 1 where id = 1"
        waiting = [await blocked(stack, other, text) for other in others]
        await one.execute("commit")
        for ended in waiting:
            assert (await ended).statusmessage == "UPDATE 1"
        assert await value(one, "select v from t where id = 1") == 24


@on_a_loop
async def test_beyond_their_number_rows_that_change_are_not_locked() -> None:
    """Nobody waits for them: who commits first has changed them."""
    core = CoreSettings(row_locks_max=1)
    async with running(core=core) as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, "read committed", "update t set v = 0")
        await other.execute("update t set v = v + 1 where id = 1")
        await refused(one, "commit", errors.SerializationFailure)
        await begin(one, "read committed", "update t set v = 0 where id = 1")
        waiting = await blocked(stack, other, "update t set v = v + 1 where id = 1")
        await one.execute("commit")
        await waiting
        assert await all_rows(one, "select v from t order by id") == [(1,), (20,)]


@on_a_loop
async def test_too_many_rows_to_lock() -> None:
    core, limits = CoreSettings(row_locks_max=1), ExecutionLimits(returning_bytes_max=1 << 16)
    async with running(core=core, limits=limits) as stack, connected(stack, 1) as (one,):
        await setup(one, "insert into t select i, 0 from generate_series(3, 11) i")
        with pytest.raises(errors.OutOfMemory) as error:
            await one.execute("select v from t for update")
        assert error.value.diag.message_primary == "too many rows to lock"
        assert len(await all_rows(one, "select v from t where id > 1 for update")) == 10
        with pytest.raises(errors.ProgramLimitExceeded):
            await one.execute("select repeat('x', 20000), v from t where id > 1 for update")


@pytest.mark.parametrize(
    "text",
    [
        "select id from t where exists (select from log where log.v = t.v for update)",
        "with x as materialized (select v from log) select t.id from t"
        " where v in (select x.v from x, t for update of t) and v in (select v from x)",
    ],
)
@on_a_loop
async def test_locking_queries_that_are_refused(text: str) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        with pytest.raises(errors.FeatureNotSupported):
            await one.execute(text.encode())
