"""PgBouncer, the pooler: programs work through it, in its three ways of pooling.

Runs in the runner's Python, with psycopg as the client of the pooler.
"""

import contextlib
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
from harness import Mismatch, equal, run_all
from psycopg import errors

_READY_SECONDS_MAX = 20
_CONFIGURATION = """\
[databases]
pooled = host={host} port={port} dbname={database} user={user}{secret}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
admin_users = boss
pool_mode = {mode}
default_pool_size = 2
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
server_check_delay = 0
query_wait_timeout = 10
{more}
"""

CASES: dict[str, Callable[[], None]] = {}


@contextlib.contextmanager
def pooler(mode: str, *more: str) -> Iterator[str]:
    """The source of connections of a pooler that has just been started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="bouncer-") as folder:
        path = Path(folder, "bouncer.ini")
        secret = os.environ["PGPASSWORD"]
        path.write_text(
            _CONFIGURATION.format(
                host=os.environ["PGHOST"],
                port=os.environ["PGPORT"],
                database=os.environ["PGDATABASE"],
                user=os.environ["PGUSER"],
                secret=f" password='{secret}'" if secret else "",
                own_port=port,
                mode=mode,
                more="\n".join(more),
            )
        )
        Path(folder).chmod(0o755)
        path.chmod(0o644)
        # It refuses to run as root.
        other = ["-u", "nobody"] if os.getuid() == 0 else []
        program = subprocess.Popen(["pgbouncer", "-q", *other, str(path)])
        try:
            source = f"host=127.0.0.1 port={port} user=someone dbname=pooled"
            _wait(source, program)
            yield source
        finally:
            program.terminate()
            program.wait()


def _wait(source: str, program: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _READY_SECONDS_MAX
    while True:
        try:
            psycopg.connect(source, prepare_threshold=None).close()
            return
        except psycopg.OperationalError:
            if program.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def case(mode: str, *more: str) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    """A case, called by the mode and its own name."""

    def noted(body: Callable[[str], None]) -> Callable[[str], None]:
        def run() -> None:
            with pooler(mode, *more) as source:
                body(source)

        CASES[f"{mode}_{body.__name__}"] = run
        return body

    return noted


def both(body: Callable[[str], None]) -> Callable[[str], None]:
    """A case of session and of transaction pooling."""
    for mode in ("session", "transaction"):
        case(mode)(body)
    return body


def client(source: str, *, autocommit: bool = True) -> psycopg.Connection[tuple[object, ...]]:
    """A connection to the pooler, which never prepares by itself."""
    return psycopg.connect(source, autocommit=autocommit, prepare_threshold=None)


def pid_of(c: psycopg.Connection[tuple[object, ...]]) -> object:
    """The backend that serves it now."""
    return value_of(c, "select pg_backend_pid()")


def value_of(c: psycopg.Connection[tuple[object, ...]], query: str) -> object:
    """The only value."""
    row = c.execute(query).fetchone()
    return row[0] if row else None


@both
def queries(source: str) -> None:
    """By the simple protocol, and with parameters."""
    with client(source) as c:
        equal(value_of(c, "select 1"), 1)
        equal(c.execute("select %s::int + 1, %s::text", (41, "x")).fetchone(), (42, "x"))
        equal(c.info.parameter_status("server_encoding"), "UTF8")
        equal(str(c.info.server_version // 10_000), "18")


@both
def tables_and_copies(source: str) -> None:
    """Data that goes through in parts."""
    with client(source) as c:
        c.execute("drop table if exists bounced")
        c.execute("create table bounced (n int, s text)")
        with c.cursor().copy("copy bounced from stdin") as copy:
            for n in range(5000):
                copy.write_row((n, f"text {n}"))
        equal(value_of(c, "select sum(n) from bounced"), 12_497_500)
        with c.cursor().copy("copy bounced to stdout") as copy:
            equal(sum(1 for _ in copy.rows()), 5000)
        c.execute("drop table bounced")


@both
def errors_come_through(source: str) -> None:
    """SQLSTATE, and the connection goes on."""
    with client(source) as c:
        for query, kind in (
            ("select 1 / 0", errors.DivisionByZero),
            ("selec", errors.SyntaxError),
            ("select * from nowhere", errors.UndefinedTable),
        ):
            try:
                c.execute(query)
            except kind:
                continue
            raise Mismatch(f"no {kind.__name__}")
        equal(value_of(c, "select 1"), 1)


@both
def transactions(source: str) -> None:
    """Commit and roll back, and an error between."""
    with client(source) as c:
        c.execute("drop table if exists bounced")
        c.execute("create table bounced (n int)")
        with c.transaction():
            c.execute("insert into bounced values (1)")
        with contextlib.suppress(errors.DivisionByZero), c.transaction():
            c.execute("insert into bounced values (2)")
            c.execute("select 1 / 0")
        with c.transaction(), c.transaction(force_rollback=True):
            c.execute("delete from bounced")
        equal(value_of(c, "select count(*) from bounced"), 1)
        c.execute("drop table bounced")


@both
def pipelines(source: str) -> None:
    """Many messages before the first answer."""
    with client(source) as c, c.pipeline():
        cursors = [c.execute("select %s::int", (n,)) for n in range(30)]
        equal([cursor.fetchone() for cursor in cursors], [(n,) for n in range(30)])


@both
def queries_are_cancelled(source: str) -> None:
    """The pooler passes the cancel on."""
    with client(source) as c:
        timer = threading.Timer(0.5, c.cancel)
        timer.start()
        try:
            c.execute("select pg_sleep(20)")
        except errors.QueryCanceled:
            equal(value_of(c, "select 1"), 1)
            return
        finally:
            timer.join()
    raise Mismatch("it was not cancelled")


@case("session")
def settings_are_kept(source: str) -> None:
    """While the session lasts; the next one finds none of them."""
    with client(source) as c:
        first = pid_of(c)
        c.execute("set statement_timeout = '7s'")
        c.execute("create temp table scratch (n int)")
        equal(value_of(c, "show statement_timeout"), "7s")
    with client(source) as c:
        equal(pid_of(c), first)
        equal(value_of(c, "show statement_timeout"), "0")
        equal(value_of(c, "select to_regclass('scratch')"), None)


@case("session")
def statements_are_prepared(source: str) -> None:
    """One after the other, as the server is one's own; the reset drops them."""
    for _ in range(2):
        with client(source) as c:
            c.execute("prepare add as select $1::int + 1")
            equal(value_of(c, "execute add (41)"), 42)
            equal(c.execute("select %s::int", (3,), prepare=True).fetchone(), (3,))


