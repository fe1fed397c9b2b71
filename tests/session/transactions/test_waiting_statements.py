"""Whatever a statement is, if it has to wait it begins again, and is done once.

    one: begin, a change ── other: a statement waits ── one: commit ── other: is done

Who waits for whom is compared with PostgreSQL in `tests/postgres/locking`.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest
from psycopg import errors

from coordinator.execution import locking_queries
from coordinator.execution.context import ExecutionLimits
from tests.session.transactions.test_isolation import value
from tests.support.connections import (
    Connection,
    GatedStash,
    all_rows,
    blocked,
    connected,
    on_a_loop,
    waiting,
)
from tests.support.stack import running

LEVELS = ("serializable", "repeatable read", "read committed")
SETUP = (
    "create table p (id int primary key, v int)",
    "insert into p values (1, 10), (2, 20), (3, 30)",
    "create table c (id int primary key, p int references p on delete cascade on update cascade,"
    " n int)",
    "create table d (id int primary key, p int default 2 references p on delete set default"
    " on update set null, n int)",
    "insert into c values (1, 1, 0)",
    "insert into d values (3, 3, 0)",
    "create table log (v int)",
)
CHANGE = "update p set v = v + 100 where id = 1"
Rows = Sequence[tuple[Any, ...]]

ANSWERS: dict[str, Rows | None] = {
    "update p set v = v + 1 where id = 1 returning v": [(111,)],
    "insert into p values (1, 0), (9, 9) on conflict (id) do update set v = p.v + 1 returning *": [
        (1, 111),
        (9, 9),
    ],
    "merge into p using (values (1, 5), (8, 8)) s(id, v) on p.id = s.id when matched then update"
    " set v = p.v + s.v when not matched then insert values (s.id, s.v) returning p.*": [
        (1, 115),
        (8, 8),
    ],
    "with x as (update p set v = v + 1 where id = 1 returning v),"
    " y as (insert into log select v from x returning v) select * from y": [(111,)],
    "insert into log select v from p where id = 1 for update returning v": [(110,)],
    "create table n as select v from p where id = 1 for update; select v from n": [(110,)],
    "explain (analyze, costs off) delete from p where id = 1; select count(*) from p": [(2,)],
    "truncate p cascade; select count(*) from p": [(0,)],
    "delete from p using c where p.id = c.p; select count(*) from c": [(0,)],
    "alter table p alter v type bigint; select v from p where id = 1": [(110,)],
    "create unique index i on p (v); select v from p where id = 1": [(110,)],
}
"""Statements that wait for CHANGE, and the rows that the last of a string gives."""


async def setup(connection: Connection) -> None:
    for text in SETUP:
        await connection.execute(text.encode())


async def begin(connection: Connection, *texts: str, level: str = "serializable") -> None:
    for text in (f"begin isolation level {level}", *texts):
        await connection.execute(text.encode())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", ANSWERS)
@on_a_loop
async def test_a_statement_that_waits_is_done_once(text: str, level: str) -> None:
    """Alone (or as a string), and in a block."""
    async with running() as stack, connected(stack, 2) as (one, other):
        for in_block in (False, True):
            await one.execute("drop table if exists d, c, p, log, n")
            await setup(one)
            await other.execute(f"set default_transaction_isolation = '{level}'".encode())
            first, *rest = text.split("; ")
            await begin(one, CHANGE)
            if in_block:
                await other.execute("begin")
            waiting = await blocked(stack, other, first)
            await one.execute("commit")
            cursor = await waiting
            found = await all_rows(other, rest[0]) if rest else await cursor.fetchall()
            assert sorted(found) == ANSWERS[text]
            if in_block:
                await other.execute("commit")


@on_a_loop
async def test_notices_are_sent_once() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        told: list[str | None] = []
        other.add_notice_handler(lambda notice: told.append(notice.message_primary))
        await setup(one)
        await begin(one, CHANGE)
        waiting = await blocked(stack, other, "drop table if exists nothing, nothing, p cascade")
        await one.execute("commit")
        await waiting
        skipped = 'table "nothing" does not exist, skipping'
        assert told == [skipped, skipped, "drop cascades to 2 other objects"]


@on_a_loop
async def test_a_prepared_statement() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        for number in range(8):  # the driver prepares it at some time
            await begin(one, CHANGE)
            update = "update p set v = v + %s where id = %s returning v"
            waiting = await blocked(stack, other, update, (1, 1))
            await one.execute("commit")
            assert await (await waiting).fetchall() == [(10 + 101 * (number + 1),)]


@pytest.mark.parametrize("first", [CHANGE, "select v from p where id = 1 for update"])
@on_a_loop
async def test_a_string_and_a_pipeline_are_blocks_from_their_first_statement_on(
    first: str,
) -> None:
    async with running() as stack, connected(stack, 3) as (one, other, third):
        await setup(one)
        await begin(one, "update p set v = 0 where id = 2")
        waiting = await blocked(stack, other, f"{first}; update p set v = 21 where id = 2")
        behind = await blocked(stack, third, "update p set v = v + 1 where id = 1")
        await one.execute("commit")
        await waiting
        await behind
        await begin(one, "update p set v = 0 where id = 2")

        async def in_a_pipeline() -> None:
            async with other.pipeline():
                await other.execute(first.encode(), prepare=True)
                await other.execute("update p set v = v + 1 where id = 2", prepare=True)

        running_ = stack.group.create_task(in_a_pipeline())
        while not any(not lock.granted for lock in stack.driver.core.observe().locks):
            await one.execute("select 1")  # until it holds the first row, and waits for the other
        behind = await blocked(stack, third, "update p set v = v + 1 where id = 1")
        await one.execute("commit")
        await running_
        await behind
        assert await value(one, "select v from p where id = 2") == 1


@pytest.mark.parametrize("in_block", [False, True])
@on_a_loop
async def test_copy_from_waits_for_its_table_before_its_rows_come(in_block: bool) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, "lock table log in share mode")
        assert await value(one, "select count(*) from log") == 0
        if in_block:
            await other.execute("begin")

        async def load() -> None:
            async with other.cursor() as cursor, cursor.copy("copy log from stdin") as copy:
                await copy.write(b"7\n8\n")

        loading = stack.group.create_task(load())
        while not any(not lock.granted for lock in stack.driver.core.observe().locks):
            await one.execute("select 1")
        assert await value(one, "select count(*) from log") == 0
        await one.execute("alter table log add w int default 5")
        await one.execute("alter table log drop w")
        await one.execute("commit")
        await loading
        if in_block:
            await other.execute("commit")
        assert await all_rows(one, "select v from log order by v") == [(7,), (8,)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("change", "text", "left"),
    [
        ("update c set n = 5", "delete from p where id = 1", []),
        ("update c set n = 5", "update p set id = 11 where id = 1", [(1, 11, 5)]),
        ("update d set n = 5", "delete from p where id = 3", [(3, 2, 5)]),
        ("update d set n = 5", "update p set id = 13 where id = 3", [(3, None, 5)]),
        ("select n from d for update", "delete from p where id = 3", [(3, 2, 1)]),
    ],
)
@on_a_loop
async def test_rows_that_referential_actions_change(
    change: str, text: str, left: Rows, level: str
) -> None:
    """They wait for the rows, and others wait for theirs."""
    async with running() as stack, connected(stack, 3) as (one, other, third):
        await setup(one)
        table = "c" if " c " in change else "d"
        await begin(one, change)
        await begin(other, "insert into log values (1)", "savepoint s", level=level)
        waiting = await blocked(stack, other, text)
        await one.execute("commit")
        await waiting
        behind = await blocked(stack, third, f"update {table} set n = n + 1 returning n")
        await other.execute("rollback to s")
        assert await (await behind).fetchall() == [(6 if "update" in change[:6] else 1,)]
        await third.execute(change.encode())
        await other.execute(text.encode())
        await other.execute("commit")
        assert await all_rows(one, f"select * from {table}") == left
        assert await value(one, "select count(*) from log") == 1


@pytest.mark.parametrize("in_block", [False, True])
@on_a_loop
async def test_create_schema_begins_again_with_its_elements(in_block: bool) -> None:
    made = (
        "create schema s create table a (id int) create table b (p int references public.p)"
        " create view w as select 1 as x"
    )
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, CHANGE)
        if in_block:
            await begin(other, "create table before (id int)", "savepoint x")
        waiting = await blocked(stack, other, made)
        await one.execute("commit")
        await waiting
        if in_block:
            await other.execute("rollback to x")
            await other.execute(made.encode())
            await other.execute("insert into s.b values (1), (null)")
            await other.execute("commit")
            assert await value(one, "select count(*) from before") == 0
        named = "select relname from pg_class where relnamespace = 's'::regnamespace order by 1"
        assert await all_rows(one, named) == [("a",), ("b",), ("w",)]
        with pytest.raises(errors.ForeignKeyViolation):
            await one.execute("insert into s.b values (77)")


TAKES_LOCKS = (
    "insert into p select id, case when pg_try_advisory_lock(case when v < 100 then 8 else id + 5"
    " end) then 1 end from p where id < 3 on conflict (id) do update set v = p.v + 1"
)


@pytest.mark.parametrize("in_block", [False, True])
@on_a_loop
async def test_locks_of_the_session_are_taken_once(in_block: bool) -> None:
    """Lock 8 is taken in both tries for one row; for the other one in the first try alone."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, CHANGE)
        if in_block:
            await other.execute("begin")
        waiting = await blocked(stack, other, TAKES_LOCKS)
        held = "select objid from pg_locks where locktype = 'advisory' order by 1"
        assert await all_rows(one, held) == [(8,)]
        await one.execute("commit")
        await waiting
        if in_block:
            await other.execute("commit")
        given_back = "select pg_advisory_unlock(8), pg_advisory_unlock(8), pg_advisory_unlock(6)"
        assert await all_rows(other, given_back) == [(True, False, True)]


