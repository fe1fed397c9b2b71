"""What a failure of the engine does to the session that asked: an error, and nothing more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Run
from sql.errors import SqlError
from tests.support.stack import running


class FailingEngine:
    """Fails every query with what it was made with."""

    name = "failing"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        raise self._error
        yield pa.record_batch({"a": pa.array([1], pa.int32())})

    async def close(self) -> None:
        """Nothing to close."""


async def _asked(error: Exception) -> tuple[str, bool]:
    """The SQLSTATE of a query that fails so, and whether the session goes on."""
    async with running(engine=FailingEngine(error)) as stack:
        connection = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
        async with connection:
            await connection.execute("create table t (a int)")
            with pytest.raises(psycopg.Error) as failed:
                await connection.execute("select a from t")
            try:
                await connection.execute("select 1")
            except psycopg.Error:
                return failed.value.sqlstate or "", False
            return failed.value.sqlstate or "", True


def test_a_failure_that_the_engine_names_leaves_the_session() -> None:
    error = SqlError("XX000", "the engine failed")
    assert asyncio.run(_asked(error)) == ("XX000", True)


def test_a_failure_that_nobody_foresaw_ends_the_session() -> None:
    assert asyncio.run(_asked(KeyError("nobody"))) == ("XX000", False)


@pytest.mark.parametrize("error", [StopIteration(), KeyError("nobody")])
@pytest.mark.parametrize(
    "place",
    [
        "coordinator.planning.planner.fold_constants",
        "coordinator.execution.query.run_plan",
        "compute.duckdb.statements.emit",
        "compute.duckdb.executor.conform_duckdb_batch",
        "coordinator.execution.context.relation_view",
    ],
)
def test_what_nobody_foresaw_reaches_who_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, place: str
) -> None:
    """A future of asyncio takes no StopIteration: the session would wait for ever."""

    asked_for = "select t.a from t, meridian.timelines"

    def failing(*_args: object) -> None:
        raise error

    async def asked() -> tuple[object, object]:
        local = LocalExecutor(LocalSettings(tmp_path / "warehouse", tmp_path / "local"))
        async with running(engine=local, local=local) as stack:
            first = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            other = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            async with first, other:
                await first.execute("create table t as select 1 as a")
                with monkeypatch.context() as planted:
                    planted.setattr(place, failing)
                    with pytest.raises(psycopg.Error) as failed:
                        await asyncio.wait_for(first.execute(asked_for), 30)
                rows = await (await other.execute("select count(*) from t")).fetchall()
        await local.close()
        return (failed.value.sqlstate, failed.value.diag.message_primary), rows

    assert asyncio.run(asked()) == (("XX000", "internal error"), [(1,)])
