"""Run a plan over its inputs, on the engine that `engine_choice.py` selects.

INVARIANTS
  R1  a plan runs on another engine only if the first one has given no row: whoever got rows gets
      the rest of the same run, or an error.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Final

import pyarrow as pa

from compute.executor import EngineUnavailable, Executor, Run
from coordinator.driver.damage_check import examine_on_failure
from coordinator.execution.context import Batches, Execution
from coordinator.execution.engine_choice import EngineChoice, choose_engine
from coordinator.execution.uncommitted_versions import refuse_uncommitted_versions
from coordinator.large_work import aside
from coordinator.streams import closing_batches, timed_batches
from sql.errors import SqlError
from sql.plan.nodes import Plan, RelationId
from storage.batch import ShardView

log = logging.getLogger("meridian.engines")

_TOO_MUCH: Final = "53200"
"""Out of memory, or of the files that stand for it."""
_REFUSED: Final = "0A000"


def run_plan(
    execution: Execution,
    plan: Plan,
    inputs: Mapping[RelationId, ShardView],
    *,
    is_check: bool = False,
) -> AsyncIterator[pa.RecordBatch]:
    """Run on the chosen engine. `is_check`: see Run."""
    if execution.is_large:
        return _large(execution, plan, inputs, is_check=is_check)
    choice = choose_engine(execution, plan, inputs)
    return _run(execution, plan, inputs, choice, is_check=is_check)


async def _large(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView], *, is_check: bool
) -> Batches:
    choice = await aside(lambda: choose_engine(execution, plan, inputs))
    rows = _run(execution, plan, inputs, choice, is_check=is_check)
    async with closing_batches(rows) as batches:
        async for batch in batches:
            yield batch


def _run(
    execution: Execution,
    plan: Plan,
    inputs: Mapping[RelationId, ShardView],
    choice: EngineChoice,
    *,
    is_check: bool,
) -> AsyncIterator[pa.RecordBatch]:
    if choice.engine is None:
        batches: AsyncIterator[pa.RecordBatch] = _in_process(execution, plan, inputs)
    else:
        run = replace(execution.run(plan, inputs), is_check=is_check)
        if choice.engine.name not in execution.engines:
            execution.engines.append(choice.engine.name)
        if choice.otherwise is None:
            batches = choice.engine.run(run)
        else:
            batches = run_on_either(choice.engine, choice.otherwise, run)
        batches = timed_batches(batches, execution.services.counters.engine(choice.engine.name).add)
        batches = refuse_uncommitted_versions(plan, inputs, batches)
    views = [view for view in inputs.values() if view.files]
    if not views:
        return batches
    return examine_on_failure(batches, lambda: execution.services.coordination.examine(views))


async def run_on_either(
    first: Executor, otherwise: Executor, run: Run
) -> AsyncIterator[pa.RecordBatch]:
    """The rows of the first engine; those of the other one if the first one gives up before it has
    given any (R1).
    """
    seen = False
    try:
        async with closing_batches(first.run(run)) as batches:
            async for batch in batches:
                seen = seen or batch.num_rows > 0
                yield batch
        return
    except (SqlError, EngineUnavailable) as error:
        if seen or (isinstance(error, SqlError) and error.sqlstate != _TOO_MUCH):
            raise
        failure = error
    log.info("%s has given up (%s): the plan runs on %s", first.name, failure, otherwise.name)
    async with closing_batches(otherwise.run(run)) as batches:
        try:
            async for batch in batches:
                seen = seen or batch.num_rows > 0
                yield batch
        except SqlError as error:
            # That the other one lacks a function is not what went wrong.
            if not seen and error.sqlstate == _REFUSED:
                raise failure from error
            raise


async def _in_process(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> Batches:
    run, in_process = execution.run(plan, inputs), execution.services.in_process
    began = perf_counter()
    table = await in_process.answer(run)
    execution.services.counters.engines["in_process"].add(perf_counter() - began)
    for batch in table.to_batches():
        yield batch
