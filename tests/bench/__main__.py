"""`make bench`: measure Meridian and PostgreSQL in turns and print medians.

make bench
make bench ARGS='--only commits,reads --rounds 1 --seconds 3'
make bench ARGS='--only copy --rows 10000000 --rounds 1'      # also the server's peak memory
make bench ARGS='--only keyed --rounds 1'                     # one row of a million by its key
make bench ARGS='--only lists --rounds 1'                     # long lists and chains
make bench ARGS='--only streams --rounds 1'                   # an upstream PostgreSQL
make bench ARGS='--only views --scale 0.1 --rounds 1'         # views that follow their inputs
make bench ARGS='--only bulk --keyed-rows 10000000 --rounds 1'   # and its peak memory
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import report, restart, start, tpch_bench
from tests.bench.doors import measure_doors
from tests.bench.sizes import Figures, Size
from tests.bench.streams import measure_streams
from tests.bench.views_bench import measure_views
from tests.bench.workloads import WORKLOADS
from tests.support.servers import Meridian, meridian, postgres

# Not a workload: it starts and kills a server of its own, and PostgreSQL has no part in it.
RESTART = "restart"
START = "start"
"""The same: it stops and starts a server of its own."""
DOORS = "doors"
"""Servers with rules and certificates of their own."""
STREAMS = "streams"
"""An upstream, which feeds both; only if it is asked for."""
TPCH = "tpch"
"""Minutes, and the engines alone instead of PostgreSQL: only if it is asked for."""

VIEWS = "views"
"""Minutes, and others than PostgreSQL: only if it is asked for."""

RESULTS = Path(__file__).parent.parent.parent / ".cache" / "bench"


def main() -> None:
    """Run the workloads in turns on both servers, on fresh data in every round."""
    arguments = _arguments()
    size = Size(
        seconds=arguments.seconds,
        reads=arguments.reads,
        copy_rows=arguments.rows,
        commits=arguments.commits,
        tables=arguments.tables,
        keyed_rows=arguments.keyed_rows,
    )
    options = ("--spark-master", arguments.spark_master)
    ours: list[Figures] = []
    theirs: list[Figures] = []
    failures: list[str] = []
    for number in range(1, arguments.rounds + 1):
        print(f"round {number} of {arguments.rounds}", flush=True)
        with contextlib.ExitStack() as stack:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            peer = stack.enter_context(postgres())
            server = stack.enter_context(meridian(place / "meridian", options))
            for name in (name for name in arguments.only if name in WORKLOADS):
                print(f"  {name}", flush=True)
                theirs.append(WORKLOADS[name](peer, size))
                try:
                    ours.append({**WORKLOADS[name](server.dsn, size), **_memory(server, name)})
                except Exception as error:  # the other figures are worth having
                    failures.append(f"{name}: {type(error).__name__}: {error}")
    if RESTART in arguments.only:
        print(f"  {RESTART}", flush=True)
        ours.append(restart.measure(kills=2 * arguments.rounds, acknowledged=2_000))
    if START in arguments.only:
        print(f"  {START}", flush=True)
        ours.append(start.measure(starts=2 * arguments.rounds))
    if DOORS in arguments.only:
        print(f"  {DOORS}", flush=True)
        for _ in range(arguments.rounds):
            mine, peers = measure_doors(arguments.seconds)
            ours.append(mine)
            theirs.append(peers)
    if STREAMS in arguments.only:
        print(f"  {STREAMS}", flush=True)
        for _ in range(arguments.rounds):
            mine, peers = measure_streams(arguments.seconds)
            ours.append(mine)
            theirs.append(peers)
    if VIEWS in arguments.only:
        print(f"  {VIEWS}", flush=True)
        for _ in range(arguments.rounds):
            spark = arguments.spark_master != "none"
            mine, peers = measure_views(arguments.seconds, arguments.scale, spark=spark)
            ours.append(mine)
            theirs.append(peers)
    if TPCH in arguments.only:
        print(f"  {TPCH}", flush=True)
        ours.append(tpch_bench.measure(arguments.scale, ("local", "spark"), arguments.rounds))
    _finish(report.medians(ours), report.medians(theirs), vars(arguments))
    if failures:
        sys.exit("\n".join(failures))


def _finish(ours: Figures, theirs: Figures, arguments: dict[str, object]) -> None:
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    results = {"commit": commit, "arguments": arguments, "meridian": ours, "postgresql": theirs}
    path = report.save(RESULTS, results)
    print(report.format_report(ours, theirs))
    print(f"saved as {path}")


def _memory(server: Meridian, workload: str) -> Figures:
    """Peak resident memory of the server process since it started, without its JVM."""
    if workload not in ("copy", "bulk"):
        return {}
    name = "server memory at its peak" + (", bulk" if workload == "bulk" else "")
    return {f"{name}: MiB": server.peak_mb}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    known = [*WORKLOADS, RESTART, START, DOORS, STREAMS, TPCH, VIEWS]
    usual = ",".join(name for name in known if name not in (STREAMS, TPCH, VIEWS))
    parser.add_argument("--only", default=usual, help=f"some of {','.join(known)}")
    parser.add_argument("--scale", type=float, default=1, help="of TPC-H")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of each run of pgbench")
    parser.add_argument("--reads", type=int, default=100, help="repetitions of each SELECT")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the COPY")
    parser.add_argument("--commits", type=int, default=10_000, help="before age is measured")
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--keyed-rows", type=int, default=1_000_000, help="of the keyed table")
    parser.add_argument("--spark-master", default="local[*]", help="as of `meridian serve`")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    if unknown := set(arguments.only) - set(known):
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    return arguments


if __name__ == "__main__":
    main()
