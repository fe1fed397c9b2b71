"""CPU of a server that is watched, beside one that is not: `python -m tests.bench.visible_bench`.

Watched: pg_stat_statements, JSON logs of slow statements and of lock waits, and a scrape of its
metrics every five seconds. Both servers run the scripts of `short_bench` in turns, so a busy
machine strikes both. Medians and their quotient are printed.
"""

import argparse
import statistics
import tempfile
import threading
from pathlib import Path

import psycopg

from tests.bench.pgbench import run_script
from tests.bench.short_bench import CASES, PREPARED, prepare_tables, process_cpu_us
from tests.session.monitoring.http_client import scrape
from tests.support.servers import Meridian, free_port, meridian

NO_JVM = ("--spark-master", "none")
SCRAPE_S = 5
"""Prometheus' own default is a minute."""

SETTINGS = ("log_min_duration_statement = 1000", "log_lock_waits = on")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="tests.bench.visible_bench")
    parser.add_argument("--only", default="select1,point,insert,update,rmw")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    port = free_port()
    listens = ("--set", f"http_listen=127.0.0.1:{port}", "--set", "log_format=json")
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        meridian(Path(place) / "plain", NO_JVM) as plain,
        meridian(Path(place) / "watched", (*NO_JVM, *listens)) as watched,
    ):
        for server in (plain, watched):
            prepare_tables(server.dsn)
        with psycopg.connect(watched.dsn, autocommit=True) as connection:
            connection.execute("create extension pg_stat_statements")
            for setting in SETTINGS:
                connection.execute(f"alter role all set {setting}".encode())
        over = threading.Event()
        scraping = threading.Thread(target=_scrape, args=(port, over))
        scraping.start()
        try:
            for name in options.only.split(","):
                _measure(plain, watched, name, options.rounds, options.seconds)
        finally:
            over.set()
            scraping.join()


def _scrape(port: int, over: threading.Event) -> None:
    while not over.wait(SCRAPE_S):
        scrape(port)


def _measure(plain: Meridian, watched: Meridian, name: str, rounds: int, seconds: int) -> None:
    found: dict[int, list[float]] = {plain.pid: [], watched.pid: []}
    for turn in range(rounds + 1):
        # Whoever is first in a round differs from round to round.
        for server in (plain, watched) if turn % 2 else (watched, plain):
            cost = _cost(server, name, seconds)
            if turn:  # The first one warms.
                found[server.pid].append(cost)
    without, with_all = (statistics.median(found[server.pid]) for server in (plain, watched))
    spread = [f"{min(costs):.0f}-{max(costs):.0f}" for costs in found.values()]
    print(
        f"{name:10} {without:7.0f} us ({spread[0]})   watched {with_all:7.0f} us ({spread[1]})"
        f"   {with_all / without:6.3f}",
        flush=True,
    )


def _cost(server: Meridian, name: str, seconds: int) -> float:
    """Processor time of a statement in microseconds."""
    before = process_cpu_us([server.pid])
    script = CASES[name].script
    run = run_script(server.dsn, script, clients=1, protocol=PREPARED, seconds=seconds)
    return (process_cpu_us([server.pid]) - before) / (run.per_second * seconds)


if __name__ == "__main__":
    main()
