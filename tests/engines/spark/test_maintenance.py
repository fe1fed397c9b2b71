"""Random views are maintained by programs that run on Spark."""

import asyncio

import pytest

from sql.incremental.program import Strategy
from tests.engines.spark import shared_engine
from tests.unit.compute.maintenance.random_changes import Outcome, live_through

pytestmark = pytest.mark.spark
SEEDS = range(700, 715)


def test_stored_rows_are_those_of_the_definition_after_every_commit() -> None:
    async def every() -> Outcome:
        seen = Outcome()
        for seed in SEEDS:
            await live_through(seed, (shared_engine.executor,), seen, commits=2)
        return seen

    seen = asyncio.run(every())
    assert sum(seen[strategy] for strategy in Strategy) > len(SEEDS) * 0.8
    assert seen["changed"] > len(SEEDS) // 4
