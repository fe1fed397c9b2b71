"""CPU of the server for short statements, beside PostgreSQL's: `python -m tests.bench.short_bench`.

    select1, point   reads          insert, keyed, upsert, update, delete   single-row writes
    insert100        one INSERT     hot      all clients change one row     block, rmw   blocks

Each is sent by pgbench, prepared, with literals, or both. The figure is processor time of all
processes of the server, per statement (of a block: per transaction): a busy machine changes it less
than the throughput. Rounds are interleaved; medians are printed, the ratio, and the goal.

A transaction that is refused (40001) is sent again, as an application would do. What it costs
belongs to the transaction; how often it happened is printed.

On a busy machine: `echo -20 > /proc/self/autogroup` first, which both servers get. A TMPDIR in
memory compares something else: half of what a write costs PostgreSQL is its log on the disk.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.bench.pgbench import NothingFinished, Throughput, run_script
from tests.support.servers import Meridian, Postgres, meridian, postgres_server

ROWS = 100_000
DELETED_ROWS = 3_000_000
"""So many that few keys are met twice: a DELETE that finds nothing is a read."""
_KEY = f"\\set n random(1, {ROWS})\n"
_OLD = f"\\set n random(1, {DELETED_ROWS})\n"
_NEW = "\\set n random(1, 9000000000000000000)\n"
_HUNDRED = ", ".join(f"({n}, 'name {n}')" for n in range(100))
PREPARED, LITERAL = "prepared", "simple"


@dataclass(frozen=True, slots=True)
class Case:
    """A script, and how it is sent."""

    script: str
    protocols: Sequence[str] = (PREPARED, LITERAL)
    clients: Sequence[int] = (1, 16)
    goals: Sequence[float] = ()
    """At most so many times PostgreSQL's, for each number of clients."""
    literal_goals: Sequence[float] = ()
    """Where they differ."""


CASES = {
    "select1": Case("select 1;\n", goals=(2.5, 2)),
    "point": Case(
        f"{_KEY}select id, n, name from k where id = :n;\n",
        goals=(2.5, 2.5),
        literal_goals=(1.5, 1.5),
    ),
    "insert": Case(f"{_KEY}insert into t values (:n, 'name');\n", goals=(4, 1.8)),
    "keyed": Case(f"{_NEW}insert into u values (:n, 'name');\n", goals=(5, 2)),
    "upsert": Case(
        f"{_KEY}insert into k values (:n, 1, 'x') on conflict (id) do update set n = k.n + 1;\n",
        goals=(5, 2),
    ),
    "insert100": Case(f"insert into t values {_HUNDRED};\n", (LITERAL,), goals=(3, 1.6)),
    "update": Case(f"{_KEY}update k set n = n + 1 where id = :n;\n", goals=(5, 2.5)),
    "delete": Case(f"{_OLD}delete from d where id = :n;\n", goals=(5, 2.5)),
    "hot": Case("update k set n = n + 1 where id = 1;\n", (PREPARED,), (16,), (1,)),
    "block": Case(
        f"{_KEY}begin;\ninsert into t values (:n, 'a');\ninsert into t values (:n, 'b');\n"
        "commit;\n",
        (PREPARED,),
        goals=(4, 3),
    ),
    "rmw": Case(
        f"{_KEY}begin;\nselect n from k where id = :n;\nupdate k set n = n + 1 where id = :n;\n"
        "commit;\n",
        (PREPARED,),
        goals=(4, 3),
    ),
}


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="tests.bench.short_bench")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--clients", default="1,16")
    parser.add_argument("--protocols", default=f"{PREPARED},{LITERAL}")
    options = parser.parse_args()
    print("load", *os.getloadavg())
    names = options.only.split(",")
    clients = [int(count) for count in options.clients.split(",")]
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        meridian(Path(place), ("--spark-master", "none")) as server,
        postgres_server() as postgres,
    ):
        for pid in _family(postgres):
            _share_priority(pid)
        for dsn in (server.dsn, postgres.dsn):
            prepare_tables(dsn)
        for name in names:
            case = CASES[name]
            for protocol in [p for p in case.protocols if p in options.protocols.split(",")]:
                for count in [c for c in case.clients if c in clients]:
                    _measure(server, postgres, name, protocol, count, options)


