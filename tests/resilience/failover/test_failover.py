"""One coordinator after the other: no stale strict read, no late write, nothing applied twice."""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import psycopg
import pytest

from tests.resilience.crash.load import Load
from tests.resilience.failover.coordinators import Coordinator, Shared, sharing
from tests.resilience.history.black_box import check_real_time_set
from tests.support.servers import Meridian, meridian

Deposing = Callable[[Coordinator], None]


def paused(old: Coordinator) -> None:
    """It stands still, with everything open, past every limit."""
    old.pause()


def cut_off(old: Coordinator) -> None:
    """Its way to the stash stands still; neither end knows."""
    old.link.freeze()


def disconnected(old: Coordinator) -> None:
    """Its connections to the stash are reset, and new ones refused."""
    old.link.cut()


def slow(old: Coordinator) -> None:
    """Whatever it asks the stash takes long."""
    old.link.delay(0.5)


def untouched(old: Coordinator) -> None:
    """Nothing is wrong with it: somebody just starts another one."""


WAYS: list[Deposing] = [untouched, paused, cut_off, disconnected, slow]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    with sharing(tmp_path, 3) as coordinators:
        yield coordinators


class Clients:
    """Readers and writers that hold on to their connections, whatever becomes of the server."""

    def __init__(self, load: Load, dsn: str) -> None:
        self._load = load
        self._pool = ThreadPoolExecutor(4)
        self._ended = threading.Event()
        self._open = [psycopg.connect(dsn) for _ in range(4)]
        work = [self._write, self._write, self._write, self._read]
        self._running = [
            self._pool.submit(task, one) for task, one in zip(work, self._open, strict=True)
        ]

    def acknowledge(self, count: int) -> None:
        """Wait until so many more transactions have been acknowledged."""
        target = self._load.acknowledged + count
        while self._load.acknowledged < target and not all(one.done() for one in self._running):
            wait(self._running, timeout=0.05)

    def _write(self, connection: psycopg.Connection) -> None:
        while not self._ended.is_set() and self._load.insert_with(connection):
            pass

    def _read(self, connection: psycopg.Connection) -> None:
        while not self._ended.is_set() and not connection.closed:
            self._load.read_with(connection)

    def leave(self) -> None:
        """Hang up, once what was asked has been answered, or the server is gone."""
        self._ended.set()
        for running in self._running:
            running.result()
        self._pool.shutdown()
        for connection in self._open:
            connection.close()


def keep_busy(load: Load, one: Coordinator, *, until: Callable[[], None] = lambda: None) -> None:
    """Load a coordinator for some transactions, and then until something has happened."""
    clients = Clients(load, one.server.dsn)
    clients.acknowledge(60)
    until()
    clients.leave()


def succeed(load: Load, old: Coordinator, new: Coordinator, deposing: Deposing) -> None:
    """Depose the old coordinator under load, write through the new one, let the old one go on."""
    clients = Clients(load, old.server.dsn)
    clients.acknowledge(60)
    deposing(old)
    load.read(new.server.start())
    keep_busy(load, new)
    # The old one answers what it was asked meanwhile, and ends.
    if deposing is paused:
        old.resume()
    old.link.mend()
    assert old.server.wait() == 1, old.server.log
    clients.leave()
    assert "another coordinator has taken over" in old.server.log.splitlines()[-1]
    keep_busy(load, new)
    load.read(new.server.dsn)


def judge(load: Load, shared: Shared) -> None:
    found = check_real_time_set(load.history())
    assert not found, "\n".join(map(str, found[:5]))
    checked = shared.check()
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    "deposing",
    [paused, *(pytest.param(way, marks=pytest.mark.slow) for way in WAYS if way != paused)],
)
def test_a_deposed_coordinator_answers_nothing_stale_and_writes_nothing_late(
    shared: Shared, deposing: Deposing
) -> None:
    old, new, _ = shared.coordinators
    load = Load(writers=4, readers=2)
    load.create(old.server.start())
    succeed(load, old, new, deposing)
    assert new.server.stop() == 0, new.server.log
    judge(load, shared)


