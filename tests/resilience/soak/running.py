"""The run: a server, a crowd on it, histories beside them, and what must be true in the end.

    tables ─▶ crowd and histories, for so long ─▶ all go home ─▶ quiet? ─▶ SIGTERM ─▶ check

| judge | what would show |
| --- | --- |
| histories, own writes, known answers | a client that is harmed by what others suffer |
| nobody hangs | an answer that never comes |
| the process in the last third beside the second one | memory that grows |
| account, places, runs, sessions, CPU after all have gone | what is never given back or stopped |

INVARIANTS
  J1  time is never judged: what takes long is reported, what does not end is a finding.
  J2  histories are of rounds, each with tables of its own: a judge sees some thousand transactions.
"""

import asyncio
import itertools
import logging
import random
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import asyncpg
import psycopg

from tests.bench.fair_bench import quantile, watched
from tests.resilience.faults.clients import Account, Client, Lost, state_of
from tests.resilience.faults.constraints import Constraints
from tests.resilience.faults.running import Report, report_on, run_client
from tests.resilience.faults.time_travel import Historian
from tests.resilience.faults.workloads import ALL, Workload
from tests.resilience.history.events import Finding
from tests.resilience.soak import askers, storms, writers
from tests.resilience.soak.crowd import Crowd, OwnCount
from tests.resilience.soak.served import Inside, look
from tests.support.servers import Meridian, meridian

ROUND_S: Final = 60.0
PACE_S: Final = 0.05
"""Mean pause of a client with a history. Smaller: histories that take long to judge."""
HISTORY_STATES: Final = frozenset({"23502", "23503", "23505", "72000", "22P02"})
GONE_SECONDS_MAX: Final = 120.0
"""Who has not come to an end by then hangs (J1): a hundred times what it takes."""
WARM_S: Final = 300.0
"""A server is warm after so long, or after a third of the run."""
HELD_MAX: Final = 64 << 10
"""Bytes of the account that the one who asks may have."""
GROWTH: Final = 1.25
GROWTH_MB: Final = 128
"""What the last third may have more than the second one: caches, a large result at the time."""
AT_ONCE: Final = 8
"""Long statements at the end: more than there are places."""