def prepare_tables(dsn: str) -> None:
    """The tables that the scripts use."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (id int8, name text)")
        connection.execute("create table u (id bigint primary key, name text)")
        for table, rows in (("k", ROWS), ("d", DELETED_ROWS)):
            connection.execute(f"create table {table} (id int8 primary key, n int8, name text)")
            with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin") as copy:
                copy.write("".join(f"{n}\t0\tname {n}\n" for n in range(1, rows + 1)).encode())


def _measure(
    server: Meridian,
    postgres: Postgres,
    name: str,
    protocol: str,
    clients: int,
    options: argparse.Namespace,
) -> None:
    ours: list[float] = []
    theirs: list[float] = []
    rates: list[float] = []
    retried: list[float] = []
    for dsn, cpu, _ in measured_servers(server, postgres):
        _cost(dsn, cpu, name, protocol, clients, 1)  # warm
    for _ in range(options.rounds):
        for dsn, cpu, found in measured_servers(server, postgres):
            cost, run = _cost(dsn, cpu, name, protocol, clients, options.seconds)
            (ours if found else theirs).append(cost)
            if found:
                rates.append(run.per_second)
                retried.append(run.retried)
    mine, other = statistics.median(ours), statistics.median(theirs)
    case = CASES[name]
    goals = (case.literal_goals if protocol == LITERAL else ()) or case.goals
    goal = goals[case.clients.index(clients)]
    again = f"   {100 * statistics.median(retried):.1f} % tried again" if any(retried) else ""
    print(
        f"{name:10} {protocol:9} c={clients:<3} {mine:7.0f} us   PostgreSQL {other:6.0f} us"
        f"   {mine / other:5.1f} x   goal {goal:3.1f} {'' if mine <= goal * other else 'MISSED':6}"
        f"   {statistics.median(rates):8.0f}/s{again}",
        flush=True,
    )


def measured_servers(
    server: Meridian, postgres: Postgres
) -> Sequence[tuple[str, Callable[[], float], bool]]:
    return (
        (server.dsn, lambda: process_cpu_us([server.pid]), True),
        (postgres.dsn, lambda: process_cpu_us(_family(postgres)), False),
    )


def _cost(
    dsn: str, cpu: Callable[[], float], name: str, protocol: str, clients: int, seconds: int
) -> tuple[float, Throughput]:
    """Processor time of a statement in microseconds, and the run that it was measured in. A longer
    one if nothing was finished: the machine stood.
    """
    before = cpu()
    script = CASES[name].script
    try:
        run = run_script(
            dsn, script, clients=clients, protocol=protocol, seconds=seconds, retries=True
        )
    except NothingFinished:
        return _cost(dsn, cpu, name, protocol, clients, 2 * seconds)
    return (cpu() - before) / (run.per_second * seconds), run


def _family(postgres: Postgres) -> Sequence[int]:
    first = int((postgres.directory / "postmaster.pid").read_text().split()[0])
    return [first]


def _share_priority(pid: int) -> None:
    """Give a process that has a session of its own the priority of this one: where sessions are
    scheduled as groups, that of the group is what counts.
    """
    mine, theirs = Path("/proc/self/autogroup"), Path(f"/proc/{pid}/autogroup")
    if mine.exists():
        theirs.write_text(mine.read_text().split()[-1])


def process_cpu_us(pids: Sequence[int]) -> float:
    """Processor time of processes, and of their children that have ended, in microseconds."""
    total = 0.0
    for pid in pids:
        for one in (pid, *_children(pid)):
            total += _own_us(one)
    return total


def _children(pid: int) -> Sequence[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()]


def _own_us(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    # Its own time, and that of backends that it has waited for.
    ticks = sum(int(fields[place]) for place in (11, 12, 13, 14))
    return ticks * 1_000_000 / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
