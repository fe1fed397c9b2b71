"""The judges of the workloads that no general judge understands: planted faults are found."""

import pytest

from tests.resilience.faults.constraints import Snapshot
from tests.resilience.faults.workloads import check_claims, check_counter
from tests.resilience.history.notation import parse_history


@pytest.mark.parametrize(
    ("history", "anomalies"),
    [
        ("p0 0-1 ok: write c 1\np1 2-3 ok: write c 2\np2 4-5 ok: read c 2", []),
        ("p0 0-5 ok: write c 2\np1 1-6 ok: write c 1\np2 2-4 ok: read c 0", []),
        ("p0 0-1 ok: write c 1\np1 0-2 ok: write c 1\np2 4-5 ok: read c 1", ["lost-update"]),
        ("p0 0-1 ok: write c 1\np1 2-3 ok: read c 0", ["went-back"]),
        ("p0 0-1 ok: write c 1\np1 2-3 ok: write c 1", ["lost-update", "went-back"]),
        ("p0 0-1 ok: read c 1\np1 2-3 ok: read c 0\np2 0-? info: write c 0", ["went-back"]),
        ("p0 0-? info: write c 0\np1 2-3 ok: read c 1", []),
        ("p0 0-1 fail: write c 0\np1 2-3 ok: read c 1", ["count"]),
        ("p0 0-1 ok: write c 2\np1 2-3 ok: read c 2", ["count"]),
    ],
)
def test_counters(history: str, anomalies: list[str]) -> None:
    assert [found.anomaly for found in check_counter(parse_history(history))] == anomalies


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ("p0 0-1 ok: set left_1 {5}, set right_1 {}", 0),
        ("p0 0-1 ok: set left_1 {5}, set right_2 {6}", 0),
        ("p0 0-1 ok: set left_1 {5}, set right_1 {6}", 1),
        ("p0 0-1 ok: set left_1 {5 6}", 1),
    ],
)
def test_claims(history: str, found: int) -> None:
    assert len(check_claims(parse_history(history))) == found


@pytest.mark.parametrize(
    ("snapshot", "problems"),
    [
        (Snapshot([1, -7, 2], [1, 2], [("children", 1), ("guests", 2)]), []),
        (Snapshot([1, 2, 1], [1], []), ["slot 1 2 times"]),
        (Snapshot([], [1, 1], []), ["parent 1 2 times"]),
        (Snapshot([], [2], [("guests", 3)] * 2), ["guests has an orphan of 3"]),
    ],
)
def test_constraints(snapshot: Snapshot, problems: list[str]) -> None:
    assert snapshot.problems() == problems
