"""Choose the engine that runs a plan: in process, Spark (or its substitute), or DuckDB.

    no inputs, every function in Python ─▶ in process, at once; much work without inputs: local
    relations of the system only ────────▶ few rows touched: in process; else local, if it has every
                                           function: tools ask for them often
    engine = spark ─▶ the server's engine      engine = local ─▶ the local engine
    engine = auto  ─▶ a few rows in memory: in process; what the local engine can do and the inputs
                      allow: local; everything else: the server's engine

The local engine is DuckDB. On one machine it is several times faster than Spark, and spills: there
only work row by row in Python, and joins that could not even be spilled, go to Spark. Spark on more
machines also gets what is large to read.

INVARIANTS
  H1  a choice depends on the plan, the sizes of its inputs, the setting, and whether Spark would
      have to start first; so EXPLAIN names the engine that would run.
  H2  the choice is made at each execution, with the views that are read. For a plan that has run
      before it costs microseconds, unless it is near a limit: then it looks at files' statistics.
  H3  what `auto` gives to one engine may be run by another, as long as nobody has seen a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from compute.duckdb.support import LocalSupport, local_support
from compute.executor import EngineUnavailable, Executor
from compute.plan_nodes import is_volatile
from compute.read_size import MayMatch, ReadSize, read_size
from compute.reference.support import RowsAllowed
from compute.scan import row_count_bound
from coordinator.execution.context import Execution
from coordinator.execution.read_predicates import read_predicates
from sql.catalog.meridian_schema import is_system_relation
from sql.plan.nodes import Plan, RelationId
from storage.batch import ShardView

IN_PROCESS: Final = "reference"
SYSTEM_WORK_MAX: Final = 60_000
"""Rows of system relations that a plan may touch in process, on the loop. More: longer stalls of
everybody. Fewer: more queries of catalogs are written as SQL for an engine, which takes as long.
"""


CONSTANT_WORK_MAX: Final = 5_000
"""Rows that a plan without inputs may touch in process if the local engine can run it, too: that
takes some milliseconds. More: the loop stands still for longer. Fewer: DuckDB is asked in vain."""
ROW_BY_ROW_MAX: Final = 50_000
"""Input rows above which functions that the local engine computes in Python, row by row, go to
Spark's workers. More: nothing else in the process runs meanwhile. Fewer: Spark takes longer."""
ROW_BY_ROW_COLD_MAX: Final = 250_000
"""The same as long as Spark would have to start first, which takes seconds on all cores: as so many
rows do, at 20 to 50 microseconds each."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """`engine` is None for what is answered in process. `otherwise`: runs the plan if the engine is
    not there or has not enough memory (H3).
    """

    engine: Executor | None
    reason: str
    otherwise: Executor | None = None

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
    if not inputs and is_answered_at_once(execution, plan):
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


def is_answered_at_once(execution: Execution, plan: Plan) -> bool:
    """Whether a plan without inputs is evaluated in process, before any engine is asked."""
    in_process = execution.services.in_process
    if in_process.refusal(plan) is not None:
        return False
    if in_process.work(plan) <= CONSTANT_WORK_MAX or execution.services.local is None:
        return True
    if execution.variables.get("engine") == "spark" or is_volatile(plan):
        return True
    support = local_support(plan, execution.parameters)
    return support.refusal is not None or support.row_by_row


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
    support = local_support(plan, execution.parameters)
    refused = support.refusal
    if support.row_by_row and sum(map(row_count_bound, inputs.values())) > ROW_BY_ROW_MAX:
        refused = _ROW_BY_ROW
    if refused is not None:
        return EngineChoice(execution.services.engine, f"relations of the system: {refused}")
    return EngineChoice(local, "relations of the system")


_ROW_BY_ROW: Final = "functions that the local engine computes row by row"


def _automatic(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> EngineChoice:
    services, limits = execution.services, execution.services.limits
    few = RowsAllowed(limits.auto_rows_max)
    if inputs and services.in_process.refusal(plan, inputs, few) is None:
        return EngineChoice(None, "auto: a few rows in memory")
    if services.local is None or services.local is services.engine:
        return EngineChoice(services.engine, "auto: the only engine of this server")
    support = local_support(plan, execution.parameters)
    if support.refusal is not None:
        return EngineChoice(services.engine, f"auto: {support.refusal}")
    excess = _excess(execution, support, read_size(plan, inputs))
    if excess is not None:
        # Near a limit it is worth to look closer: files may have none of the rows.
        pruned = read_size(plan, inputs, _file_tests(execution, plan, inputs))
        excess = _excess(execution, support, pruned)
    if excess is None:
        reason = "auto: it has every function, and the inputs fit"
        return EngineChoice(services.local, reason, services.engine)
    # A server starts without it, and few statements are large.
    from compute.spark.support import can_run_on_spark

    if not can_run_on_spark(plan, execution.parameters):
        return EngineChoice(services.local, f"auto: {excess}, but it alone can run the query")
    return EngineChoice(services.engine, f"auto: {excess}", services.local)


def _excess(execution: Execution, support: LocalSupport, size: ReadSize) -> str | None:
    """What is too much for the local engine; None: nothing."""
    services, limits = execution.services, execution.services.limits
    rows_max = ROW_BY_ROW_MAX if services.has_warm_engine() else ROW_BY_ROW_COLD_MAX
    if support.row_by_row and size.rows > rows_max:
        return _ROW_BY_ROW
    if size.nbytes > limits.local_bytes_max:
        return "the inputs are too large for the local engine"
    if size.held > limits.local_held_bytes_max:
        return "its joins may need more memory than the local engine has"
    return None


def _file_tests(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> Mapping[RelationId, MayMatch]:
    """Tests that files pass if their statistics allow rows that the plan depends on."""
    tables = [
        table for table in execution.catalog().tables.values() if RelationId(table.shard) in inputs
    ]
    predicates = read_predicates(plan, tables, execution.parameters)
    return {
        RelationId(table.shard): predicate.may_match_file
        for table, predicate in zip(tables, predicates, strict=True)
        if predicate is not None
    }


def _local(execution: Execution) -> Executor:
    if execution.services.local is None:
        raise EngineUnavailable("this server has no local engine")
    return execution.services.local