@case("session")
def notifications(source: str) -> None:
    """Of one session to another."""
    with client(source) as one, client(source) as two:
        one.execute("listen news")
        two.execute("notify news, 'hello'")
        found = [notice.payload for notice in one.notifies(timeout=10, stop_after=1)]
        equal(found, ["hello"])


@case("session", "server_reset_query = discard all", "server_reset_query_always = 1")
def sessions_are_reset(source: str) -> None:
    """Cursors and locks do not outlive the session."""
    with client(source) as c:
        c.execute("select pg_advisory_lock(99)")
        c.execute("declare kept cursor with hold for select 1")
    with client(source) as c, client(source) as other:
        equal(value_of(c, "select count(*) from pg_cursors"), 0)
        equal(value_of(other, "select pg_try_advisory_lock(99)"), True)


@case("transaction")
def few_servers_serve_many(source: str) -> None:
    """Thirty clients on two connections."""
    pids: set[object] = set()

    def work() -> None:
        with client(source) as c:
            for _ in range(3):
                with c.transaction():
                    pids.add(pid_of(c))

    threads = [threading.Thread(target=work) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(1 <= len(pids) <= 2, True)


@case("transaction")
def parameters_follow_the_client(source: str) -> None:
    """Those that the server reports are set again for whom they belong to."""
    with client(source) as one, client(source) as two:
        one.execute("set timezone = 'Asia/Tokyo'")
        two.execute("set timezone = 'UTC'")
        one.execute("set application_name = 'first'")
        with one.transaction():
            equal(value_of(one, "show timezone"), "Asia/Tokyo")
            equal(value_of(one, "show application_name"), "first")
        with two.transaction():
            equal(value_of(two, "show timezone"), "UTC")


@case("transaction")
def local_settings(source: str) -> None:
    """They end with the transaction."""
    with client(source) as c:
        with c.transaction():
            c.execute("set local statement_timeout = '7s'")
            c.execute("select pg_advisory_xact_lock(98)")
            equal(value_of(c, "show statement_timeout"), "7s")
        equal(value_of(c, "show statement_timeout"), "0")


@case("transaction")
def broken_clients_are_rolled_back(source: str) -> None:
    """A client that goes within a transaction leaves nothing."""
    with client(source) as c:
        c.execute("drop table if exists bounced")
        c.execute("create table bounced (n int)")
        gone = client(source)
        gone.execute("begin")
        gone.execute("insert into bounced values (1)")
        gone.close()
        equal(value_of(c, "select count(*) from bounced"), 0)
        c.execute("drop table bounced")


@case("transaction", "server_check_query = select 1", "server_lifetime = 1")
def servers_are_checked_and_renewed(source: str) -> None:
    """Old connections are closed, others checked."""
    with client(source) as c:
        for _ in range(4):
            equal(value_of(c, "select 1"), 1)
            time.sleep(0.6)


@case("statement")
def transactions_are_refused(source: str) -> None:
    """By the pooler; single statements work."""
    with client(source) as c:
        equal(value_of(c, "select 1"), 1)
        try:
            c.execute("begin")
        except psycopg.OperationalError:
            return
    raise Mismatch("a transaction began")


@case("transaction")
def the_console_tells(source: str) -> None:
    """What the pooler has learned of the server."""
    with client(source) as c:
        pid = pid_of(c)
        boss = source.replace("user=someone dbname=pooled", "user=boss dbname=pgbouncer")
        with psycopg.connect(boss, autocommit=True, cursor_factory=psycopg.ClientCursor) as admin:
            cursor = admin.execute("show servers")
            names = [column.name for column in cursor.description or ()]
            pids = [row[names.index("remote_pid")] for row in cursor]
            equal(pid in pids, True)
            admin.execute("reconnect pooled")
            admin.execute("pause pooled")
            admin.execute("resume pooled")
        equal(value_of(c, "select 1"), 1)


def _version() -> str:
    said = subprocess.run(["pgbouncer", "--version"], capture_output=True, text=True, check=True)
    return said.stdout.split()[1]


if __name__ == "__main__":
    run_all("pgbouncer", _version(), CASES)