@on_a_loop
async def test_a_lock_that_was_given_back_is_given_back_once() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, CHANGE)
        await other.execute("select pg_advisory_lock(7)")
        released = "case when pg_advisory_unlock(7) then 1 else 0 end"
        conflict = "on conflict (id) do update set v = p.v + excluded.v"
        waiting = await blocked(stack, other, f"insert into p select 1, {released} {conflict}")
        await one.execute("commit")
        await waiting
        assert await value(other, "select v from p where id = 1") == 111


@pytest.mark.parametrize(
    "text", ["update p set v = v + 1 where id = 1", "insert into log values (9)"]
)
@pytest.mark.parametrize("how", ["cancel", "timeout", "lost"])
@on_a_loop
async def test_who_is_interrupted_behind_a_group_does_not_wait_for_a_lock(
    how: str, text: str
) -> None:
    """The statement is in the commit queue; when its turn comes, a lock is in the way."""
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 3) as (one, other, third):
        await setup(one)
        await other.execute(text.encode())  # known from now on: an INSERT goes the short way
        if how == "timeout":
            await other.execute("set statement_timeout = '50ms'")
        await begin(one, CHANGE, "lock table log in exclusive mode")
        stash.gate.clear()

        async def refused() -> None:
            with pytest.raises((errors.QueryCanceled, errors.OperationalError)):
                await other.execute(text.encode())

        in_flight = stack.group.create_task(third.execute("insert into d values (5, 2)"))
        await waiting(stack, one, 1)
        asked = stack.group.create_task(refused())
        await waiting(stack, one, 2)
        if how == "cancel":
            await other.cancel_safe()
        elif how == "lost":
            other.pgconn.finish()
        await asyncio.sleep(0.1)  # So the server has noticed, most of the time.
        stash.gate.set()
        await asked
        await in_flight
        while await value(one, "select count(*) from pg_locks where not granted"):
            pass
        before = await value(one, "select count(*) from log"), await value(one, SEEN)
        await one.execute("commit")
        assert (await value(third, "select count(*) from log"), await value(third, SEEN)) == before


