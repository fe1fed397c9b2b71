"""SKIP LOCKED with a LIMIT, in blocks and alone: the short way and the general one."""

import asyncio
import os
import random
from typing import Any

import psycopg
import pytest

from coordinator.execution.context import ExecutionLimits
from tests.session.keys.test_short_returning import Counted
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

SCRIPTS = int(os.environ.get("SEEDS", "8"))

NEXT = "select id, n * 2 from t where not done order by n desc, id for update skip locked limit 1"
TAKE = (
    "update t set done = true where id = (select id from t where not done and n < %s order by n, id"
    " for update skip locked limit 1) returning id, n"
)
DROP = (
    "delete from t where id in (select id from t where n > %s order by id"
    " for update skip locked limit 1) returning *"
)


async def _made(connection: Connection, *warm: tuple[str, tuple[object, ...]]) -> None:
    await connection.execute("create table t (id int primary key, n int, done bool, w text unique)")
    await connection.execute(
        "insert into t select i, i / 2, false, 'w' || i from generate_series(1, 6) i"
    )
    for text, values in warm:
        await connection.execute("begin")
        await connection.execute(text.encode(), values, prepare=True)
        await connection.execute("rollback")


async def _rows(connection: Connection, text: str, *values: object) -> list[Any]:
    found = await connection.execute(text.encode(), values, prepare=True)
    return await found.fetchall()


WARM: tuple[tuple[str, tuple[object, ...]], ...] = ((NEXT, ()), (TAKE, (9,)), (DROP, (0,)))


@on_a_loop
async def test_blocks_get_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 4) as (one, two, three, last):
        await _made(one, *WARM)
        counted = Counted(stack, monkeypatch)
        for session in (one, two, three, last):
            await session.execute("begin")
        assert await _rows(one, NEXT) == [(6, 6)]
        assert await _rows(two, NEXT) == [(4, 4)]
        assert await _rows(three, TAKE, 9) == [(1, 0)]
        assert await _rows(one, DROP, 0) == [(2, 1, False, "w2")]
        assert counted.since() == (0, 0, 4)
        assert await _rows(two, TAKE, 1) == []  # 1 is held by `three`
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await last.execute("select from t where id = 6 for update nowait")
        await last.execute("rollback")
        # What it holds itself is free to it, and so is what another one gives back.
        assert await _rows(one, NEXT) == [(6, 6)]
        await two.execute("rollback")
        assert await _rows(three, NEXT) == [(4, 4)]
        for session in (one, three):
            await session.execute("commit")
        assert await all_rows(last, "select id, done from t order by id") == [
            (1, True), (3, False), (4, False), (5, False), (6, False),
        ]  # fmt: skip
        assert stack.driver.core.observe().locks == ()


@on_a_loop
async def test_single_statements_share_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 6) as sessions:
        await _made(sessions[0], *WARM)
        await sessions[0].execute("begin")
        assert await _rows(sessions[0], NEXT) == [(6, 6)]
        counted = Counted(stack, monkeypatch)
        found = await asyncio.gather(*(_rows(session, TAKE, 9) for session in sessions[1:]))
        assert sorted(rows[0][0] for rows in found) == [1, 2, 3, 4, 5]
        assert await _rows(sessions[1], TAKE, 9) == []
        assert counted.since() == (0, 6, 0)
        await sessions[0].execute("rollback")
        assert await _rows(sessions[1], DROP, 2) == [(6, 3, False, "w6")]
        assert counted.since() == (0, 1, 0)


@on_a_loop
async def test_a_worker_in_blocks_goes_on_with_the_short_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        done = "update t set done = true where id = %s"
        await _made(one, *WARM, (done, (1,)))
        counted = Counted(stack, monkeypatch)
        for expected in (6, 4, 5, 2, 3, 1):
            async with one.transaction():
                ((number, _),) = await _rows(one, NEXT)
                assert number == expected
                await _rows_changed(one, done, number)
        assert await _rows(one, NEXT) == []
        assert counted.since() == (0, 0, 12)


async def _rows_changed(connection: Connection, text: str, number: int) -> None:
    done = await connection.execute(text.encode(), (number,), prepare=True)
    assert done.rowcount == 1


