"""An engine that finds rows by key wherever it can, as `ViewMaintenance` does beside large tables.

    plan ─▶ NarrowedPlans ─┬─▶ rows
                           └─ whole relations are read ─▶ the reference evaluator

All relations that have keys count as large, and every other commit is a file.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

import pyarrow as pa
import pytest

from compute.access import narrowed_plans
from compute.access.key_index import KeyIndex
from compute.access.narrowed_plans import LargeTables, NarrowedPlans, NotNarrowed
from compute.executor import Run
from compute.reference.executor import ReferenceExecutor
from storage.batch import DataFile
from storage.types import ShardId, Source


class NarrowedEngine:
    """An `Executor`; a stage tells it of its tables."""

    name = "narrowed"

    def __init__(self) -> None:
        self.tables = LargeTables({})
        self.files: dict[tuple[ShardId, Source], pa.Table] = {}
        self.found = 0
        """Plans that were run over rows that were found by key."""
        index = KeyIndex(self._columns, self._rows)
        self._plans = NarrowedPlans(index)
        self._rest = ReferenceExecutor(lambda shard, file: self.files[shard, file.name])

    def use(self, tables: LargeTables) -> None:
        """Another stage begins, whose shards have the names of those before."""
        self.__init__()  # type: ignore[misc]
        self.tables = tables

    def begin(self) -> None:
        """Another run of a program begins: what was found is no more."""
        self.tables = LargeTables(self.tables.tables)

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        large = [view for one, view in run.inputs.items() if one in self.tables.tables]
        is_large = any(view.inline or view.files for view in large)
        found = self._plans.rows_now(run.plan, run.inputs, self.tables)
        if found is NotNarrowed.COLD:
            found = self._plans.rows_in_thread(run.plan, run.inputs, self.tables)
        if isinstance(found, NotNarrowed):
            async for batch in self._rest.run(run):
                yield batch
            return
        self.found += is_large
        if found:
            yield self._plans.batch(run.plan, found)

    async def close(self) -> None:
        """Nothing is held."""

    def _columns(self, shard: ShardId, file: DataFile, names: Sequence[str]) -> pa.Table:
        return self.files[shard, file.name].select(list(names))

    def _rows(self, shard: ShardId, file: DataFile, rows: Sequence[int]) -> pa.Table:
        return self.files[shard, file.name].take(pa.array(rows, pa.int64()))


def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All relations with keys are looked up, whatever size they have."""
    for name, most in LARGE_FROM.items():
        monkeypatch.setattr(narrowed_plans, name, most)


LARGE_FROM: Mapping[str, int] = {"SMALL_ROWS_MAX": 0, "_MEASURED_ROWS_MIN": 3}
