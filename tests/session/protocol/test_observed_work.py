"""What runs beside sessions, how far a COPY is, who waits since when: here and on PostgreSQL."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from coordinator.core.observation import ObservedMaintenance, ObservedTimeline
from coordinator.core.validation import ValidationCounts
from coordinator.pgcatalog.activity import BACKGROUND_PIDS
from coordinator.pgcatalog.background import BACKGROUND_ROWS, background_activity
from sql.binder.state import BindContext
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog
from storage.types import ShardId, Timestamp
from tests.support.servers import postgres
from tests.support.stack import serving

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module", params=["meridian", "postgresql"])
def dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving() if request.param == "meridian" else postgres() as found:
        with psycopg.connect(found, autocommit=True) as connection:
            connection.execute("create role ann login")
            connection.execute("create role watcher login")
            connection.execute("grant pg_read_all_stats to watcher")
            connection.execute("create table t (id int, v text)")
            connection.execute("insert into t values (1, 'a')")
        yield found


def _connect(dsn: str, role: str | None = None) -> Connection:
    options = {} if role is None else {"user": role}
    return psycopg.connect(make_conninfo(dsn, **options), autocommit=True)


def _rows(connection: Connection, text: LiteralString, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(text, values or None, prepare=False).fetchall()


def _until(look: Callable[[], bool]) -> None:
    """The test's limit of time ends what never comes."""
    while not look():
        pass


# --- COPY -----------------------------------------------------------------------------------------

PROGRESS: LiteralString = (
    "select datname = current_database(), relid::regclass::text, command, type, bytes_processed,"
    " bytes_total, tuples_processed, tuples_excluded, tuples_skipped"
    " from pg_stat_progress_copy where pid = %s"
)


def test_a_copy_from_tells_how_far_it_is(dsn: str) -> None:
    with _connect(dsn) as copying, _connect(dsn) as looking, _connect(dsn, "ann") as stranger:
        pid = copying.info.backend_pid
        assert _rows(looking, PROGRESS, pid) == []
        options = "copy t from stdin (on_error ignore, log_verbosity silent) where id < 100"
        with copying.cursor().copy(options) as copy:  # type: ignore[arg-type]
            copy.write("11\ta\n12\tb\nno\tc\n113\td\n")
            copying.pgconn.flush()
            _until(lambda: _rows(looking, PROGRESS, pid)[0][7:] == (1, 1))
            (*told, rows, excluded, skipped) = _rows(looking, PROGRESS, pid)[0]
            assert told == [True, "t", "COPY FROM", "PIPE", 21, 0]
            # PostgreSQL counts them when it writes a thousand.
            assert (rows, excluded, skipped) in {(0, 1, 1), (2, 1, 1)}
            hidden = "select relid, command, tuples_processed from pg_stat_progress_copy"
            assert _rows(stranger, hidden) == [(None, None, None)]
            waits = "select state, wait_event_type, wait_event from pg_stat_activity where pid = %s"
            _until(lambda: _rows(looking, waits, pid) == [("active", "Client", "ClientRead")])
            copy.write("14\td\n" * 5000)
            copying.pgconn.flush()
            _until(lambda: _rows(looking, PROGRESS, pid)[0][6] >= 5000)
        assert _rows(looking, PROGRESS, pid) == []


@pytest.mark.parametrize(
    ("statement", "relation"),
    [
        ("copy (select g, repeat('x', 1000) from generate_series(1, 40000) g) to stdout", "-"),
        ("copy large to stdout (format csv)", "large"),
    ],
)
def test_a_copy_to_tells_how_far_it_is(dsn: str, statement: LiteralString, relation: str) -> None:
    with _connect(dsn) as copying, _connect(dsn) as looking:
        looking.execute("drop table if exists large")
        looking.execute("create table large (id int, v text)")
        looking.execute(
            "insert into large select g, repeat('x', 1000) from generate_series(1, 40000) g"
        )
        pid = copying.info.backend_pid
        with copying.cursor().copy(statement) as copy:
            copy.read()
            ((same, table, command, kind, size, total, rows, *others),) = _rows(
                looking, PROGRESS, pid
            )
            for _ in copy:
                pass
        assert (same, table, command, kind) == (True, relation, "COPY TO", "PIPE")
        assert 0 < rows < 40_000
        assert size > 1000 * (rows - 1)
        assert (total, others) == (0, [0, 0])
        assert _rows(looking, PROGRESS, pid) == []


# --- locks ----------------------------------------------------------------------------------------


def test_waits_have_a_beginning(dsn: str) -> None:
    with _connect(dsn) as holder, _connect(dsn) as waiter, _connect(dsn) as looking:
        holder.execute("begin")
        holder.execute("update t set v = 'b' where id = 1")
        pid = waiter.info.backend_pid
        waiting: LiteralString = "select count(*) from pg_locks where pid = %s and not granted"
        # PostgreSQL writes the moment down a little after it stands in line.
        told: LiteralString = (
            "select count(*) from pg_locks l join pg_stat_activity a using (pid)"
            " where pid = %s and not granted and waitstart >= query_start and waitstart <= now()"
        )
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(waiter.execute, "update t set v = 'c' where id = 1")
            _until(lambda: _rows(looking, waiting, pid) == [(1,)])
            _until(lambda: _rows(looking, told, pid) == [(1,)])
            granted = "select count(*) from pg_locks where granted and waitstart is not null"
            assert _rows(looking, granted) == [(0,)]
            holder.execute("rollback")
            done.result()
        assert _rows(looking, waiting, pid) == [(0,)]