@on_a_loop
async def test_others_may_change_rows_that_were_passed_over() -> None:
    """The scan that skips rows is not validated; the row that was taken is (A9)."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await _made(one, *WARM)
        await one.execute("begin")
        assert await _rows(one, TAKE, 9) == [(1, 0)]
        await other.execute("insert into t values (0, 0, false, 'new')")
        await other.execute("update t set n = 7 where id = 2")
        await one.execute("commit")
        assert await _rows(one, TAKE, 9) == [(0, 0)]


@on_a_loop
async def test_rows_of_its_own() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _made(one, *WARM)
        await one.execute("begin")
        await one.execute("insert into t values (9, -1, false, 'w9')")
        await one.execute("update t set n = 5 where id = 1")
        assert await _rows(other, NEXT) == [(6, 6)]
        assert await _rows(one, NEXT) == [(1, 10)]
        await one.execute("savepoint a")
        assert await _rows(one, TAKE, 5) == [(9, -1)]
        assert await _rows(one, TAKE, 5) == [(2, 1)]
        await one.execute("rollback to a")
        # What it has read stays read, so that nobody may change it; but it is free.
        assert await _rows(other, "select id from t where id = %s for update nowait", 2) == [(2,)]
        await one.execute("commit")
        assert await all_rows(one, "select id from t where done") == []


@on_a_loop
async def test_a_row_that_was_deleted_comes_back() -> None:
    """The first look at its slice was that of the block that had deleted it."""
    async with running() as stack, connected(stack, 1) as (one,):
        await _made(one, *WARM)
        await one.execute("insert into t values (0, 9, false, null)")
        await one.execute("insert into t values (7, 8, false, null)")
        await one.execute("begin")
        await one.execute("delete from t where id = 0")
        assert await _rows(one, NEXT) == [(7, 16)]
        await one.execute("rollback")
        await one.execute("begin")
        assert await _rows(one, NEXT) == [(0, 18)]
        await one.execute("rollback")


@on_a_loop
async def test_each_job_is_handed_out_once() -> None:
    """Producers and workers, in blocks and alone, some of which give their job back."""
    async with running() as stack, connected(stack, 6) as sessions:
        await _made(sessions[0], *WARM)
        await sessions[0].execute("delete from t")
        taken: list[int] = []

        async def produce(session: Connection, first: int) -> None:
            for number in range(first, first + 30):
                await session.execute(
                    "insert into t values (%s, %s, false, null)", (number, number % 7)
                )

        async def work(session: Connection, rng: random.Random) -> None:
            while len(taken) < 60:
                await asyncio.sleep(0)
                if rng.random() < 0.5:
                    taken.extend([row[0] for row in await _rows(session, TAKE, 9)])
                    continue
                await session.execute("begin")
                found = await _rows(session, NEXT)
                for number, _ in found:
                    await _rows_changed(session, "update t set done = true where id = %s", number)
                gives_back = rng.random() < 0.2
                await session.execute(b"rollback" if gives_back else b"commit")
                taken.extend([] if gives_back else [row[0] for row in found])

        async with asyncio.TaskGroup() as group:
            for at, session in enumerate(sessions[:2]):
                group.create_task(produce(session, 100 * at))
            for at, session in enumerate(sessions[2:]):
                group.create_task(work(session, random.Random(at)))
        assert sorted(taken) == [*range(30), *range(100, 130)]


TEXTS = (
    NEXT, TAKE, DROP,
    "select * from t where n = %s for share skip locked limit 3",
    "select w, id from t order by w desc nulls last for key share skip locked limit 2",
    "select n from t where n < 3 order by id for no key update skip locked limit 2",
    "select id from t where n / (n - %s) > 0 order by id for update skip locked limit 1",
    "select id from t order by n, id for update skip locked limit 1 offset 1",
    "select t.id from t join t u using (id) order by t.id for update of t skip locked limit 1",
    "update t set n = n + 1 where w = (select w from t where n >= %s order by w for update skip"
    " locked limit 1) returning id, n, done",
    "update t set n = (select id from t order by id for update skip locked limit 1) where id = %s"
    " returning n",
    "delete from t where id = (select id from t where id > %s order by id for update skip locked"
    " limit 1) and n > 1 returning id",
    "update t set done = not done where id = (select n from t where n is not null order by id desc"
    " for update skip locked limit 1) returning id",
    "insert into t values (%s + 20, %s, false, null) on conflict do nothing",
    "update t set w = null where id = %s",
)  # fmt: skip


MAY_WAIT = ("insert", "update t set w", "update t set n = (select", "update t set done = not")
"""For rows that were not skipped."""


def _script(rng: random.Random) -> list[tuple[int, str, tuple[object, ...]]]:
    """Steps of two sessions, of which one may hold rows."""
    script: list[tuple[int, str, tuple[object, ...]]] = []
    open_blocks: set[int] = set()
    for _ in range(50):
        who = rng.randrange(2)
        if rng.random() < 0.15:
            end = rng.choice(("commit", "rollback"))
            script.append((who, end if who in open_blocks else "begin", ()))
            open_blocks ^= {who}
            continue
        text = rng.choice(TEXTS)
        if text.startswith(MAY_WAIT) and open_blocks - {who}:
            continue  # it might wait
        values = tuple(rng.choice((0, 1, 2, 3, 9, None)) for _ in range(text.count("%s")))
        script.append((who, text, values))
    return script


async def _told(script: list[tuple[int, str, tuple[object, ...]]], *, short: bool) -> list[object]:
    told: list[object] = []
    limits = ExecutionLimits(short_writes=short)
    async with running(limits=limits) as stack, connected(stack, 2) as sessions:
        await _made(sessions[0])
        for session in sessions:
            await session.execute("set lock_timeout = '5s'")
        for who, text, values in script:
            try:
                done = await sessions[who].execute(text.encode(), values or None, prepare=True)
                rows = await done.fetchall() if done.description else None
                told.append((text, values, done.statusmessage, rows))
            except psycopg.Error as error:
                told.append((text, values, error.sqlstate, str(error)))
        for session in sessions:
            await session.execute("rollback")
        told.append(await all_rows(sessions[0], "select * from t order by id"))
    return told


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_the_general_way_answers_the_same(seed: int) -> None:
    @on_a_loop
    async def story() -> None:
        script = _script(random.Random(seed))
        general, short = await _told(script, short=False), await _told(script, short=True)
        for one, other in zip(general, short, strict=True):
            assert one == other

    story()
