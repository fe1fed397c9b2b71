"""The arithmetic of the benchmarks, and every workload once, small, on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import report
from tests.bench.pgbench import Throughput, percentile, summarize
from tests.bench.sizes import Size
from tests.bench.workloads import WORKLOADS
from tests.support.servers import postgres


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([3, 1, 2], 50) == 2
    assert percentile([1, 2], 50) == 1
    assert percentile(list(range(1, 101)), 99) == 99
    assert percentile([7], 99) == 7


def test_throughput_counts_from_the_first_begin_to_the_last_end() -> None:
    log = ["0 0 500000 0 10 500000", "1 0 1000000 0 11 0", "0 1 1500000 0 12 0"]
    assert summarize(log) == Throughput(per_second=1.5, p50_ms=1000, p99_ms=1500)


def test_attempts_that_were_refused_are_counted() -> None:
    log = ["0 0 500000 0 10 500000 3", "1 0 1000000 0 11 0 0"]
    assert summarize(log).retried == 1.5


def test_a_failed_transaction_fails_the_benchmark() -> None:
    with pytest.raises(RuntimeError, match="failed"):
        summarize(["0 0 failed 0 10 0"])


def test_the_report_compares_and_judges() -> None:
    ours = report.medians([{"COPY of 6 columns: rows/s": n} for n in (1.0, 300_000.0, 250_000.0)])
    text = report.format_report({**ours, "SELECT 1: p50 ms": 2}, {"SELECT 1: p50 ms": 0.5})
    lines = [line.split("  ") for line in text.splitlines()[1:]]
    assert [[cell.strip() for cell in line if cell] for line in lines] == [
        ["COPY of 6 columns: rows/s", "250,000", ">= 200000", "reached"],
        ["SELECT 1: p50 ms", "2.00", "0.50", "4.00"],
    ]
    assert "MISSED" in report.format_report({"server memory at its peak: MiB": 2000}, {})


@pytest.fixture(scope="module")
def peer() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload(name: str, peer: str, tmp_path: Path) -> None:
    size = Size(
        seconds=1, reads=2, copy_rows=10_000, commits=64, tables=3, keyed_rows=2_000, clients=(1, 2)
    )
    figures = WORKLOADS[name](peer, size)
    assert figures
    assert all(value > 0 or name.endswith("refused") for name, value in figures.items())
    assert report.save(tmp_path, {"figures": figures}).name == "0000.json"