def test_who_stands_by_takes_over_from_a_coordinator_that_was_killed(shared: Shared) -> None:
    first, second, third = shared.coordinators
    load = Load(writers=4, readers=2)
    load.create(first.server.start())
    for standing_by in (second, third):
        standing_by.server.launch("--standby")
    while not all("standing by" in one.server.log for one in (second, third)):
        assert second.server.is_running
        assert third.server.is_running
    keep_busy(load, first)
    # A live leader is left alone.
    assert not any("taking over" in one.server.log for one in (second, third))
    keep_busy(load, first, until=first.server.kill)
    while not any("taking over" in one.server.log for one in (second, third)):
        assert second.server.is_running
        assert third.server.is_running
    new, other = (second, third) if "taking over" in second.server.log else (third, second)
    load.read(new.server.wait_until_ready())
    keep_busy(load, new)
    assert new.server.stop() == 0, new.server.log
    # And from one that stopped in order.
    load.read(other.server.wait_until_ready())
    assert other.server.stop() == 0, other.server.log
    judge(load, shared)


def test_a_second_server_stands_by_for_a_data_directory(tmp_path: Path) -> None:
    """With the stash in SQLite the lock of the directory says who serves it."""
    load = Load(writers=4, readers=2)
    with meridian(tmp_path, ("--spark-master", "reference")) as first:
        load.create(first.dsn)
        second = Meridian(tmp_path, ("--spark-master", "reference"))
        try:
            second.launch("--standby")
            while "standing by" not in second.log:
                assert second.is_running
            load.run_until(first.dsn, 60, first.kill)
            load.read(second.wait_until_ready())
            assert second.stop() == 0, second.log
        finally:
            second.kill()
    found = check_real_time_set(load.history())
    assert not found, "\n".join(map(str, found[:5]))


@pytest.mark.slow
def test_a_paused_leader_is_taken_from_as_well(shared: Shared) -> None:
    old, new, _ = shared.coordinators
    load = Load(writers=4, readers=2)
    load.create(old.server.start())
    new.server.launch("--standby")
    clients = Clients(load, old.server.dsn)
    clients.acknowledge(60)
    old.pause()
    load.read(new.server.wait_until_ready())
    keep_busy(load, new)
    old.resume()
    assert old.server.wait() == 1
    clients.leave()
    load.read(new.server.dsn)
    assert new.server.stop() == 0, new.server.log
    judge(load, shared)


