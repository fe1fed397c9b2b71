"""Views over inputs that never rest: a unit of the lane attaches them, or catch-up says why not.

An input is written to after the rows of a view were computed, and before they are committed. So no
commit that has to prove that nothing has changed since ever succeeds.
"""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from coordinator.core.gathering import Gathering
from coordinator.core.group_members import GroupMember, PendingAttach
from coordinator.core.messages.identities import RequestId
from coordinator.core.messages.replies import Refused
from coordinator.core.oracle import Oracle
from coordinator.core.settings import CoreSettings
from coordinator.core.views.deltas import ComputedRows, MaintainViews, ViewsMaintained
from coordinator.driver.coordination import RequestRefused
from coordinator.execution import create_table_as
from coordinator.execution.context import Done, Execution
from sql.statements.bound import RefreshMaterializedView
from storage.memory import MemoryStash
from storage.types import Timestamp
from tests.session.transactions.test_followed_views import NOW, STATE, play
from tests.session.transactions.test_isolation import value
from tests.support.connections import (
    Connection,
    GatedStash,
    all_rows,
    connected,
    on_a_loop,
    waiting,
)
from tests.support.stack import Stack, running

PATIENT = CoreSettings(view_budget_us=20_000_000, cut_age_us=20_000)
LAST = "select meridian.last_commit_timestamp()"
ERROR = "select last_error from meridian.materialized_views where table_name = 'm'"
VIEWS = {
    "sums": "select g, sum(v) as s, count(*) as n from t group by g",
    "least and greatest": "select g, min(v) as a, max(v) as b from t group by g",
    "changes": "select t.id, u.name from t join u on u.g = t.g where t.v > 10",
    "affected keys": "select u.name, t.v from u left join t on t.g = u.g and t.v < 200",
    "full": "select id, v from t order by v, id limit 7",
}


def statements(number: int) -> list[str]:
    """What a writer does in one turn: rows come, change, go, and come and go at once."""
    return [
        f"insert into t values ({1000 + number}, {number % 5}, {number})",
        f"update t set v = v + 1, g = {number % 7} where id % 10 = {number % 10} and id < 100",
        f"delete from t where id = {1000 + number - 3}",
        "begin",
        f"insert into t values ({5000 + number}, 1, 1), ({6000 + number}, 2, 2)",
        f"delete from t where id = {5000 + number}",
        "commit",
        f"insert into u values ({100 + number}, 'n')",
    ]


class Restless:
    """Writes to the inputs, and remembers when."""

    def __init__(self, connection: Connection, first: int = 0) -> None:
        self._connection = connection
        self._numbers = itertools.count(first)
        self.times: list[object] = []

    async def write(self) -> None:
        """One turn."""
        await play(self._connection, *statements(next(self._numbers)))
        self.times.append(await value(self._connection, LAST))


@contextlib.asynccontextmanager
async def behind(
    monkeypatch: pytest.MonkeyPatch, query: str, stash: MemoryStash | None = None
) -> AsyncIterator[tuple[Stack, Connection, Restless]]:
    """A view that is behind, whose inputs are written to each time it was computed."""
    server = running(core=PATIENT, maintained=True, stash=stash)
    async with server as stack, connected(stack, 2) as (one, other):
        restless, refresh = Restless(other), create_table_as.execute_refresh

        async def never_alone(
            execution: Execution, statement: RefreshMaterializedView, tag: str
        ) -> Done:
            done = await refresh(execution, statement, tag)
            if statement.difference is None:
                await restless.write()
            return done

        await play(
            one,
            "create table t (id int primary key, g int, v int)",
            "insert into t select i, i % 7, i from generate_series(1, 300) i",
            "create table u (g int primary key, name text)",
            "insert into u select i, 'n' || i from generate_series(0, 9) i",
            f"create materialized view m with (refresh = 'on commit') as {query}",
        )
        monkeypatch.setattr(create_table_as, "execute_refresh", never_alone)
        yield stack, one, restless


async def told(stack: Stack, condition: Callable[[], bool]) -> None:
    """Until catch-up says so."""
    log, said = stack.services.catch_up, asyncio.Event()
    log.told = said.set
    async with asyncio.timeout(60):
        while not condition():
            said.clear()
            await said.wait()


