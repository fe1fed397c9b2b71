"""pg_stat_activity, pg_cancel_backend() and pg_terminate_backend(), here and on PostgreSQL.

Every test runs on both servers, so that what it expects is PostgreSQL's.
"""

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.servers import postgres
from tests.support.stack import serving

_ROLES = (
    "create role ann login",
    "create role bob login",
    "create role boss superuser login",
    "create role helper login",
    "create role watcher login",
    "grant pg_signal_backend to helper",
    "grant pg_read_all_stats to watcher",
)
_numbers = itertools.count()


@pytest.fixture(scope="module", params=["meridian", "postgresql"])
def dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving() if request.param == "meridian" else postgres() as found:
        with psycopg.connect(found, autocommit=True) as connection:
            for statement in _ROLES:
                connection.execute(statement.encode())
            connection.execute("create table t (id int primary key, v int)")
            connection.execute("insert into t values (1, 1)")
        yield found


class Client:
    """A session of a role."""

    def __init__(self, dsn: str, role: str | None = None) -> None:
        self.name = f"client {next(_numbers)}"
        options = {"application_name": self.name, **({} if role is None else {"user": role})}
        self.connection = psycopg.connect(make_conninfo(dsn, **options), autocommit=True)
        self.notices: list[str] = []
        self.connection.add_notice_handler(
            lambda told: self.notices.append(f"{told.severity} {told.message_primary}")
        )
        self._thread = ThreadPoolExecutor(1)
        (self.pid,) = self.rows("select pg_backend_pid()")[0]

    def rows(self, text: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(text, values or None, prepare=False).fetchall()

    def value(self, text: LiteralString, *values: object) -> Any:
        ((value,),) = self.rows(text, *values)
        return value

    def later(self, text: LiteralString) -> Future[Any]:
        """The statement runs beside the test; its result is how it ended."""

        def run() -> str:
            try:
                self.connection.execute(text)
            except psycopg.Error as error:
                return f"{error.sqlstate} {error.diag.message_primary}"
            return "done"

        return self._thread.submit(run)

    def close(self) -> None:
        self._thread.shutdown()
        self.connection.close()


@contextlib.contextmanager
def clients(dsn: str, *roles: str | None) -> Iterator[list[Client]]:
    opened: list[Client] = []
    try:
        opened += [Client(dsn, role) for role in roles]
        yield opened
    finally:
        for client in opened:
            client.close()


def until(client: Client, pid: int, **wanted: object) -> dict[str, object]:
    """Look at pg_stat_activity until a session is as it is wanted. The test's limit of time ends
    what never comes.
    """
    columns = ("state", "wait_event_type", "wait_event", "query")
    while True:
        rows = client.rows(
            "select state, wait_event_type, wait_event, query from pg_stat_activity where pid = %s",
            pid,
        )
        seen = dict(zip(columns, rows[0], strict=True)) if rows else {}
        if wanted.items() <= seen.items() or (not wanted and not rows):
            return seen


def test_who_does_not_read_is_ended(dsn: str) -> None:
    with clients(dsn, None, None) as (looker, seen), contextlib.suppress(psycopg.Error):
        rows = "select repeat('x', 1000) from generate_series(1, 1000000)"
        with seen.connection.cursor().copy(f"copy ({rows}) to stdout".encode()) as copy:
            copy.read()
            until(looker, seen.pid, state="active", wait_event="ClientWrite")
            assert looker.value("select pg_terminate_backend(%s, 600000)", seen.pid) is True
            until(looker, seen.pid)


def test_a_long_application_name_is_cut(dsn: str) -> None:
    with clients(dsn, None, None) as (looker, seen):
        seen.connection.execute(f"set application_name = '{'a' * 1000}'".encode())
        asked = "select length(application_name) from pg_stat_activity where pid = %s"
        assert looker.value(asked, seen.pid) == 63


def test_states(dsn: str) -> None:
    with clients(dsn, None, None) as (looker, seen):
        assert until(looker, seen.pid, state="idle", wait_event="ClientRead") == {
            "state": "idle",
            "wait_event_type": "Client",
            "wait_event": "ClientRead",
            "query": "select pg_backend_pid()",
        }
        seen.connection.execute("begin")
        until(looker, seen.pid, state="idle in transaction", query="begin")
        with pytest.raises(psycopg.errors.DivisionByZero):
            seen.connection.execute("select 1/0")
        until(looker, seen.pid, state="idle in transaction (aborted)", query="select 1/0")
        seen.connection.execute("rollback")
        until(looker, seen.pid, state="idle", query="rollback")
        sleeping = seen.later("select pg_sleep(600)")
        until(looker, seen.pid, state="active", wait_event_type="Timeout", wait_event="PgSleep")
        assert looker.value("select pg_cancel_backend(%s)", seen.pid) is True
        assert sleeping.result() == "57014 canceling statement due to user request"
        until(looker, seen.pid, state="idle")


@pytest.mark.parametrize(
    ("holds", "waits", "event"),
    [
        ("select pg_advisory_lock(7)", "select pg_advisory_lock(7)", "advisory"),
        ("begin; lock table t", "begin; lock table t", "relation"),
        ("begin; update t set v = 2", "begin; update t set v = 3", "transactionid"),
        ("begin; update t set v = 2", "update t set v = 3", "transactionid"),
    ],
)
def test_waits_for_locks(dsn: str, holds: LiteralString, waits: LiteralString, event: str) -> None:
    with clients(dsn, None, None, None) as (looker, holder, waiter):
        holder.connection.execute(holds)
        waiting = waiter.later(waits)
        until(looker, waiter.pid, state="active", wait_event_type="Lock", wait_event=event)
        assert looker.value("select pg_cancel_backend(%s)", waiter.pid) is True
        assert waiting.result() == "57014 canceling statement due to user request"


def test_terminate(dsn: str) -> None:
    with clients(dsn, None, None, None) as (looker, idle, busy):
        sleeping = busy.later("select pg_sleep(600)")
        until(looker, busy.pid, wait_event="PgSleep")
        told = "57P01 terminating connection due to administrator command"
        for client in (busy, idle):
            assert looker.value("select pg_terminate_backend(%s)", client.pid) is True
            until(looker, client.pid)
        assert sleeping.result() == told
        assert idle.later("select 1").result() == told
        assert looker.notices == []


def test_terminate_waits_for_the_end(dsn: str) -> None:
    with clients(dsn, None, None) as (looker, seen):
        sleeping = seen.later("select pg_sleep(600)")
        until(looker, seen.pid, wait_event="PgSleep")
        assert looker.value("select pg_terminate_backend(pid => %s, timeout => 60000)", seen.pid)
        assert looker.rows("select 1 from pg_stat_activity where pid = %s", seen.pid) == []
        assert sleeping.result().startswith("57P01")


def test_nobody_there(dsn: str) -> None:
    with clients(dsn, None) as (looker,):
        assert looker.value("select pg_cancel_backend(2147483647)") is False
        assert looker.value("select pg_terminate_backend(2147483647)") is False
        assert looker.value("select pg_terminate_backend(2147483647, 100)") is False
        warning = "WARNING PID 2147483647 is not a PostgreSQL backend process"
        assert looker.notices == [warning] * 3
        assert looker.value("select pg_cancel_backend(null)") is None
        assert looker.value("select pg_terminate_backend(1, null)") is None
        with pytest.raises(psycopg.errors.NumericValueOutOfRange) as refused:
            looker.value("select pg_terminate_backend(2147483647, -1)")
        assert refused.value.diag.message_primary == '"timeout" must not be negative'


def test_own_session(dsn: str) -> None:
    with clients(dsn, None) as (own,):
        told = own.later("select pg_cancel_backend(pg_backend_pid())").result()
        assert told == "57014 canceling statement due to user request"
        told = own.later("select pg_terminate_backend(pg_backend_pid())").result()
        assert told == "57P01 terminating connection due to administrator command"


_CANCEL = "permission denied to cancel query"
_TERMINATE = "permission denied to terminate process"
_OF_SUPERUSER = (
    "Only roles with the SUPERUSER attribute may {} of roles with the SUPERUSER attribute."
)
_OF_ANOTHER = (
    "Only roles with privileges of the role whose {} or with privileges of the"
    ' "pg_signal_backend" role may {}.'
)


@pytest.mark.parametrize(
    ("role", "target", "detail"),
    [
        ("ann", "boss", ("cancel queries", "terminate processes")),
        ("helper", "boss", ("cancel queries", "terminate processes")),
        ("ann", "bob", ("query is being canceled", "process is being terminated")),
        ("helper", "bob", None),
        ("ann", "ann", None),
        ("boss", "boss", None),
    ],
)
def test_who_may(dsn: str, role: str, target: str, detail: tuple[str, str] | None) -> None:
    verbs = ("cancel", "terminate")
    with clients(dsn, role, target) as (caller, called):
        if detail is None:
            assert caller.value("select pg_cancel_backend(%s)", called.pid) is True
            assert caller.value("select pg_terminate_backend(%s, 60000)", called.pid) is True
            return
        for verb, what, word in zip(verbs, (_CANCEL, _TERMINATE), detail, strict=True):
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
                caller.connection.execute(f"select pg_{verb}_backend({called.pid})".encode())
            said = refused.value.diag
            may = f"{verb} this {word.split()[0]}"
            of_other = target == "bob"
            expected = _OF_ANOTHER.format(word, may) if of_other else _OF_SUPERUSER.format(word)
            assert (said.message_primary, said.message_detail) == (what, expected)
        assert called.value("select 1") == 1


@pytest.mark.parametrize(
    ("role", "sees"),
    [("ann", False), ("helper", False), ("watcher", True), ("boss", True), ("bob", True)],
)
def test_who_sees_what(dsn: str, role: str, sees: bool) -> None:
    with clients(dsn, role, "bob") as (looker, seen):
        columns: LiteralString = (
            "datname, usename, application_name, state, wait_event, backend_type, query_id,"
            " client_addr is null, client_port is null, backend_start is null, xact_start,"
            " query_start is null, state_change is null, query"
        )
        while True:
            (row,) = looker.connection.execute(
                f"select {columns} from pg_stat_activity where pid = {seen.pid}".encode()
            ).fetchall()
            # PostgreSQL writes it down a moment after the answer.
            if not sees or row[3:5] == ("idle", "ClientRead"):
                break
        known = (looker.connection.info.dbname, "bob", seen.name)
        shown = ("idle", "ClientRead", "client backend", None, False, False, False, None, False)
        hidden = (None, None, None, None, True, True, True, None, True)
        text = "select pg_backend_pid()" if sees else "<insufficient privilege>"
        assert row == (*known, *(shown if sees else hidden), not sees, text)
        encrypted = looker.rows("select ssl from pg_stat_ssl where pid = %s", seen.pid)
        assert encrypted == ([(False,)] if sees else [])
        gss = looker.rows("select encrypted from pg_stat_gssapi where pid = %s", seen.pid)
        assert gss == ([(False,)] if sees else [])