def test_an_uncommitted_transaction_of_a_deposed_coordinator_never_commits(shared: Shared) -> None:
    old, new, _ = shared.coordinators
    with psycopg.connect(old.server.start()) as late, psycopg.connect(old.server.dsn) as reader:
        late.execute("CREATE TABLE t (k int)")
        late.commit()
        late.execute("INSERT INTO t VALUES (1)")
        reader.execute("SELECT count(*) FROM t")
        old.pause()
        with psycopg.connect(new.server.start(), autocommit=True) as fresh:
            fresh.execute("INSERT INTO t VALUES (2)")
            old.resume()
            with pytest.raises(psycopg.errors.AdminShutdown):
                late.commit()
            with pytest.raises(psycopg.errors.AdminShutdown):
                # What its transaction has read is old: it must not go on as if it were new.
                reader.execute("SELECT count(*) FROM t")
            assert old.server.wait() == 1
            assert fresh.execute("SELECT k FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize("level", ["serializable", "repeatable read", "read committed"])
@pytest.mark.parametrize("deposing", [paused, pytest.param(cut_off, marks=pytest.mark.slow)])
def test_a_question_to_a_deposed_coordinator_is_not_answered_from_before(
    shared: Shared, deposing: Deposing, level: str
) -> None:
    """It has been idle, and gets to the question before it has heard anything."""
    old, new, _ = shared.coordinators
    with contextlib.ExitStack() as stack:
        old.server.start()
        idle = [
            stack.enter_context(
                contextlib.closing(psycopg.connect(old.server.dsn, autocommit=True))
            )
            for _ in range(3)
        ]
        for one in idle:
            one.execute(f"SET default_transaction_isolation = '{level}'".encode())
        idle[0].execute("CREATE TABLE t (k int)")
        deposing(old)
        with psycopg.connect(new.server.start(), autocommit=True) as fresh:
            fresh.execute("INSERT INTO t VALUES (1)")
        pool = stack.enter_context(ThreadPoolExecutor(3))
        asked = [pool.submit(_rows, one) for one in idle]
        wait(asked, timeout=0.3)
        if deposing is paused:
            old.resume()
        old.link.mend()
        assert old.server.wait() == 1
        assert {one.result() for one in asked} <= {"1 row", "no answer"}


@pytest.mark.parametrize(
    "level",
    [
        "serializable",
        pytest.param("read committed", marks=pytest.mark.slow),
        pytest.param("repeatable read", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "lock",
    [
        "LOCK TABLE t IN SHARE MODE",
        "SELECT 1 FROM t WHERE k = 0 FOR SHARE",
        "SELECT 1 FROM t FOR UPDATE",
        "SELECT pg_advisory_xact_lock(1)",
    ],
)
def test_who_holds_a_lock_of_a_deposed_coordinator_reads_nothing_stale(
    shared: Shared, lock: str, level: str
) -> None:
    """Whoever held it at the new one has given it back, and has told somebody of its commit."""
    old, new, _ = shared.coordinators
    weak = "-c consistency=serializable"
    with contextlib.closing(
        psycopg.connect(old.server.start(), autocommit=True, options=weak)
    ) as idle:
        idle.execute("CREATE TABLE t (k int PRIMARY KEY)")
        idle.execute("INSERT INTO t VALUES (0)")
        old.pause()
        with psycopg.connect(new.server.start(), autocommit=True) as fresh:
            fresh.execute("INSERT INTO t VALUES (1)")
        with ThreadPoolExecutor(1) as pool:
            script = f"BEGIN ISOLATION LEVEL {level}; {lock}; SELECT k FROM t; COMMIT"
            asked = pool.submit(_answers, idle, script)
            wait([asked], timeout=0.3)
            old.resume()
            assert asked.result() in ([0, 1], None)


def _answers(connection: psycopg.Connection, script: str) -> list[int] | None:
    """What the last query of a string has found; None: no answer."""
    try:
        cursor = connection.execute(script.encode())
        for _ in range(2):
            cursor.nextset()
        return sorted(k for (k,) in cursor.fetchall())
    except psycopg.Error:
        return None


def _rows(connection: psycopg.Connection) -> str:
    try:
        return f"{len(connection.execute('SELECT k FROM t').fetchall())} row"
    except psycopg.Error:
        return "no answer"


def test_a_stash_that_is_away_stops_strict_reads_and_no_others(shared: Shared) -> None:
    one, *_ = shared.coordinators
    with psycopg.connect(one.server.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (k int)")
        connection.execute("INSERT INTO t VALUES (1)")
        one.link.freeze()
        connection.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT k FROM t")
        connection.execute("SET consistency = serializable")
        assert connection.execute("SELECT k FROM t").fetchall() == [(1,)]
        connection.execute("SET consistency = strict")
        one.link.mend()
        connection.execute("SET statement_timeout = 0")
        assert connection.execute("SELECT k FROM t").fetchall() == [(1,)]
    assert one.server.stop() == 0, one.server.log


def test_a_standby_waits_for_a_stash_that_is_away(tmp_path: Path) -> None:
    with sharing(tmp_path, 2) as shared:
        one, two = shared.coordinators
        with psycopg.connect(one.server.start(), autocommit=True) as connection:
            connection.execute("CREATE TABLE t (k int)")
        two.link.cut()
        two.server.launch("--standby")
        while "the stash does not answer" not in two.server.log:
            assert two.server.is_running
        two.link.mend()
        assert one.server.stop() == 0
        with psycopg.connect(two.server.wait_until_ready(), autocommit=True) as connection:
            assert connection.execute("SELECT k FROM t").fetchall() == []
        assert two.server.stop() == 0


def test_who_has_another_warehouse_takes_over_from_nobody(tmp_path: Path) -> None:
    with sharing(tmp_path, 1) as shared:
        leader = shared.coordinators[0].server
        with psycopg.connect(leader.start(), autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id int)")
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("OPTIMIZE t")
            places = ("--stash", shared.postgres.dsn, "--warehouse", str(tmp_path / "elsewhere"))
            other = Meridian(tmp_path / "other", ("--spark-master", "reference", *places))
            for more in [(), ("--standby",)]:
                other.launch(*more)
                assert other.wait() == 1
                assert "is it the one that the other coordinators use?" in other.log
            assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
        assert leader.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_long_line_of_coordinators(tmp_path: Path, seed: int) -> None:
    """Each is deposed in another way, comes back later, and deposes in turn."""
    rng = random.Random(seed)
    load = Load(writers=4, readers=2)
    with sharing(tmp_path, 3) as shared:
        leading, *others = shared.coordinators
        load.create(leading.server.start())
        ways = [*WAYS, *WAYS]
        rng.shuffle(ways)
        for deposing in ways:
            following = rng.choice(others)
            succeed(load, leading, following, deposing)
            others[others.index(following)] = leading
            leading = following
        assert leading.server.stop() == 0, leading.server.log
        judge(load, shared)
