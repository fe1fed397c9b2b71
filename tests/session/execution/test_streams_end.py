"""The engine's work ends in the statement that asked for it, not when a generator is collected."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import psycopg
import pyarrow as pa
import pytest

from compute.executor import Run
from sql.plan.nodes import output_columns
from tests.support.stack import running

ROWS = 100


class LongEngine:
    """Answers many rows of NULLs; tells where its work ended."""

    name = "long"

    def __init__(self) -> None:
        self.ended_at_home: list[bool] = []

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        task = asyncio.current_task()
        columns = output_columns(run.plan)
        row = {f"c{place}": pa.array([None], pa.int32()) for place in range(len(columns))}
        try:
            for _ in range(ROWS):
                yield pa.record_batch(row)
        finally:
            self.ended_at_home.append(asyncio.current_task() is task)

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    "statements",
    [
        ["begin", "declare c cursor for select a from t", "fetch 1 from c", "close c"],
        ["begin", "declare c cursor for select a, nextval('s') from t", "fetch c", "close c"],
        ["begin", "declare c cursor for select a, nextval('s') + 1 from t", "fetch c", "close c"],
        ["begin", "declare c cursor for select a::regclass from t", "fetch c", "rollback"],
        ["insert into n select a from t"],
        ["insert into n select nextval('s') + a from t"],
        ["create table m as select 1 / (nextval('s') - 1) as a, a as b from t"],
        ["alter table t alter a set not null"],
    ],
)
def test_work_ends_with_who_asked(statements: Sequence[str]) -> None:
    async def asked() -> list[bool]:
        engine = LongEngine()
        async with running(engine=engine) as stack:
            connection = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            async with connection:
                await connection.execute("create sequence s; create table n (a int not null)")
                await connection.execute("create table t (a int); insert into t values (1)")
                await connection.execute("set engine = spark")
                for statement in statements:
                    with contextlib.suppress(psycopg.Error):
                        await connection.execute(statement.encode())
        return engine.ended_at_home

    ended = asyncio.run(asyncio.wait_for(asked(), 60))
    assert ended
    assert all(ended)
