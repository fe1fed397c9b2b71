"""A short statement of a block that meets a lock waits as it is, and comes again the same way."""

from typing import Any

import psycopg
import pytest

from coordinator.session.statement_runner import StatementRunner
from tests.session.short.test_short_commits import CHANGE, run, tables
from tests.session.short.test_short_reads import Alone
from tests.support.connections import all_rows, blocked, connected, on_a_loop
from tests.support.stack import running

SHOW = "select n from k where id = %s for update"
REMOVE = "delete from k where id = %s"


def general_attempts(patch: pytest.MonkeyPatch) -> list[object]:
    """The statements that went the general way."""
    made: list[object] = []
    attempt = StatementRunner._attempt

    def counted(runner: StatementRunner, *args: Any, **options: Any) -> Any:
        made.append(args)
        return attempt(runner, *args, **options)

    patch.setattr(StatementRunner, "_attempt", counted)
    return made


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("text", [CHANGE, SHOW, REMOVE])
def test_it_waits_without_the_general_way(
    text: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @on_a_loop
    async def story() -> None:
        async with running(stash=Alone()) as stack, connected(stack, 2) as (one, other):
            await tables(one)
            other.prepare_threshold = 0
            for statement in (CHANGE, SHOW, REMOVE):  # bound once, under this catalog
                await other.execute("begin")
                await other.execute(statement.encode(), [1])
                await other.execute("rollback")
            await one.execute("begin")
            await run(one, CHANGE, 1)
            await other.execute("begin")
            general = general_attempts(monkeypatch)
            waits = await blocked(stack, other, text, [1])
            await one.execute(end.encode())
            done = await waits
            assert general == []
            seen = 2 if end == "commit" else 1
            if text == SHOW:
                assert await done.fetchall() == [(seen,)]
            await other.execute("commit")
            left = {CHANGE: [(seen + 1,)], SHOW: [(seen,)], REMOVE: []}[text]
            assert await all_rows(one, "select n from k where id = 1") == left
            assert stack.driver.core.observe().locks == ()

    story()


@on_a_loop
async def test_nowait_does_not_wait() -> None:
    async with running(stash=Alone()) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        await one.execute("begin")
        await run(one, CHANGE, 1)
        for _ in range(3):
            await other.execute("begin")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await run(other, SHOW + " nowait", 1)
            await other.execute("rollback")


@on_a_loop
async def test_who_waits_may_be_in_a_circle() -> None:
    """Two rows, taken in turn: the second wait closes the circle."""
    async with running(stash=Alone()) as stack, connected(stack, 3) as (one, other, third):
        await tables(one)
        for session, key in ((one, 1), (other, 2)):
            await session.execute("begin")
            await run(session, CHANGE, key)
        waits = await blocked(stack, one, CHANGE, [2])
        last = await blocked(stack, third, CHANGE, [2])
        with pytest.raises(psycopg.errors.DeadlockDetected):
            await run(other, CHANGE, 1)
        await other.execute("rollback")
        await waits
        await one.execute("commit")
        await last
        assert await all_rows(one, "select id, n from k order by id") == [(0, 1), (1, 2), (2, 3)]
