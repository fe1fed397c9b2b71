"""CREATE TABLE AS and its kin end, however often others write to what they read (A2)."""

import asyncio
from typing import Any

import pytest

from coordinator.driver.timelines import Timelines
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

STATEMENTS = (
    "create table made as select count(*) as n from t",
    "create materialized view made as select count(*) as n from t",
    "select count(*) as n into made from t",
)


WRITES = ("insert into t values (1)", "insert into t select 1 from generate_series(1, 2)")


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("statement", STATEMENTS)
@on_a_loop
async def test_it_ends_beside_writers(
    statement: str, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes behind each of its scans; from its second try on it has the lease, also until
    its commit, which writes to a table that only it knows.
    """
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (a int)")
        timelines = stack.services.coordination
        assert isinstance(timelines, Timelines)
        scan, writers = timelines.scan, list[asyncio.Task[Any]]()

        async def scanned(txn: Any, ts: Any, tables: Any, *args: Any, **options: Any) -> Any:
            views = await scan(txn, ts, tables, *args, **options)
            if [table.name for table in tables] == ["t"]:
                writers.append(stack.group.create_task(other.execute(write.encode())))
                for _ in range(500):
                    await asyncio.sleep(0)
            return views

        monkeypatch.setattr(timelines, "scan", scanned)
        await one.execute(statement.encode())
        assert len(writers) == 2
        await asyncio.gather(*writers)
        monkeypatch.undo()
        assert await all_rows(one, "select n from made") == [(1 if write is WRITES[0] else 2,)]
