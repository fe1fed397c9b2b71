"""UPDATE of rows that a subquery has just locked: it reads them by their keys, and no table whole.

Which rows are locked, and who waits, is in `test_locking.py` and `tests/postgres/locking`.
"""

from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from compute.executor import Run
from compute.reference.executor import ReferenceExecutor
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

TAKEN = "(select id from q where not done and id > %s order by id for update skip locked limit {})"
SETUP = (
    "create table q (id int primary key, at text unique, done bool not null)",
    "insert into q select i, 'a' || i, i > 290 from generate_series(1, 300) i",
)


class CountingExecutor(ReferenceExecutor):
    """Counts the plans that an engine is asked to run."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        self.runs += 1
        return super().run(run)


async def taken_rows(connection: Connection, text: str, *, after: int, times: int) -> list[tuple]:
    found: list[tuple] = []
    for _ in range(times):
        found += sorted(await (await connection.execute(text.encode(), (after,))).fetchall())
    return found


@pytest.mark.parametrize(
    ("limit", "condition"),
    [
        (1, "id = {}"),
        (5, "id in {}"),
    ],
)
@on_a_loop
async def test_a_queue_is_drained_without_an_engine(limit: int, condition: str) -> None:
    engine = CountingExecutor()
    async with running(engine=engine) as stack, connected(stack, 1) as (one,):
        for text in SETUP:
            await one.execute(text.encode())
        engine.runs = 0
        where = condition.format(TAKEN.format(limit))
        text = f"update q set done = true where {where} returning id, at"
        one.prepare_threshold = 2
        # With other values of the parameter that the statement has itself.
        for after, until in ((270, 291), (260, 271)):
            times = (until - after) // limit
            rows = await taken_rows(one, text, after=after, times=times)
            assert rows == [(i, f"a{i}") for i in range(after + 1, until)]
        assert engine.runs == 0
        assert await all_rows(one, "select count(*) from q where done") == [(40,)]


@on_a_loop
async def test_null_and_no_row_are_equal_to_nothing() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        for text in ("create table t (id int primary key, ref int)", "insert into t values (1)"):
            await one.execute(text.encode())
        for wanted in ("id = 1", "id = 2"):
            text = f"delete from t where id = (select ref from t where {wanted} for update)"
            assert (await one.execute(text.encode())).rowcount == 0
        text = "update t set ref = (select id from t where id = 1 for update) where id = 1"
        assert (await one.execute(text.encode())).rowcount == 1
        # The subquery yields what was there before.
        text = "update t set ref = 7 where id = (select ref from t where id = 1 for update)"
        assert (await one.execute(text.encode())).rowcount == 1
        assert await all_rows(one, "select id, ref from t") == [(1, 7)]
