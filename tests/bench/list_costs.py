"""Measure the CPU time of long lists and chains beside PostgreSQL's: for a machine with other work.

python -m tests.bench.list_costs                      # every shape, of 10,000 parts
python -m tests.bench.list_costs in pairs --parts 1000

It is the time of all threads of the server, and of PostgreSQL's backend. The least of three counts.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg

from tests.bench.start import cpu_ms
from tests.postgres.lists.shapes import CHAINS, SHAPES, TABLE
from tests.support.servers import meridian, postgres

_RUNS: Final = 3
_LONG_MS: Final = 1_500
"""What takes so long runs once."""
_REST_SECONDS: Final = 0.05
"""Behind each run: what it leaves for later is its, too."""


def statement_cost_ms(connection: psycopg.Connection, pid: int, text: bytes) -> float | None:
    """CPU time of a statement; None if it is refused."""
    times: list[float] = []
    while len(times) < _RUNS and (not times or times[-1] < _LONG_MS):
        before = cpu_ms(pid)
        try:
            connection.execute(text, prepare=False).fetchall()
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            return None
        time.sleep(_REST_SECONDS)
        times.append(cpu_ms(pid) - before)
    return min(times)


def main() -> None:
    """Print a line for each shape."""
    shapes = {**SHAPES, **CHAINS}
    parser = argparse.ArgumentParser(prog="list_costs", description=__doc__)
    parser.add_argument("shapes", nargs="*", help="all, if none is named")
    parser.add_argument("--parts", type=int, default=10_000)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="lists-") as place,
        postgres() as peer,
        meridian(Path(place), ("--set", "spark_start=off")) as server,
        psycopg.connect(server.dsn, autocommit=True) as ours,
        psycopg.connect(peer, autocommit=True) as theirs,
    ):
        for connection in (ours, theirs):
            for statement in TABLE:
                connection.execute(statement.encode())
        for shape in given.shapes or shapes:
            text = shapes[shape](given.parts).encode()
            mine = statement_cost_ms(ours, server.pid, text)
            peers = statement_cost_ms(theirs, theirs.info.backend_pid, text)
            ratio = f"{mine / peers:6.1f}" if mine and peers else "      "
            print(f"{shape:26} {_shown(mine)} {_shown(peers)} {ratio}", flush=True)


def _shown(ms: float | None) -> str:
    return " refused" if ms is None else f"{ms:8.1f}"


if __name__ == "__main__":
    main()
