"""Run a plan over its inputs, on the engine that `engine_choice.py` selects."""

from collections.abc import AsyncIterator, Mapping

import pyarrow as pa

from coordinator.driver.damage_check import examine_on_failure
from coordinator.execution.context import Batches, Execution
from coordinator.execution.engine_choice import choose_engine
from coordinator.execution.uncommitted_versions import refuse_uncommitted_versions
from sql.plan.nodes import Plan, RelationId
from storage.batch import ShardView


def run_plan(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> AsyncIterator[pa.RecordBatch]:
    """Run on the chosen engine."""
    engine = choose_engine(execution, plan, inputs).engine
    if engine is None:
        batches: AsyncIterator[pa.RecordBatch] = _in_process(execution, plan, inputs)
    else:
        batches = engine.run(execution.run(plan, inputs))
        batches = refuse_uncommitted_versions(plan, inputs, batches)
    views = [view for view in inputs.values() if view.files]
    if not views:
        return batches
    return examine_on_failure(batches, lambda: execution.services.coordination.examine(views))


async def _in_process(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> Batches:
    table = execution.services.in_process.evaluate(execution.run(plan, inputs))
    for batch in table.to_batches():
        yield batch
