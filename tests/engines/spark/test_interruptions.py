"""Cancelled queries, dead JVMs, and the queries beside and after them."""

import asyncio
import os
import signal
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from compute.executor import EngineUnavailable, Run
from compute.spark.executor import SparkExecutor
from compute.spark.session import SessionPoolName
from compute.spark.supervisor import JvmState
from sql.plan.nodes import Plan, RelationId
from sql.types.sql_type import INT8
from storage.batch import ShardView
from tests.engines.spark.shared_engine import Shard, forced, plan_of, rows_of, scan, until

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64())])
T = [("id", INT8)]


@pytest.fixture(scope="module")
def view() -> ShardView:
    """Four thousand rows: a cross join of three is endless."""
    shard = Shard.new(SCHEMA)
    return shard.view(inline=[("@1", pa.table([range(4000)], schema=SCHEMA), [])])


def endless() -> Plan:
    return plan_of("select count(*) from t a, t b, t c where a.id + b.id + c.id < 0", t=T)


def active_jobs(spark: SparkExecutor) -> list[int]:
    engine = spark._engine
    assert engine is not None
    context = engine.lanes[SessionPoolName.SMALL].session.context
    return list(context.statusTracker().getActiveJobIds())


async def one(spark: SparkExecutor, view: ShardView) -> list[tuple[Any, ...]]:
    return await rows_of(spark, plan_of("select count(*) from t", t=T), {"t": view})


def test_a_cancelled_query_ends_its_jobs(spark: SparkExecutor, view: ShardView) -> None:
    async def story() -> None:
        await spark.ready()
        await until(lambda: not active_jobs(spark))
        task = asyncio.create_task(rows_of(spark, endless(), {"t": view}))  # noqa: TID251
        await until(lambda: active_jobs(spark))
        # Others are served meanwhile.
        assert await one(spark, view) == [(4000,)]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not active_jobs(spark))

    asyncio.run(story())


def test_queries_that_wait_can_be_cancelled(spark: SparkExecutor, view: ShardView) -> None:
    async def story() -> None:
        await spark.ready()
        with forced(SessionPoolName.LARGE):
            running = [
                asyncio.create_task(rows_of(spark, endless(), {"t": view}))  # noqa: TID251
                for _ in range(2)
            ]
            await until(lambda: len(active_jobs(spark)) == 2)
            waiting = asyncio.create_task(one(spark, view))  # noqa: TID251
            cancelled = asyncio.create_task(one(spark, view))  # noqa: TID251
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            for task in running:
                task.cancel()
            assert await waiting == [(4000,)]
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(story())


def test_a_dead_jvm_is_replaced_and_asked_again(spark: SparkExecutor, view: ShardView) -> None:
    async def story() -> None:
        await spark.ready()
        first = spark.pid
        assert first is not None
        task = asyncio.create_task(rows_of(spark, endless(), {"t": view}))  # noqa: TID251
        await until(lambda: active_jobs(spark))
        os.kill(first, signal.SIGKILL)
        # The query had sent nothing: it is running again in the next JVM.
        await until(lambda: spark.state is JvmState.READY and spark.pid not in (None, first))
        await until(lambda: active_jobs(spark))
        assert not _lives(first)
        # The second death is the query's last.
        second = spark.pid
        assert second is not None
        os.kill(second, signal.SIGKILL)
        with pytest.raises(EngineUnavailable):
            await task
        # Queries that come while it starts wait for it.
        assert await one(spark, view) == [(4000,)]

    asyncio.run(story())


async def rest(batches: Any) -> None:
    async for _ in batches:
        pass


def test_an_answer_half_given_is_not_begun_again(spark: SparkExecutor, view: ShardView) -> None:
    async def story() -> None:
        await spark.ready()
        pid = spark.pid
        assert pid is not None
        # Its first partition is there at once, the second never.
        slow = plan_of(
            "select id from t union all"
            " select a.id from t a, t b, t c where a.id + b.id + c.id < 0",
            t=T,
        )
        with forced(SessionPoolName.MEDIUM, spooled=True):
            run = Run(slow, {RelationId("t"): view})
            async with aclosing(cast("Any", spark.run(run))) as batches:
                seen = (await anext(batches)).num_rows
                assert seen
                os.kill(pid, signal.SIGKILL)
                with pytest.raises(EngineUnavailable):
                    await rest(batches)
        assert await one(spark, view) == [(4000,)]

    asyncio.run(story())


def test_the_jvm_ends_with_its_parent(tmp_path: Path) -> None:
    """A process that starts a JVM and is killed leaves none behind."""
    import subprocess
    import sys

    code = f"""
import threading
from pathlib import Path
from compute.spark.jvm import JvmSettings, launch
jvm = launch(JvmSettings(Path({str(tmp_path / "jvm")!r}), heap_mb=256), threading.Event())
print(jvm.pid, flush=True)
threading.Event().wait()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
        parent.wait()
    asyncio.run(until(lambda: not _lives(pid)))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_scans_work_after_all_this(spark: SparkExecutor, view: ShardView) -> None:
    rows = asyncio.run(rows_of(spark, scan([INT8]), {"t": view}))
    assert sorted(rows) == [(n,) for n in range(4000)]