SEEN = "select v from p where id = 1"


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_who_holds_a_row_that_had_changed_is_not_overtaken(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the scan of FOR UPDATE and its lock somebody else changes the row, in every try: the
    first time he may, and then the block holds the row that he has made. The short way scans and
    locks in one step.
    """
    limits = ExecutionLimits(short_writes=False)
    async with running(limits=limits) as stack, connected(stack, 4) as (one, other, third, looking):
        await setup(one)
        found, tries = locking_queries._rows, 0
        update = "update p set v = v + 1 where id = 1"

        async def changed(*args: Any) -> Any:
            nonlocal tries
            tries += 1
            rows = await found(*args)
            client = (other, third)[tries - 1]
            task = stack.group.create_task(client.execute(update.encode()))
            while not task.done() and not any(
                not lock.granted for lock in stack.driver.core.observe().locks
            ):
                await looking.execute("select 1")
            return rows

        monkeypatch.setattr(locking_queries, "_rows", changed)
        await begin(one, level=level)
        assert await value(one, "select v from p where id = 1 for update") == 11
        assert tries == 2
        await one.execute("commit")
        assert await value(one, "select v from p where id = 1") in (11, 12)


@on_a_loop
async def test_advisory_locks_in_a_string_show_what_the_holder_left() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one, "select pg_advisory_xact_lock(1)", CHANGE)
        text = "select v from p where id = 3; select pg_advisory_xact_lock(1); " + SEEN
        waiting_for = await blocked(stack, other, text)
        await one.execute("commit")
        cursor = await waiting_for
        rows = [await cursor.fetchall()]
        while cursor.nextset():
            rows.append(await cursor.fetchall())
        assert rows[-1] == [(110,)]


@on_a_loop
async def test_a_limit_that_is_a_parameter_skips_to_free_rows() -> None:
    """Both have looked before one of them locks."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await begin(one)
        await begin(other)
        text = "select id from p order by id limit %s for update skip locked"
        found = locking_queries._rows
        met = asyncio.Barrier(2)

        async def together(*args: Any) -> Any:
            rows = await found(*args)
            if met.n_waiting < 2 and met.parties and not met.broken:
                async with asyncio.timeout(1):
                    with contextlib.suppress(asyncio.BrokenBarrierError):
                        await met.wait()
                        await met.abort()
            return rows

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(locking_queries, "_rows", together)
            tasks = [stack.group.create_task(c.execute(text, (1,))) for c in (one, other)]
            rows = [await (await task).fetchall() for task in tasks]
        assert sorted(rows) == [[(1,)], [(2,)]]
