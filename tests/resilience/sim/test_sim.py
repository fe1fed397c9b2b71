"""Some seeds in every run; `make sim SEEDS=..` for more."""

import os
import subprocess
import sys
import zlib

import pytest

from tests.resilience.history.events import Kind
from tests.resilience.sim.counters import STRICT, Hot
from tests.resilience.sim.many import Sum, run_many
from tests.resilience.sim.run import STORMS, WORKLOADS, simulate

SEEDS = int(os.environ.get("SIM_SEEDS", "702"))
"""A multiple of the pairs of workload and weather; fewer are for those who wait."""

TRACED = (1, 20, 41)


@pytest.fixture(scope="module")
def total() -> Sum:
    """All runs together, over all cores."""
    return run_many(range(SEEDS))


def test_no_anomaly(total: Sum) -> None:
    assert not total.failures, "\n".join(total.failures)
    assert total.runs == SEEDS


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_commits_and_has_unknown_outcomes(total: Sum, workload: str) -> None:
    assert total.share(Kind.OK, workload) > 0.3
    assert total.share(Kind.INFO, workload) > 0.005


@pytest.mark.parametrize("workload", sorted(WORKLOADS.keys() - {"sets"}))
def test_every_workload_with_reads_and_writes_has_conflicts(total: Sum, workload: str) -> None:
    assert total.share(Kind.FAIL, workload) > 0.03


@pytest.mark.parametrize("weather", sorted({*STORMS}))
def test_every_weather_leaves_outcomes_unknown(total: Sum, weather: str) -> None:
    assert total.share(Kind.OK, weather) > 0.3
    assert total.share(Kind.INFO, weather) > 0.002


@pytest.mark.parametrize(
    "fault",
    [
        "crashes",
        "power_failures",
        "successions",
        "pauses",
        "fenced",
        "late",
        "asked_again",
        "inserted_alone",
        "changed_by_key",
        "not_by_key",
        "changed_inside",
        "taken_inside",
        "taken_alone",
        "stale",
        "doubted",
    ],
)
def test_the_faults_are_real(total: Sum, fault: str) -> None:
    assert total.tally[fault] > SEEDS / 50


@pytest.mark.parametrize(
    ("seed", "workload", "weather"),
    [
        (2037, "lines", "successions"),
        (3589, "lists", "disks"),
        (6483, "lines", "lossy"),
        (7343, "user types", "mixed"),
        (9353, "definitions", "crashes"),
        (9590, "skew", "successions"),
        (17109, "lines", "successions"),
        (20088, "definitions", "successions"),
        (28184, "definitions", "mixed"),
        (32527, "alterations", "successions"),
        (33819, "holds", "successions"),
        (34428, "hot", "successions"),
        (71989, "holds", "successions"),
        (228, "guarded", "wrong days"),
        (921357, "migrations", "disks"),
        (928246, "guarded", "locks"),
        (930929, "views", "successions"),
        (934543, "views", "successions"),
        (937947, "followers", "successions"),
        (505, "guarded", "successions"),
        (958406, "guarded", "successions"),
        (971538, "short writes", "locks"),
        (987459, "skew", "wrong days"),
        (987192, "sources", "successions"),
        (1004501, "notifications", "successions"),
        (1014282, "short writes", "mixed"),
    ],
)
def test_seeds_that_found_a_bug(seed: int, workload: str, weather: str) -> None:
    outcome = simulate(seed, workload, weather)
    assert not outcome.findings, outcome.report()


def test_64_clients_that_increment_one_row_all_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single statements, without a fault: a write lease lets everybody finish, once each."""
    monkeypatch.setattr(Hot, "KEYS", ("c_1",))
    monkeypatch.setattr(Hot, "crowd", lambda _: (64, 2))
    monkeypatch.setattr(Hot, "plan", lambda self: self._increment(STRICT, alone=True))
    outcome = simulate(1, "hot", "calm")
    assert not outcome.findings, outcome.report()
    increments = [t for t in outcome.history.transactions() if t.writes and len(t.operations) > 1]
    assert len(increments) >= 64
    assert all(t.is_ok for t in increments)


@pytest.mark.parametrize("hash_seed", [1, 2])
def test_same_seed_same_trace_in_another_process(hash_seed: int) -> None:
    code = "from tests.resilience.sim.test_sim import digest; print(digest())"
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert int(told.stdout) == digest()


def digest() -> int:
    """Of the traces of a few runs."""
    lines = [line for seed in TRACED for line in simulate(seed).trace]
    assert len(lines) > 500
    return zlib.crc32("\n".join(lines).encode())
