"""Bugs planted into the production code: what they are, and where the simulation must find them."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.resilience.sim.run import simulate

SEEDS_MAX = 120

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Planted:
    """A bug, and where it shows. `shows`: a word of some finding, if it must be a certain one."""

    plant: Plant
    workload: str | None
    weather: str
    shows: str = ""


def assert_found(planted: Planted, first: int = 0) -> None:
    """Within a few seeds from the first on; it is planted already."""
    for seed in range(first, first + SEEDS_MAX):
        findings = simulate(seed, planted.workload, planted.weather).findings
        # A plant that does not fit the code any more would be found, too, but proves nothing.
        assert not any(
            error in str(f)
            for f in findings
            for error in ("TypeError", "AttributeError", "NameError")
        )
        if any(planted.shows in f.anomaly for f in findings):
            return
    raise AssertionError(f"not found in {SEEDS_MAX} seeds")
