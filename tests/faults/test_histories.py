"""Recorded histories of the real server under faults: strictly serializable in all of them."""

from pathlib import Path

import pytest

from tests.faults import workloads
from tests.faults.nemesis import STRIKES
from tests.faults.running import Plan, run


@pytest.mark.slow
@pytest.mark.parametrize("workload", workloads.ALL, ids=lambda w: w.__name__)
@pytest.mark.parametrize("strike", STRIKES)
def test_strictly_serializable_under(
    tmp_path: Path, strike: str, workload: type[workloads.Workload]
) -> None:
    plan = Plan([STRIKES[strike]] * 2)
    report = run(f"{workload.__name__} {strike}", tmp_path, workload(), plan)
    assert not report.findings, "\n".join(map(str, report.findings[:5]))