def is_exact(stack: Stack) -> bool:
    """Whether the only view is."""
    return bool(stack.services.coordination.newest_catalog.exact_views)


async def same_rows(one: Connection, times: list[object]) -> int:
    """Stored rows are those of the query wherever the view is exact; at how many times it is."""
    count = 0
    for at in times:
        await play(one, "set view_reads = auto")
        query = f"select * from m as of {at}"
        lines = [str(row[0]) for row in await all_rows(one, f"explain {query}")]
        if not any("Scan on m " in line for line in lines):
            continue
        count += 1
        stored = Counter(await all_rows(one, query))
        await play(one, "set view_reads = definition")
        assert stored == Counter(await all_rows(one, query)), at
    await play(one, "set view_reads = auto")
    return count


@pytest.mark.parametrize("query", VIEWS.values(), ids=VIEWS)
@on_a_loop
async def test_a_view_is_attached_though_its_inputs_never_rest(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind(monkeypatch, query) as (stack, one, _):
        await play(one, "alter table t add column more int")
        assert not is_exact(stack)
        done = asyncio.Event()
        async with connected(stack, 1) as (third,):
            always = Restless(third, 500)

            async def write() -> None:
                while not done.is_set():
                    await always.write()

            async with asyncio.TaskGroup() as group:
                group.create_task(write())
                await told(stack, partial(is_exact, stack))
                done.set()
            for _ in range(3):
                await always.write()
        assert await same_rows(one, always.times) >= 3


@contextlib.asynccontextmanager
async def attached_beside_others(
    monkeypatch: pytest.MonkeyPatch, stack: Stack, stash: GatedStash
) -> AsyncIterator[None]:
    """Each attach waits in the queue while a commit of another table is in flight, and two who
    write an input wait behind it.
    """
    views = stack.services.coordination.followed_views
    attach, numbers = views.attach, itertools.count(9000)
    async with connected(stack, 4) as (a, b, c, asking):

        async def answer(oid: int, rows: ComputedRows) -> Timestamp | RequestRefused:
            try:
                return await attach(oid, rows)
            except RequestRefused as refused:
                return refused

        async def beside(oid: int, rows: ComputedRows) -> Timestamp:
            stash.gate.clear()
            async with asyncio.TaskGroup() as group:
                group.create_task(play(a, "insert into beside values (1)"))
                await waiting(stack, asking, 1)
                done = group.create_task(answer(oid, rows))
                await waiting(stack, asking, 2)
                group.create_task(play(b, f"insert into t values ({next(numbers)}, 1, 1)"))
                group.create_task(play(c, "delete from t where id = 5"))
                await waiting(stack, asking, 4)
                stash.gate.set()
            found = done.result()
            if isinstance(found, RequestRefused):
                raise found
            return found

        await play(a, "create table beside (v int)")
        monkeypatch.setattr(views, "attach", beside)
        yield


@on_a_loop
async def test_who_writes_while_a_view_is_attached_is_in_its_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stash, asked = GatedStash(), list[tuple[bool, bool]]()
    async with behind(monkeypatch, VIEWS["sums"], stash) as (stack, one, _):
        maintain = stack.driver.maintain_views

        async def watched(effect: MaintainViews) -> ViewsMaintained:
            changed = any(rows.is_changed for rows in effect.inputs.values())
            asked.append((any(rows.earlier for rows in effect.views), changed))
            return await maintain(effect)

        monkeypatch.setattr(stack.driver, "maintain_views", watched)
        async with attached_beside_others(monkeypatch, stack, stash):
            await play(one, "alter table t add column more int")
            await told(stack, partial(is_exact, stack))
        assert (True, True) in asked
        assert await same_rows(one, [await value(one, NOW)]) == 1


@on_a_loop
async def test_a_unit_without_a_timestamp_has_refused_its_attach_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by seed 30042: the unit came back whole, and refused it again for ever."""
    stash = GatedStash()
    async with behind(monkeypatch, VIEWS["sums"], stash) as (stack, one, _):
        write_ts, refused = Oracle.write_ts, list[bool]()

        async def given_up(effect: MaintainViews) -> ViewsMaintained:
            if any(rows.earlier for rows in effect.views):
                refused.append(True)
            return ViewsMaintained(effect.attempt)

        def none_once(self: Oracle, wanted: Timestamp) -> Timestamp | None:
            return None if refused and refused.pop() else write_ts(self, wanted)

        answered, refuse = list[RequestId](), Gathering.refuse

        def counted(self: Gathering, pending: GroupMember, why: Refused) -> None:
            if isinstance(pending, PendingAttach):
                answered.append(pending.request)
            refuse(self, pending, why)

        monkeypatch.setattr(stack.driver, "maintain_views", given_up)
        monkeypatch.setattr(Oracle, "write_ts", none_once)
        monkeypatch.setattr(Gathering, "refuse", counted)
        (known,) = stack.services.catch_up.views.values()
        async with attached_beside_others(monkeypatch, stack, stash):
            await play(one, "alter table t add column more int")
            await told(stack, lambda: known.last_error is not None)
        assert len(answered) == len(set(answered)) > 0
        assert await value(one, STATE.format("m")) == "behind"


@on_a_loop
async def test_a_view_that_cannot_be_followed_stays_behind_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with behind(monkeypatch, VIEWS["sums"]) as (stack, one, restless):

        async def given_up(effect: MaintainViews) -> ViewsMaintained:
            for rows in effect.views:
                stack.services.catch_up.upkeep_of(rows.view.oid).give_up("it took too long")
            return ViewsMaintained(effect.attempt)

        monkeypatch.setattr(stack.driver, "maintain_views", given_up)
        await play(one, "alter table t add column more int")
        (known,) = stack.services.catch_up.views.values()
        await told(stack, lambda: known.last_error is not None)
        error = str(await value(one, ERROR))
        assert "its inputs change faster than it can be followed" in error
        assert "it took too long" in error
        assert await value(one, STATE.format("m")) == "behind"
        before = known.pause
        await told(stack, lambda: known.pause > before)
        await restless.write()
        assert await same_rows(one, restless.times) == 0


@on_a_loop
async def test_more_changes_than_a_batch_adds_leave_it_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by a hostile user: the server ended."""
    async with behind(monkeypatch, VIEWS["sums"]) as (stack, one, _):
        maintain = stack.driver.maintain_views

        async def few(effect: MaintainViews) -> ViewsMaintained:
            return await maintain(replace(effect, rows_max=5))

        monkeypatch.setattr(stack.driver, "maintain_views", few)
        await play(one, "alter table t add column more int")
        (known,) = stack.services.catch_up.views.values()
        await told(stack, lambda: known.last_error is not None)
        assert "more than 5 rows came and went" in str(await value(one, ERROR))
        monkeypatch.setattr(stack.driver, "maintain_views", maintain)
        await told(stack, partial(is_exact, stack))
        assert await same_rows(one, [await value(one, NOW)]) == 1


async def alter(one: Connection) -> None:
    await play(one, "alter table t add column another int")


async def refresh_unproved(one: Connection) -> None:
    await play(one, "begin isolation level repeatable read", "refresh materialized view m")
    await play(one, "commit")


async def drop(one: Connection) -> None:
    await play(one, "drop materialized view m")


async def make_manual(one: Connection) -> None:
    await play(one, "alter materialized view m set (refresh = 'manual')")


@pytest.mark.parametrize("between", [alter, refresh_unproved, drop, make_manual])
@on_a_loop
async def test_what_comes_between_computing_and_attaching_is_noticed(
    between: Callable[[Connection], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind(monkeypatch, VIEWS["sums"]) as (stack, one, _):
        views, refused = stack.services.coordination.followed_views, asyncio.Event()
        attach = views.attach

        async def late(oid: int, rows: ComputedRows) -> Timestamp:
            if refused.is_set():
                return await attach(oid, rows)
            await between(one)
            try:
                return await attach(oid, rows)
            except RequestRefused:
                refused.set()
                raise

        monkeypatch.setattr(views, "attach", late)
        await play(one, "alter table t add column more int")
        async with asyncio.timeout(60):
            await refused.wait()
        if between in (alter, refresh_unproved):
            await told(stack, partial(is_exact, stack))
            assert await same_rows(one, [await value(one, NOW)]) == 1
