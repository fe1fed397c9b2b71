"""The contract of an engine: run a plan over pinned table views and stream Arrow batches.

INVARIANTS
  E1  the batches have one field per output column, in order, with the Arrow type that
      `sql/types/sql_type.py` gives the column's type; rows of an ordered plan come in order.
  E2  a run reads its inputs and nothing else; the same plan and inputs give the same answer on
      every engine.
  E3  batches are bounded (`BATCH_ROWS_MAX`), and no more than a few wait for a slow consumer,
      whatever the size of the result.
  E4  `aclose()` of the iterator, or cancelling the task, soon ends the engine's work.

Errors: `SqlError` for errors of the data (22012, 22003 ..), `EngineUnavailable` when the engine
died or has not started, never an engine's own exception. One suite tests all engines:
`tests/conformance/test_executor.py`.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from sql.plan.nodes import Plan, RelationId
from sql.types.sql_type import Value
from storage.batch import ShardView

BATCH_ROWS_MAX: Final = 65_536
BATCH_BYTES: Final = 1 << 20
"""What an engine that can puts into a batch. Larger: every client that does not read holds more.
Smaller: more turns through threads for each result."""


class EngineUnavailable(Exception):
    """The engine died or has not started; nothing is known except that it did not answer."""


class NoExecutors(EngineUnavailable):
    """The engine is there, and the machines that would compute for it are not."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution. `inputs` has every relation that the plan scans; `parameters` $1 first."""

    plan: Plan
    inputs: Mapping[RelationId, ShardView]
    parameters: Sequence[Value] = ()
    is_check: bool = False
    """A statement that writes waits for it, maybe with locks: it comes before queries."""
    tell_waiting: Callable[[bool], None] | None = None
    """Is told when the run begins to wait for a place in the engine, and when that ends."""


class Executor(Protocol):
    """See the module."""

    @property
    def name(self) -> str:
        """As EXPLAIN shows it, e.g. `spark`."""
        ...

    def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """Start and stream. An empty result yields no batch or empty ones."""
        ...

    async def close(self) -> None:
        """End all work and release processes and threads."""
        ...
