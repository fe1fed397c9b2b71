"""A timestamp that the client was told does not move when the transaction has got a lock (F1 of
`coordinator/core/refresh.py`): what it reads later is what it was told.
"""

import pytest
from psycopg import errors

from tests.session.transactions.test_isolation import value
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

TELLING = (
    "select meridian_now()",
    "select pg_export_snapshot()",
    "explain timestamp for select v from t",
)
NEXT = "update t set v = v + 1"
LOCK = "select pg_advisory_xact_lock(1)"


@pytest.mark.parametrize("telling", TELLING)
@on_a_loop
async def test_a_told_timestamp_stays(telling: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (v int)")
        await one.execute("create table other (v int)")
        await one.execute("insert into t values (0)")
        for told in (False, True):
            before = await value(other, "select v from t")
            await one.execute("begin")
            await one.execute("select v from other")
            if told:
                await one.execute(telling.encode())
            await other.execute(NEXT)
            await one.execute(LOCK)
            # Only who was told nothing reads what the holder before has left.
            assert await value(one, "select v from t") == before + (not told)
            await one.execute("commit")


@on_a_loop
async def test_a_row_that_has_changed_is_refused_then() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (v int)")
        await one.execute("insert into t values (0)")
        await one.execute("begin")
        now = await value(one, "select meridian_now()")
        await other.execute(NEXT)
        with pytest.raises(errors.SerializationFailure):
            await one.execute("select v from t for update")
        await one.execute("rollback")
        assert await all_rows(one, f"select v from t as of {now}") == [(0,)]