@dataclass(slots=True)
class Soaked:
    """What a run has seen."""

    seconds: float
    crowd: Crowd
    tell: Callable[[str], object]
    """Is told how far the run is."""
    resident_mb: list[int] = field(default_factory=list)
    waits: Sequence[float] = ()
    inside: Inside | None = None
    left_mb: int = 0
    """Memory of the server when all had gone."""
    reports: list[Report] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def thirds(self) -> tuple[float, float]:
        """The medians of memory in the second and in the last third of the warm time."""
        warm = self.resident_mb[int(len(self.resident_mb) * min(1 / 3, WARM_S / self.seconds)) :]
        return statistics.median(warm[: len(warm) // 2]), statistics.median(warm[len(warm) // 2 :])

    def __str__(self) -> str:
        before, after = self.thirds()
        waits = [quantile(self.waits, part) for part in (0.5, 0.99, 1)]
        told = sum(report.transactions for report in self.reports)
        lines = [
            f"done: {dict(sorted(self.crowd.done.items()))}",
            f"told: {dict(self.crowd.states)}",
            f"histories: {len(self.reports)} with {told} transactions",
            f"memory: {before:.0f} MiB, later {after:.0f} MiB, most {max(self.resident_mb)} MiB,"
            f" when all had gone {self.left_mb} MiB",
            "SELECT 1 of another: p50 {:.1f} ms, p99 {:.1f} ms, worst {:.0f} ms".format(*waits),
        ]
        if self.inside is not None:
            lines.append(
                f"the loop stood {self.inside.stalls} times, {self.inside.longest_s:.2f} s at most,"
                f" {self.inside.cpu_s:.2f} s of CPU; held at the end: {self.inside.held} bytes"
            )
        return "\n".join([*lines, *map(str, self.findings[:20])])


def soak(
    place: Path,
    seconds: float,
    *,
    spark_master: str = "none",
    plant: str = "none",
    tell: Callable[[str], object] = lambda _: None,
) -> Soaked:
    """Run for so long, and judge."""
    # A connection that is terminated in a pipeline, or at its end, is what this is about.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    window = place / "window"
    options = ("--spark-master", spark_master)
    program = ("tests.resilience.soak.served", str(window), plant)
    with meridian(place / "served", options, program=program) as server:
        crowd = Crowd(server.dsn, spark=spark_master != "none")
        soaked = Soaked(seconds, crowd, tell)
        counts = _make_tables(crowd)
        threads = [*_threads(crowd, server, counts)]
        with watched(crowd.as_control()) as soaked.waits:
            asyncio.run(_load(soaked, server, counts, threads))
        _judge_counts(crowd, counts)
        _judge_quiet(soaked, server, window)
        if server.stop() != 0:
            crowd.found("exit", server.log[-2_000:])
        checked = server.check()
        if checked.returncode != 0:
            crowd.found("check", checked.stdout + checked.stderr)
    before, after = soaked.thirds()
    if after > before * GROWTH + GROWTH_MB:
        crowd.found("memory grows", f"{before:.0f} MiB, later {after:.0f} MiB")
    soaked.findings += crowd.findings
    return soaked


# --- who comes -----------------------------------------------------------------------------------


def _make_tables(crowd: Crowd) -> dict[int, OwnCount]:
    """The tables, and who counts which row: single statements below `BLOCK_KEYS`, blocks above."""
    with psycopg.connect(crowd.as_control(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE big AS SELECT i, i % 997 AS k, md5(i::text) AS s"
            f" FROM generate_series(1, {askers.BIG_ROWS}) i".encode()
        )
        connection.execute("CREATE TABLE bulk (batch bigint, row bigint, text text)")
        keys = [-1, *range(14), *range(askers.BLOCK_KEYS, askers.BLOCK_KEYS + 8)]
        for table in ("own", "mirror"):
            connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n bigint)".encode())
            rows = ", ".join(f"({key}, 0)" for key in keys)
            connection.execute(f"INSERT INTO {table} VALUES {rows}".encode())
    return {key: OwnCount(crowd, f"row {key}") for key in keys}


def _threads(
    crowd: Crowd, server: Meridian, counts: dict[int, OwnCount]
) -> Iterator[threading.Thread]:
    """The clients that wait in threads of their own."""

    def several(
        kind: str, count: int, run: Callable[[str, int], None]
    ) -> Iterator[threading.Thread]:
        for number in range(count):
            name = f"{kind} {number}"
            yield threading.Thread(target=run, args=(name, number), name=name, daemon=True)

    batches = itertools.count(1)
    yield from several(
        "by key", 8, lambda name, at: writers.write_by_key(crowd, name, at, counts[at])
    )
    yield from several(
        "messages", 6, lambda name, at: writers.write_messages(crowd, name, 8 + at, counts[8 + at])
    )
    yield from several("copy", 3, lambda name, _: writers.copy_in(crowd, name, batches))
    yield from several("long", 4, lambda name, _: askers.read_long(crowd, name))
    yield from several("large", 3, lambda name, _: askers.send_large(crowd, name))
    yield from several("still", 1, lambda name, _: askers.stand_still(crowd, name))
    yield from several("vanishing", 3, lambda name, _: storms.vanish(crowd, name))
    yield from several("cancelling", 3, lambda name, _: storms.cancel_own(crowd, name))
    yield from several("cancel", 1, lambda name, _: storms.cancel_others(crowd, name))
    yield from several("terminate", 1, lambda name, _: storms.terminate_others(crowd, name))
    if crowd.spark:
        yield from several("kill", 1, lambda name, _: storms.kill_jvms(crowd, name, server))


async def _load(
    soaked: Soaked,
    server: Meridian,
    counts: dict[int, OwnCount],
    threads: Sequence[threading.Thread],
) -> None:
    """The crowd comes, rounds of histories, and all go home."""
    crowd = soaked.crowd
    current = await Round.open(crowd, 0)
    until = time.monotonic() + soaked.seconds
    async with asyncio.TaskGroup() as tasks:
        weighing = tasks.create_task(_weigh(soaked, server))
        clients = [tasks.create_task(client) for client in _coroutines(crowd, counts)]
        for thread in threads:
            thread.start()
        while True:
            await current.run(min(ROUND_S, until - time.monotonic()))
            if time.monotonic() >= until:
                break
            await current.judge(soaked)
            current = await Round.open(crowd, current.number + 1)
        crowd.ended.set()
        weighing.cancel()
        await asyncio.to_thread(_join, crowd, threads)
        _, pending = await asyncio.wait(clients, timeout=GONE_SECONDS_MAX)
        if pending:
            crowd.found("hangs", f"{sorted(crowd.doing.items())}")
        for task in pending:
            task.cancel()
    # The last verdict is of a server that has nothing else to do any more.
    await current.judge(soaked)


def _coroutines(crowd: Crowd, counts: dict[int, OwnCount]) -> Iterator[Coroutine[None, None, None]]:
    """The clients that wait on the loop, without histories."""
    for at in range(8):
        key = askers.BLOCK_KEYS + at
        yield writers.write_blocks(crowd, f"blocks {at}", key, counts[key])
        yield askers.read_short(crowd, f"short {at}")


async def _weigh(soaked: Soaked, server: Meridian) -> None:
    while True:
        soaked.resident_mb.append(server.resident_mb)
        await asyncio.sleep(0.25)


# --- histories -----------------------------------------------------------------------------------


class Played:
    """A workload that two clients play, in a schema of its own: two workloads may have a table of
    one name.
    """

    def __init__(self, crowd: Crowd, name: str, workload: Workload) -> None:
        self.workload = workload
        self.account = Account()
        self.schema = f"{name}_{type(workload).__name__.lower()}"
        self.dsn = f"{crowd.dsn}?search_path={self.schema}"
        """Where the clients find their tables by name."""
        self._control = f"{crowd.as_control()}&search_path={self.schema}"

    async def create(self) -> None:
        """The schema and the tables."""
        client = await self.connect()
        await client.fetch(f"CREATE SCHEMA {self.schema}")
        await self.workload.create(client)
        client.close()

    async def connect(self) -> Client:
        """Somebody who is left alone."""
        return await Client.connect(self.account, self._control)

    async def drop(self) -> None:
        """Let the tables go."""
        client = await Client.connect(Account(), self._control)
        await client.fetch(f"DROP SCHEMA {self.schema} CASCADE")
        client.close()


class Round:
    """Every workload by two clients, and a historian."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self.number = number
        self._crowd = crowd
        self._name = f"round_{number}"
        self._runs = [Played(crowd, self._name, kind()) for kind in (*ALL, Constraints)]

    @classmethod
    async def open(cls, crowd: Crowd, number: int) -> "Round":
        """With its tables."""
        opened = cls(crowd, number)
        for run in opened._runs:
            await run.create()
        return opened

    async def run(self, seconds: float) -> None:
        """Load the server for so long."""
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for run in self._runs:
                for client in range(2):
                    rng = random.Random(f"{self.number} {client} {type(run.workload).__name__}")
                    step = _paced(self._crowd, run.workload)
                    tasks.create_task(run_client(run.account, run, step, rng, ended))
            first = self._runs[0]
            step = _paced(self._crowd, Historian(first.account, first.workload.tables))
            tasks.create_task(run_client(first.account, first, step, random.Random(0), ended))
            await asyncio.sleep(seconds)
            ended.set()

    async def judge(self, soaked: Soaked) -> None:
        """Read everything, judge what was told, and let the tables go."""
        for run in self._runs:
            client = await run.connect()
            try:
                answered = await run.workload.read_all(client)
            except ValueError as error:
                self._crowd.found("wrong answer", f"{run.schema}: {error}")
            else:
                if not answered:
                    self._crowd.found("no answer", f"{run.schema}: the last read")
            client.close()
            report = await asyncio.to_thread(report_on, run.schema, run.account, run.workload)
            soaked.reports.append(report)
            soaked.findings += report.findings
            for told in run.account.states.elements():
                # That of a question about the past is told apart by a word behind it.
                state = told.partition(" ")[0]
                if state not in HISTORY_STATES:
                    self._crowd.told(state, run.schema)
            await run.drop()
        told = sum(report.transactions for report in soaked.reports[-len(self._runs) :])
        found = len(soaked.findings) + len(self._crowd.findings)
        memory = f"{soaked.resident_mb[-1]} MiB" if soaked.resident_mb else "unknown"
        soaked.tell(f"{self._name}: {told} transactions judged, memory {memory}, found {found}")


def _paced(
    crowd: Crowd, workload: Workload | Historian
) -> Callable[[Client, random.Random], Awaitable[None]]:
    async def step(client: Client, rng: random.Random) -> None:
        try:
            await workload.step(client, rng)
        except (AssertionError, ValueError) as error:
            # It is told before: a row too many, an update of nothing. Its connection may be in a
            # block.
            crowd.found("wrong answer", f"{type(workload).__name__}: {error}")
            raise Lost(str(error)) from error
        except asyncpg.PostgresError as error:
            # A question that belongs to no transaction of the history.
            crowd.told(state_of(error), str(error))
        await asyncio.sleep(rng.random() * 2 * PACE_S)

    return step


# --- judges --------------------------------------------------------------------------------------


def _join(crowd: Crowd, threads: Sequence[threading.Thread]) -> None:
    until = time.monotonic() + GONE_SECONDS_MAX
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    hanging = [thread.name for thread in threads if thread.is_alive()]
    if hanging:
        crowd.found("hangs", f"{[(name, crowd.doing.get(name)) for name in hanging]}")


def _judge_counts(crowd: Crowd, counts: dict[int, OwnCount]) -> None:
    """What was acknowledged is there; what had no end is not."""
    with psycopg.connect(crowd.as_control(), autocommit=True) as connection:
        rows = connection.execute("SELECT id, n FROM own").fetchall()
        for key, n in rows:
            counts[key].seen(n)
        if len(rows) != len(counts):
            crowd.found("own writes", f"{len(rows)} rows instead of {len(counts)}")
        [[gone]] = connection.execute("SELECT count(*) FROM bulk WHERE batch = -1").fetchall()
        if gone:
            crowd.found("copy", f"{gone} rows of a COPY that had no end")
        [[kept]] = connection.execute("SELECT count(*) FROM big").fetchall()
        if kept != askers.BIG_ROWS:
            crowd.found("lost", f"big has {kept} rows")


def _judge_quiet(soaked: Soaked, server: Meridian, window: Path) -> None:
    """After all have gone the server holds nothing for them, and does nothing."""
    crowd = soaked.crowd
    others = "SELECT pid, state, query FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    others += " AND backend_type = 'client backend'"
    with psycopg.connect(crowd.as_control(), autocommit=True) as connection:

        def sessions() -> str:
            return str(connection.execute(others).fetchall() or "")

        def held() -> str:
            inside = soaked.inside = look(window)
            quiet = inside.held <= HELD_MAX and not (inside.places or inside.waiting or inside.runs)
            return "" if quiet else str(inside)

        def computes() -> str:
            before = server.cpu_s
            time.sleep(1)
            used = server.cpu_s - before
            return f"{used:.2f} s of CPU in a second" if used > 0.2 else ""

        for name, is_left in (("sessions", sessions), ("held", held), ("computes", computes)):
            _until_nothing(crowd, name, is_left)
    soaked.left_mb = server.resident_mb
    _judge_places(crowd)


def _until_nothing(crowd: Crowd, name: str, is_left: Callable[[], str]) -> None:
    """Wait until nothing is left; what still is in the end is a finding."""
    until = time.monotonic() + GONE_SECONDS_MAX / 2
    while left := is_left():
        if time.monotonic() > until:
            crowd.found(f"left over: {name}", left)
            return
        time.sleep(0.05)


def _judge_places(crowd: Crowd) -> None:
    """More long statements than there are places all come to their end."""

    def ask() -> None:
        with psycopg.connect(crowd.as_control(), autocommit=True) as connection:
            connection.execute("SELECT count(*) FROM big a JOIN big b ON a.k = b.k").fetchall()
            answered.append(1)

    answered: list[int] = []
    threads = [threading.Thread(target=ask, daemon=True) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GONE_SECONDS_MAX / AT_ONCE)
    if len(answered) < AT_ONCE:
        crowd.found("hangs", f"{len(answered)} of {AT_ONCE} long statements at the end")
