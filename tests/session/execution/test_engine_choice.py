"""`engine = auto`: the choice by sizes, at each execution; and engines that give up."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psycopg
import pyarrow as pa
import pytest

from compute.arrow import batch_schema
from compute.executor import EngineUnavailable, Executor, Run
from coordinator.execution import engine_choice
from coordinator.execution.context import ExecutionLimits
from coordinator.execution.run_plan import run_on_either
from sql.errors import SqlError
from sql.plan.nodes import output_columns
from sql.types.sql_type import INT4
from tests.engines.spark.shared_engine import plan_of
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.servers import meridian
from tests.support.stack import running

Rows = Sequence[int]


@dataclass
class Named:
    """An engine that gives batches of one column, and may fail after some; it counts its runs."""

    name: str
    batches: Sequence[Rows] = ((),)
    fails: Exception | None = None
    runs: int = field(default=0)

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """See Executor."""
        self.runs += 1
        schema = batch_schema(output_columns(run.plan))
        for rows in self.batches:
            columns = [pa.array(rows, field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
        if self.fails is not None:
            raise self.fails

    async def close(self) -> None:
        """Nothing to close."""


STAGED = ExecutionLimits(inline_bytes_max=1, transaction_inline_bytes_max=1, auto_rows_max=2)
"""Every INSERT makes a file."""


async def _insert(one: Any, first: int, count: int) -> None:
    values = ", ".join(f"({n}, '{'x' * 200}{n}')" for n in range(first, first + count))
    await one.execute(f"insert into t values {values}".encode())


async def _engine(one: Any, text: str) -> str:
    *_, (line,) = await all_rows(one, f"explain {text}")
    return str(line)


FITS = "Engine: local (auto: it has every function, and the inputs fit)"
TOO_LARGE = "Engine: spark (auto: the inputs are too large for the local engine)"
TOO_MUCH = "Engine: spark (auto: its joins may need more memory than the local engine has)"
BY_ROW = "Engine: spark (auto: functions that the local engine computes row by row)"


@on_a_loop
async def test_bytes_of_the_files_and_columns_that_are_read() -> None:
    limits = ExecutionLimits(inline_bytes_max=1, auto_rows_max=2, local_bytes_max=10_000)
    async with (
        running(engine=Named("spark"), local=Named("local"), limits=limits) as stack,
        connected(stack, 1) as (one,),
    ):
        await one.execute("set engine = auto")
        await one.execute("create table t (a int, b text)")
        assert await _engine(one, "select b from t") == (
            "Engine: reference (auto: a few rows in memory)"
        )
        for first in (0, 1_000, 2_000, 3_000):
            await _insert(one, first, 300)
        assert await _engine(one, "select b from t") == TOO_LARGE
        assert await _engine(one, "select max(a) from t") == FITS, "a narrow column"
        assert await _engine(one, "select b from t where a > 3000") == FITS, "one file of four"
        assert await _engine(one, "select b from t where a > 10") == TOO_LARGE
        assert await _engine(one, "select ctid, b from t") == (
            "Engine: local (auto: the inputs are too large for the local engine,"
            " but it alone can run the query)"
        )
        await one.execute("set engine = local")
        assert await _engine(one, "select b from t") == "Engine: local"
        await one.execute("set engine = spark")
        assert await _engine(one, "select b from t where a = 1") == "Engine: spark"


@on_a_loop
async def test_much_work_without_inputs_is_the_local_engines() -> None:
    async with (
        running(engine=Named("spark"), local=Named("local"), limits=STAGED) as stack,
        connected(stack, 1) as (one,),
    ):
        few = "select count(*) from generate_series(1, 100)"
        many = "select count(*) from generate_series(1, 100000)"
        await one.execute("create table t (a int)")
        for engine, asked in (("auto", FITS), ("local", "Engine: local")):
            await one.execute(f"set engine = {engine}".encode())
            assert await _engine(one, few) == "Engine: reference"
            assert await all_rows(one, few) == [(100,)]
            assert await _engine(one, many) == asked
            assert await all_rows(one, many) == [], "the fake has no rows"
            assert await _engine(one, f"insert into t {many}") == asked
            volatile = "select random() from generate_series(1, 10000)"
            assert await _engine(one, volatile) == "Engine: reference"
        await one.execute("set engine = spark")
        assert await _engine(one, many) == "Engine: reference"


@on_a_loop
async def test_what_joins_may_hold() -> None:
    limits = ExecutionLimits(inline_bytes_max=1, auto_rows_max=2, local_held_bytes_max=5_000)
    async with (
        running(engine=Named("spark"), local=Named("local"), limits=limits) as stack,
        connected(stack, 1) as (one,),
    ):
        await one.execute("set engine = auto")
        await one.execute("create table t (a int, b text)")
        await one.execute("create table small (a int)")
        await one.execute("insert into small values (1), (2), (3)")
        await _insert(one, 0, 1_000)
        assert await _engine(one, "select * from t") == FITS
        assert await _engine(one, "select * from t join small using (a)") == FITS
        assert await _engine(one, "select * from t join t x using (a)") == TOO_MUCH
        assert await _engine(one, "select 1 from t where b in (select b from t)") == TOO_MUCH


@on_a_loop
async def test_row_by_row_is_worth_a_warm_spark_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_choice, "ROW_BY_ROW_MAX", 100)
    monkeypatch.setattr(engine_choice, "ROW_BY_ROW_COLD_MAX", 1_000)
    warm = [False]
    async with (
        running(
            engine=Named("spark"),
            local=Named("local"),
            limits=STAGED,
            has_warm_engine=lambda: warm[0],
        ) as stack,
        connected(stack, 1) as (one,),
    ):
        await one.execute("set engine = auto")
        await one.execute("create table t (a int, b text)")
        query = "select sqrt(a::numeric) from t"
        for count, cold, hot in ((50, FITS, FITS), (500, FITS, BY_ROW), (5_000, BY_ROW, BY_ROW)):
            await _insert(one, count * 10, count)
            for is_warm, wanted in ((False, cold), (True, hot)):
                warm[0] = is_warm
                assert await _engine(one, query) == wanted


@on_a_loop
async def test_a_prepared_statement_is_run_where_its_table_fits_now() -> None:
    spark, local = Named("spark"), Named("local")
    limits = ExecutionLimits(inline_bytes_max=1, auto_rows_max=2, local_bytes_max=10_000)
    async with (
        running(engine=spark, local=local, limits=limits) as stack,
        connected(stack, 1) as (one,),
    ):
        await one.execute("set engine = auto")
        await one.execute("create table t (a int, b text)")

        async def ran() -> tuple[int, int]:
            cursor = await one.execute("select b from t where a <> %s", (7,), prepare=True)
            assert await cursor.fetchall() == []
            return local.runs, spark.runs

        assert await ran() == (0, 0), "in process"
        await _insert(one, 0, 3)
        assert await ran() == (1, 0)
        for first in (1_000, 2_000, 3_000):
            await _insert(one, first, 300)
        assert await ran() == (1, 1)
        await one.execute("truncate t")
        assert await ran() == (1, 1), "in process again"


async def _answer(first: Executor, otherwise: Executor) -> list[int]:
    run = Run(plan_of("select a from t", t=[("a", INT4)]), {})
    return [
        value
        async for batch in run_on_either(first, otherwise, run)
        for value in cast("list[int]", batch.column(0).to_pylist())
    ]


OUT_OF_MEMORY = SqlError("53200", "out of memory")


@pytest.mark.parametrize("gives_up", [OUT_OF_MEMORY, EngineUnavailable("it does not start")])
@on_a_loop
async def test_who_gives_up_without_a_row_is_replaced(gives_up: Exception) -> None:
    other = Named("other", [[1], [2]])
    assert await _answer(Named("first", fails=gives_up), other) == [1, 2]
    assert await _answer(Named("first", [[3]]), other) == [3]
    assert other.runs == 1


@on_a_loop
async def test_what_has_given_rows_is_never_run_again() -> None:
    other = Named("other", [[1]])
    with pytest.raises(SqlError, match="out of memory"):
        await _answer(Named("first", [[3]], OUT_OF_MEMORY), other)
    assert other.runs == 0


@on_a_loop
async def test_other_errors_are_the_statements_own() -> None:
    other = Named("other", [[1]])
    with pytest.raises(SqlError, match="division"):
        await _answer(Named("first", fails=SqlError("22012", "division by zero")), other)
    assert other.runs == 0


@on_a_loop
async def test_that_the_other_one_refuses_is_not_told() -> None:
    refuses = Named("other", fails=SqlError("0A000", "not supported"))
    with pytest.raises(SqlError, match="out of memory"):
        await _answer(Named("first", fails=OUT_OF_MEMORY), refuses)
    fails = Named("other", fails=SqlError("53200", "out of memory there, too"))
    with pytest.raises(SqlError, match="there, too"):
        await _answer(Named("first", fails=OUT_OF_MEMORY), fails)


def test_a_query_that_does_not_fit_into_memory_is_answered_elsewhere(tmp_path: Path) -> None:
    """The real thing: DuckDB with next to no memory, and the reference engine in Spark's place."""
    options = ("--spark-master", "reference", "--set", "local_memory_mb=8")
    query = "select count(*), max(n) from (select b, count(*) as n from t group by b) x"
    with (
        meridian(tmp_path, options) as server,
        psycopg.connect(server.dsn, autocommit=True) as connection,
    ):
        connection.execute("create table t (a int, b text)")
        with connection.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
            copy.write("".join(f"{n}\ttext {n} {'x' * 20}\n" for n in range(200_000)).encode())
        assert connection.execute("select count(*) from t").fetchall() == [(200_000,)]
        assert connection.execute(query).fetchall() == [(200_000, 1)]
        assert "local has given up (out of memory)" in server.log
        connection.execute("set engine = local")
        with pytest.raises(psycopg.errors.OutOfMemory):
            connection.execute(query)
