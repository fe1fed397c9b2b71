"""From kill -9 under load to the first strict answer, without Spark.

load ─▶ kill -9 ─▶ t0 ─▶ start: lock, epoch, recovery ─▶ ready ─▶ SELECT answered ─▶ t1

python -m tests.bench.restart [--kills 5] [--acknowledged 2000]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import psycopg

from tests.bench.sizes import Figures
from tests.resilience.crash.load import Load
from tests.support.servers import meridian

REFERENCE = ("--spark-master", "reference")
NAME = "kill -9 under load to the first strict answer: ms"


def measure(*, kills: int, acknowledged: int) -> Figures:
    """Kill the server so often, each time after so many acknowledged inserts; the median."""
    load = Load(writers=8, readers=0)
    seconds: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="restart-") as place,
        meridian(Path(place), REFERENCE) as server,
    ):
        load.create(server.dsn)
        for _ in range(kills):
            load.run_until(server.dsn, acknowledged, server.kill)
            began = time.monotonic()
            server.start()
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                row = connection.execute("SELECT count(*) FROM kept").fetchone()
            seconds.append(time.monotonic() - began)
            assert row is not None
            assert row[0] > 0, "what was acknowledged is there"
    return {NAME: statistics.median(seconds) * 1000}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--acknowledged", type=int, default=2_000)
    arguments = parser.parse_args()
    for name, value in measure(**vars(arguments)).items():
        print(f"{name}  {value:.0f}")


if __name__ == "__main__":
    main()
