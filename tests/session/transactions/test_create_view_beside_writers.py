"""CREATE and REFRESH of a view that follows its inputs, while others write to these: nobody waits.

What the statement has computed is kept, and catch-up adds what has changed since.
"""

import asyncio
from functools import partial
from typing import Any

import pytest

from coordinator.driver.timelines import Timelines
from tests.session.transactions.test_followed_views import NOW
from tests.session.transactions.test_isolation import value
from tests.session.transactions.test_restless_inputs import PATIENT, is_exact, same_rows, told
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import Stack, running

QUERY = "select a, count(*) as n from t group by a"
CREATE = f"create materialized view m with (refresh = 'on commit') as {QUERY}"
SHOWN = "select tried, attached, by_changes from meridian.materialized_views where table_name = 'm'"


def write_behind_scans(monkeypatch: pytest.MonkeyPatch, stack: Stack, other: Any) -> list[int]:
    """Behind each scan of the input somebody writes to it, and has committed. How many did."""
    timelines = stack.services.coordination
    assert isinstance(timelines, Timelines)
    scan, written = timelines.scan, list[int]()

    async def scanned(txn: Any, ts: Any, tables: Any, *args: Any, **options: Any) -> Any:
        views = await scan(txn, ts, tables, *args, **options)
        if "t" in [table.name for table in tables]:
            async with asyncio.timeout(60):
                await other.execute("insert into t select g, 1 from generate_series(1, 3) g")
            written.append(1)
        return views

    monkeypatch.setattr(timelines, "scan", scanned)
    return written


@on_a_loop
async def test_create_ends_and_writers_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (a int, b int)")
        await one.execute("insert into t select g % 7, g from generate_series(1, 5000) g")
        written = write_behind_scans(monkeypatch, stack, other)
        await one.execute(CREATE.encode())
        assert len(written) >= 2
        monkeypatch.undo()
        await told(stack, partial(is_exact, stack))
        assert await same_rows(one, [await value(one, NOW)]) == 1
        ((_, attached, by_changes),) = await all_rows(one, SHOWN)
        assert (attached, by_changes) == (1, 1)
        assert await value(one, "show transaction_isolation") == "serializable"


@on_a_loop
async def test_refresh_ends_and_writers_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(core=PATIENT, maintained=True) as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (a int, b int)")
        await one.execute(CREATE.encode())
        await one.execute("alter table t add column c int")
        written = write_behind_scans(monkeypatch, stack, other)
        await one.execute("refresh materialized view m")
        assert written
        monkeypatch.undo()
        await told(stack, partial(is_exact, stack))
        assert await same_rows(one, [await value(one, NOW)]) == 1
