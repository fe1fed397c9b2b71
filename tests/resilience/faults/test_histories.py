"""Recorded histories of the real server under faults: strictly serializable in all of them.

`make faults` runs every workload under every fault; `make test` a few of the meetings.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.resilience.faults import nemesis, workloads
from tests.resilience.faults.constraints import Constraints
from tests.resilience.faults.nemesis import STRIKES, Strike
from tests.resilience.faults.running import Plan, run
from tests.resilience.faults.workloads import (
    Bank,
    Claims,
    Lists,
    Registers,
    ViewedBank,
    Workload,
)
from tests.support.servers import ON_SPARK

# More seeds, more meetings of fault and load.
SEEDS = int(os.environ.get("FAULT_SEEDS", "1"))


def _assert_strictly_serializable(
    directory: Path, workload: type[Workload], strikes: Sequence[Strike], plan: Plan
) -> None:
    names = ", ".join(strike.__name__ for strike in dict.fromkeys(strikes))
    report = run(f"{workload.__name__}, {names}", directory, workload(), plan)
    assert not report.findings, "\n".join(map(str, report.findings[:5]))


@pytest.mark.parametrize(
    ("workload", "strikes"),
    [
        (
            Bank,
            [
                nemesis.kill,
                nemesis.pause,
                nemesis.disk_full,
                nemesis.table_full,
                nemesis.writes_fail,
            ],
        ),
        (Registers, [nemesis.sync_fails, nemesis.clock_jumps]),
        (ViewedBank, [nemesis.kill, nemesis.kill]),
    ],
    ids=["bank", "registers", "views"],
)
def test_strictly_serializable(
    tmp_path: Path, workload: type[Workload], strikes: Sequence[Strike]
) -> None:
    _assert_strictly_serializable(tmp_path, workload, strikes, Plan(strikes))


def test_32_clients_break_no_unique_or_foreign_key(tmp_path: Path) -> None:
    """At every isolation level, also over a kill and a pause."""
    strikes = [nemesis.kill, nemesis.pause]
    plan = Plan(strikes, clients=32, between=200)
    _assert_strictly_serializable(tmp_path, Constraints, strikes, plan)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
@pytest.mark.parametrize("workload", [*workloads.ALL, Constraints], ids=lambda w: w.__name__)
@pytest.mark.parametrize("strike", STRIKES)
def test_strictly_serializable_under(
    tmp_path: Path, strike: str, workload: type[Workload], seed: int
) -> None:
    strikes = [STRIKES[strike]] * 2
    _assert_strictly_serializable(tmp_path, workload, strikes, Plan(strikes, seed=seed))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("workload", [Bank, ViewedBank, Claims, Lists], ids=lambda w: w.__name__)
def test_strictly_serializable_while_the_jvm_is_killed(
    tmp_path: Path, workload: type[Workload]
) -> None:
    strikes = [nemesis.kill_jvm, nemesis.kill, nemesis.kill_jvm]
    options = (*ON_SPARK, "--set", "spark_start=eager")
    plan = Plan(strikes, clients=4, between=20, options=options)
    _assert_strictly_serializable(tmp_path, workload, strikes, plan)
