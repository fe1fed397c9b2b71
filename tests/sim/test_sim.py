"""Some seeds in every run; `make sim SEEDS=..` for more. A failing seed becomes a transcript."""

import os
from collections import Counter

import pytest

from tests.history.events import Kind
from tests.sim.run import report, simulate

SEEDS = int(os.environ.get("SIM_SEEDS", "60"))


@pytest.mark.parametrize("block", range(6))
def test_no_anomaly_and_the_faults_are_real(block: int) -> None:
    told: Counter[Kind] = Counter()
    crashes = 0
    for seed in range(block * SEEDS // 6, (block + 1) * SEEDS // 6):
        outcome = simulate(seed)
        assert not outcome.findings, report(outcome)
        told.update(transaction.status for transaction in outcome.history.transactions())
        crashes += outcome.crashes
    # A run proves something only with conflicts, unknown outcomes and crashes in it.
    assert told[Kind.OK] > 10 * SEEDS / 6
    assert told[Kind.FAIL] > SEEDS / 6
    assert told[Kind.INFO] > 0
    assert crashes > SEEDS / 6


def test_same_seed_same_trace() -> None:
    assert simulate(7).trace == simulate(7).trace
