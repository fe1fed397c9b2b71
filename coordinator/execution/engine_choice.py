"""Choose the engine that runs a plan: in process, Spark (or its substitute), or DuckDB.

    no inputs, every function in Python ─▶ in process, at once
    relations of the system only ────────▶ few rows touched: in process; else local, if it has every
                                           function: tools ask for them often
    engine = spark ─▶ the server's engine      engine = local ─▶ the local engine
    engine = auto  ─▶ a few rows in memory: in process; what the local engine can do and the inputs
                      allow: local; everything else: the server's engine

The local engine is DuckDB.

INVARIANTS
  H1  a choice depends on the plan, the sizes of its inputs and the setting, so EXPLAIN names the
      engine that would run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from compute.duckdb.support import local_engine_refusal
from compute.executor import EngineUnavailable, Executor
from compute.reference.support import RowsAllowed
from compute.scan import row_count_bound, view_bytes
from coordinator.execution.context import Execution
from sql.catalog.meridian_schema import is_system_relation
from sql.plan.nodes import Plan, RelationId
from storage.batch import ShardView

IN_PROCESS: Final = "reference"
SYSTEM_WORK_MAX: Final = 60_000
"""Rows of system relations that a plan may touch in process, on the loop. More: longer stalls of
everybody. Fewer: more queries of catalogs are written as SQL for an engine, which takes as long.
"""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """`engine` is None for what is answered in process."""

    engine: Executor | None
    reason: str

    @property
    def name(self) -> str:
        """As EXPLAIN shows it."""
        return IN_PROCESS if self.engine is None else self.engine.name

    @property
    def text(self) -> str:
        """The engine and the reason, as EXPLAIN shows them."""
        return f"{self.name} ({self.reason})" if self.reason else self.name


def choose_engine(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> EngineChoice:
    """The engine for a plan over these inputs (H1)."""
    services = execution.services
    if services.in_process.refusal(plan, inputs) is None:
        return EngineChoice(None, "")
    if inputs and all(map(is_system_relation, inputs)):
        return _beside(execution, plan, inputs)
    match execution.variables.get("engine"):
        case "local":
            return EngineChoice(_local(execution), "")
        case "auto":
            return _automatic(execution, plan, inputs)
        case _:
            only = services.engine is services.local
            return EngineChoice(services.engine, "this server has no Spark" if only else "")


def _beside(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> EngineChoice:
    """What reads no table needs no engine of tables."""
    in_process = execution.services.in_process
    if in_process.refusal_of_work(plan, inputs, SYSTEM_WORK_MAX) is None:
        return EngineChoice(None, "relations of the system: it touches few rows")
    local = execution.services.local
    if local is None:
        return EngineChoice(execution.services.engine, "")
    rows = sum(map(row_count_bound, inputs.values()))
    refused = local_engine_refusal(plan, execution.parameters, rows)
    if refused is not None:
        return EngineChoice(execution.services.engine, f"relations of the system: {refused}")
    return EngineChoice(local, "relations of the system")


def _automatic(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> EngineChoice:
    services, limits = execution.services, execution.services.limits
    few = RowsAllowed(limits.auto_rows_max)
    if services.in_process.refusal(plan, inputs, few) is None:
        return EngineChoice(None, "auto: a few rows in memory")
    if services.local is None or services.local is services.engine:
        return EngineChoice(services.engine, "auto: the only engine of this server")
    rows = sum(map(row_count_bound, inputs.values()))
    refused = local_engine_refusal(plan, execution.parameters, rows)
    if refused is not None:
        return EngineChoice(services.engine, f"auto: {refused}")
    if sum(map(view_bytes, inputs.values())) > limits.local_bytes_max:
        return EngineChoice(services.engine, "auto: the inputs are too large for the local engine")
    return EngineChoice(services.local, "auto: it has every function, and the inputs fit")


def _local(execution: Execution) -> Executor:
    if execution.services.local is None:
        raise EngineUnavailable("this server has no local engine")
    return execution.services.local
