"""One script run by pgbench: a client in C, in processes of its own, that logs every transaction.

INVARIANTS
  B1  latencies come from pgbench's log of single transactions, not from its averages.
  B2  a transaction that failed fails the benchmark.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers import postgres_program

# pgbench itself needs a core; more threads would take it from the server.
THREADS_MAX = 2
TRIES_MAX = 10_000


class NothingFinished(RuntimeError):
    """No transaction ended in the time that a run was given."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """What one run of pgbench measured; times in milliseconds."""

    per_second: float
    p50_ms: float
    p99_ms: float
    retried: float = 0.0
    """Attempts that were refused and made again, for each transaction that committed."""


def run_script(
    dsn: str,
    script: str,
    *,
    clients: int,
    protocol: str,
    seconds: int | None = None,
    transactions: int | None = None,
    options: str = "",
    retries: bool = False,
) -> Throughput:
    """Run a script for some time, or for a number of transactions in all.

    `options`: settings of the sessions, as PGOPTIONS has them. `retries`: a transaction that cannot
    be serialized is tried again; its latency counts all attempts.
    """
    with tempfile.TemporaryDirectory(prefix="pgbench-") as place:
        directory = Path(place)
        (directory / "script").write_text(script)
        limit = (
            ["-T", str(seconds)] if transactions is None else ["-t", str(transactions // clients)]
        )
        command = [postgres_program("pgbench"), "--no-vacuum", "-f", "script", "-M", protocol]
        command += ["-c", str(clients), "-j", str(min(clients, THREADS_MAX)), *limit, "--log"]
        if retries:
            command += ["--max-tries", str(TRIES_MAX)]
        environment = {**os.environ, "PGOPTIONS": options}
        done = subprocess.run(
            [*command, dsn],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        if done.returncode != 0:
            raise RuntimeError(f"pgbench failed: {done.stderr[-2000:]}")
        logs = directory.glob("pgbench_log.*")
        return summarize(line for log in logs for line in log.read_text().splitlines())


def summarize(log: Iterable[str]) -> Throughput:
    """Throughput of a log: `client number latency_us script epoch_s epoch_us` a line, and how often
    it was tried again, if it may be (B1).
    """
    latencies: list[int] = []
    ends: list[int] = []
    retries = 0
    for line in log:
        words = line.split()
        if words[2] == "failed":
            raise RuntimeError(f"a transaction failed: {line}")
        latencies.append(int(words[2]))
        ends.append(int(words[4]) * 1_000_000 + int(words[5]))
        retries += int(words[6]) if len(words) > 6 else 0
    if not latencies:
        raise NothingFinished("no transaction was finished")
    begin = min(end - latency for end, latency in zip(ends, latencies, strict=True))
    return Throughput(
        per_second=len(latencies) / ((max(ends) - begin) / 1_000_000),
        p50_ms=percentile(latencies, 50) / 1000,
        p99_ms=percentile(latencies, 99) / 1000,
        retried=retries / len(latencies),
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
