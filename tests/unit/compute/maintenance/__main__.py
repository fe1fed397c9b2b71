"""`make views`: many random views, each through some commits; prints what there was of which kind.

A view that is wrong is printed with its seed; `--seed N --seeds 1` runs it again.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.reference.executor import ReferenceExecutor
from tests.unit.compute.maintenance.narrowed import NarrowedEngine, nothing_is_small
from tests.unit.compute.maintenance.random_changes import Outcome, live_through


async def run(first: int, seeds: int) -> int:
    """How many were wrong."""
    seen, wrong = Outcome(), 0
    reference, narrowed = ReferenceExecutor(), NarrowedEngine()
    with tempfile.TemporaryDirectory() as directory:
        local = LocalExecutor(LocalSettings(Path(directory), Path(directory) / "spill"))
        try:
            for seed in range(first, first + seeds):
                try:
                    await live_through(
                        seed, (lambda: local, lambda: reference, lambda: narrowed), seen
                    )
                except Exception as error:
                    wrong += 1
                    print(f"seed {seed}: {type(error).__name__}: {error}")
        finally:
            await local.close()
    print(", ".join(f"{what}: {number}" for what, number in sorted(seen.items())))
    print(f"{seeds} views, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=20_000)
    given = parser.parse_args()
    with pytest.MonkeyPatch.context() as patches:
        nothing_is_small(patches)
        failures = asyncio.run(run(given.seed, given.seeds))
    sys.exit(min(failures, 1))
