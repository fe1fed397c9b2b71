"""What a start costs: CPU until `ready`, and memory; with few tables and with many. No Spark.

    make tables ─▶ stop ─▶ start ─▶ ready: CPU, memory ─▶ idle: memory ─▶ CREATE TABLE: CPU

python -m tests.bench.start [--starts 5] [--tables 5000]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import psycopg

from tests.bench.sizes import Figures
from tests.support.servers import Meridian, meridian

OPTIONS = ("--spark-master", "none")
COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
"""The start that makes the tables keeps the compiled modules, whatever the environment says."""
FEW = 10
IDLE_S = 4.0
"""Until whatever a server does after `ready` is done."""
DEFINITIONS = 20
TABLE = (
    "CREATE TABLE IF NOT EXISTS {name} (id bigint PRIMARY KEY, name text NOT NULL, at timestamptz)"
)


def cpu_ms(pid: int) -> float:
    """CPU of all threads of a process so far."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e6


def resident_mib(pid: int) -> float:
    """Memory of a process that is resident."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def measure(*, starts: int, tables: int = 5_000) -> Figures:
    """Medians of so many starts, with few tables and with that many."""
    figures: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(prefix="start-") as place,
        meridian(Path(place), OPTIONS, COMPILED) as server,
    ):
        server.stop()
        figures |= _starts(server, starts, "no table")
        for count in (FEW, tables):
            server.start()
            _make_tables(server.dsn, count)
            server.stop()
            figures |= _starts(server, starts, f"{count} tables")
            figures |= _definitions(server, count)
    return figures


def _starts(server: Meridian, starts: int, what: str) -> Figures:
    cpu: list[float] = []
    ready: list[float] = []
    idle: list[float] = []
    for _ in range(starts):
        server.start()
        cpu.append(cpu_ms(server.pid))
        ready.append(resident_mib(server.pid))
        time.sleep(IDLE_S)
        idle.append(resident_mib(server.pid))
        server.stop()
    return {
        f"start, {what}: CPU ms": statistics.median(cpu),
        f"start, {what}: memory at ready, MiB": statistics.median(ready),
        f"start, {what}: memory when idle, MiB": statistics.median(idle),
    }


def _make_tables(dsn: str, count: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(count):
            name = f"bench_start_{number}"
            connection.execute(TABLE.format(name=name).encode())


def _definitions(server: Meridian, tables: int) -> Figures:
    server.start()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(TABLE.format(name=f"bench_first_{tables}").encode())
        # What a server imports after `ready` is no definition's.
        time.sleep(IDLE_S)
        before = cpu_ms(server.pid)
        for number in range(DEFINITIONS):
            connection.execute(TABLE.format(name=f"bench_one_{tables}_{number}").encode())
        cost = (cpu_ms(server.pid) - before) / DEFINITIONS
    server.stop()
    return {f"CREATE TABLE beside {tables} tables: CPU ms": cost}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--tables", type=int, default=5_000)
    arguments = parser.parse_args()
    for name, value in measure(**vars(arguments)).items():
        print(f"{name}  {value:.1f}")


if __name__ == "__main__":
    main()
