"""The property of maintained views: after every commit the stored rows are those of the query.

`make views` runs many more.
"""

import asyncio
from pathlib import Path

import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.reference.executor import ReferenceExecutor
from sql.incremental.program import Strategy
from tests.unit.compute.maintenance.narrowed import NarrowedEngine, nothing_is_small
from tests.unit.compute.maintenance.random_changes import Outcome, live_through

SEEDS = 300


def test_stored_rows_are_those_of_the_definition_after_every_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_is_small(monkeypatch)

    async def every() -> Outcome:
        seen, reference, narrowed = Outcome(), ReferenceExecutor(), NarrowedEngine()
        local = LocalExecutor(LocalSettings(tmp_path, tmp_path / "spill"))
        try:
            for seed in range(SEEDS):
                await live_through(seed, (lambda: local, lambda: reference, lambda: narrowed), seen)
        finally:
            await local.close()
        return seen

    seen = asyncio.run(every())
    assert sum(seen[strategy] for strategy in Strategy) > SEEDS * 0.9
    assert seen[Strategy.CHANGES] > SEEDS // 3
    assert seen[Strategy.KEYS] > SEEDS // 5
    assert seen["changed"] > SEEDS
    assert seen["found by key"] > SEEDS // 3