def test_a_transaction_locks_its_own_name(dsn: str) -> None:
    own: LiteralString = (
        "select locktype, mode, granted, fastpath, database, virtualxid = virtualtransaction,"
        " transactionid is not null"
        " from pg_locks where pid = %s and locktype in ('virtualxid', 'transactionid') order by 1"
    )
    number = ("transactionid", "ExclusiveLock", True, False, None, None, True)
    name = ("virtualxid", "ExclusiveLock", True, True, None, True, False)
    with _connect(dsn) as working, _connect(dsn) as looking:
        pid = working.info.backend_pid
        assert _rows(looking, own, pid) == []
        working.execute("begin")
        working.execute("select * from t")
        assert _rows(looking, own, pid) == [name]
        working.execute("insert into t values (1000, 'x')")
        assert _rows(looking, own, pid) == [number, name]
        working.execute("rollback")
        assert _rows(looking, own, pid) == []


# --- what runs beside sessions --------------------------------------------------------------------

BESIDE: LiteralString = (
    "select backend_type, pid > 0, datid, datname, usesysid, usename, application_name,"
    " client_addr, client_port, backend_start <= now(), xact_start, query_start, state,"
    " wait_event_type is not null, query"
    " from pg_stat_activity where backend_type in ('autovacuum launcher', 'checkpointer')"
    " order by 1"
)


def test_what_runs_beside_sessions(dsn: str) -> None:
    none = None
    expected = [
        (kind, True, none, none, none, none, "", none, none, True, none, none, none, True, "")
        for kind in ("autovacuum launcher", "checkpointer")
    ]
    with _connect(dsn) as connection, _connect(dsn, "watcher") as watcher:
        assert _rows(connection, BESIDE) == expected
        assert _rows(watcher, BESIDE) == expected
        pids: LiteralString = "select count(*), count(distinct pid) from pg_stat_activity"
        ((count, distinct),) = _rows(connection, pids)
        assert count == distinct


def test_strangers_see_that_something_runs(dsn: str) -> None:
    with _connect(dsn, "ann") as connection:
        assert _rows(connection, BESIDE) == []
        hidden: LiteralString = (
            "select distinct backend_type, query, state, wait_event from pg_stat_activity"
            " where datid is null and usename is null"
        )
        assert _rows(connection, hidden) == [(None, "<insufficient privilege>", None, None)]


def test_what_is_no_session_is_not_ended() -> None:
    with serving() as found, _connect(found) as connection:
        for verb in ("cancel", "terminate"):
            call = f"select pg_{verb}_backend(pid) from pg_stat_activity where datid is null"
            assert connection.execute(call.encode()).fetchall() == [(False,), (False,)]


def test_jobs_of_maintenance_have_rows() -> None:
    idle = ObservedTimeline(
        SYSTEM_TIMELINE, Timestamp(0), Timestamp(5), Timestamp(9), (), (), (), ValidationCounts()
    )
    context = BindContext(Catalog(), ("public",), 0)
    flushing = replace(idle, flushing=True)
    rows = list(background_activity(context, [flushing]))
    assert [(row["backend_type"], row["wait_event"]) for row in rows] == [
        ("checkpointer", "DataFileWrite"),
        ("autovacuum launcher", "AutovacuumMain"),
    ]
    busy = replace(idle, maintaining=ObservedMaintenance("VACUUM", ShardId("gone")))
    *_, worker = background_activity(context, [idle, busy])
    assert worker["query"] == "autovacuum: VACUUM"
    assert (worker["backend_type"], worker["state"]) == ("autovacuum worker", "active")
    (progress,) = BACKGROUND_ROWS["pg_stat_progress_vacuum"](context, [idle, busy])
    assert progress["pid"] == worker["pid"] > BACKGROUND_PIDS
    assert (progress["relid"], progress["phase"]) == (0, "scanning heap")
    merged = replace(idle, maintaining=ObservedMaintenance("OPTIMIZE", ShardId("gone")))
    assert not list(BACKGROUND_ROWS["pg_stat_progress_vacuum"](context, [merged]))


# --- notices --------------------------------------------------------------------------------------


def test_long_work_says_that_it_runs() -> None:
    with serving() as found, _connect(found) as waiting, _connect(found) as holder:
        told: list[str] = []
        waiting.add_notice_handler(
            lambda n: told.append(f"{n.severity}: {n.message_primary}, {n.message_detail}")
        )
        assert _rows(waiting, "show progress_notices_s") == [("0",)]
        waiting.execute("set progress_notices_s = 1")
        assert _rows(waiting, "show progress_notices_s") == [("1s",)]
        waiting.execute("create table t (id int primary key)")
        waiting.execute("insert into t values (1)")
        holder.execute("begin")
        holder.execute("update t set id = 2")
        assert told == []
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(waiting.execute, "update t set id = 3")
            _until(lambda: len(told) >= 2)
            holder.execute("rollback")
            done.result()
        said = ", It waits for Lock: transactionid."
        assert told[:2] == [f"NOTICE: still running after {n} s{said}" for n in (1, 2)]
        told.clear()
        waiting.execute("set client_min_messages = warning")
        waiting.execute("select pg_sleep(1.2)")
        waiting.execute("reset client_min_messages")
        with pytest.raises(psycopg.errors.QueryCanceled):
            waiting.execute("set statement_timeout = '1500ms'; select pg_sleep(5)")
        assert told == ["NOTICE: still running after 1 s, It waits for Timeout: PgSleep."]
        for value in ("-1", "86401", "'x'"):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                waiting.execute(f"set progress_notices_s = {value}".encode())
