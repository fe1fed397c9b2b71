"""dblink: another PostgreSQL sends statements to the server under test."""

import contextlib
from collections.abc import Callable, Iterator

import psycopg

from tests.clients.suites.contrib.places import (
    Connection,
    conninfo,
    equal,
    fresh_schema,
    local,
    remote,
    rows,
    value,
    version,
)
from tests.clients.suites.python.clients.cases import Cases

cases = Cases("dblink", version())


@contextlib.contextmanager
def _both(schema: str) -> Iterator[tuple[Connection, Connection]]:
    with remote() as theirs, local("dblink") as ours:
        fresh_schema(theirs, schema)
        theirs.execute("create table t (n int primary key, s text)")
        theirs.execute("insert into t select g, 'text ' || g from generate_series(1, 5) g")
        ours.execute("select dblink_connect('far', %s)", (conninfo(),))
        ours.execute(f"select dblink_exec('far', 'set search_path = {schema}')")
        yield ours, theirs
        theirs.execute(f"drop schema {schema} cascade")


def _case(body: Callable[[Connection, Connection], None]) -> None:
    """A case of its own name."""

    def run() -> None:
        with _both(f"d_{body.__name__}") as (ours, theirs):
            body(ours, theirs)

    run.__name__ = body.__name__
    cases.case(run)


@_case
def rows_are_read(ours: Connection, theirs: Connection) -> None:
    """A query, with and without a connection that is kept."""
    query = "select * from dblink('far', 'select n, s from t where n > 3') as t (n int, s text)"
    equal(rows(ours, query), [(4, "text 4"), (5, "text 5")])
    once = "select * from dblink(%s, 'select 1, now()') as t (n int, at timestamptz)"
    equal(len(ours.execute(once, (conninfo(),)).fetchall()), 1)


@_case
def statements_are_sent(ours: Connection, theirs: Connection) -> None:
    """dblink_exec tells the command."""
    equal(value(ours, "select dblink_exec('far', 'delete from t where n < 3')"), "DELETE 2")
    made = "select dblink_exec('far', 'create table made (n int)')"
    equal(value(ours, made), "CREATE TABLE")
    equal(value(theirs, "select count(*) from t"), 3)


@_case
def transactions_are_sent(ours: Connection, theirs: Connection) -> None:
    """Statement by statement."""
    for statement in ("begin", "delete from t", "rollback"):
        ours.execute("select dblink_exec('far', %s)", (statement,))
    equal(value(theirs, "select count(*) from t"), 5)


@_case
def cursors_are_read(ours: Connection, theirs: Connection) -> None:
    """dblink_open, dblink_fetch, dblink_close."""
    equal(value(ours, "select dblink_open('far', 'c', 'select n from t order by n')"), "OK")
    parts = [
        len(rows(ours, "select * from dblink_fetch('far', 'c', 2) as t (n int)")) for _ in "123"
    ]
    equal(parts, [2, 2, 1])
    equal(value(ours, "select dblink_close('far', 'c')"), "OK")


@_case
def queries_run_meanwhile(ours: Connection, theirs: Connection) -> None:
    """dblink_send_query, dblink_get_result."""
    query = "select dblink_send_query('far', 'select n from t, pg_sleep(0.2)')"
    equal(value(ours, query), 1)
    equal(len(rows(ours, "select * from dblink_get_result('far') as t (n int)")), 5)
    equal(rows(ours, "select * from dblink_get_result('far') as t (n int)"), [])
    equal(value(ours, "select dblink_is_busy('far')"), 0)


@_case
def queries_are_cancelled(ours: Connection, theirs: Connection) -> None:
    """dblink_cancel_query."""
    ours.execute("select dblink_send_query('far', 'select pg_sleep(20)')")
    equal(value(ours, "select dblink_cancel_query('far')"), "OK")
    try:
        rows(ours, "select * from dblink_get_result('far') as t (n text)")
    except psycopg.errors.QueryCanceled:
        return
    raise AssertionError("no error")


@_case
def errors_come_through(ours: Connection, theirs: Connection) -> None:
    """As errors, or as notices."""
    try:
        ours.execute("select dblink_exec('far', 'insert into t values (1)')")
    except psycopg.errors.UniqueViolation as error:
        equal(error.diag.message_detail, "Key (n)=(1) already exists.")
    else:
        raise AssertionError("no error")
    equal(value(ours, "select dblink_exec('far', 'select nothing', false)"), "ERROR")
    said = str(value(ours, "select dblink_error_message('far')"))
    assert said.startswith('ERROR:  column "nothing" does not exist'), said


@_case
def notifications_are_read(ours: Connection, theirs: Connection) -> None:
    """dblink_get_notify."""
    ours.execute("select dblink_exec('far', 'listen news')")
    theirs.execute("notify news, 'hello'")
    for _ in range(50):
        if found := rows(ours, "select notify_name, extra from dblink_get_notify('far')"):
            equal(found, [("news", "hello")])
            return
        ours.execute("select pg_sleep(0.1)")
    raise AssertionError("no notification")


@_case
def connections_are_listed(ours: Connection, theirs: Connection) -> None:
    """And closed."""
    equal(value(ours, "select dblink_get_connections()"), ["far"])
    equal(value(ours, "select dblink_disconnect('far')"), "OK")
    equal(value(ours, "select dblink_get_connections()"), None)


@_case
def types_are_read(ours: Connection, theirs: Connection) -> None:
    """Texts of the other server are this one's values."""
    found = rows(
        ours,
        "select * from dblink('far', $$select true, 1.50::numeric(5, 2), '{a,NULL}'::text[],"
        " '{\"k\": 1}'::jsonb, date '2024-02-29', '\\x00ff'::bytea, interval '1 day', null::int$$)"
        " as t (b bool, n numeric, a text[], j jsonb, d date, x bytea, i interval, z int)",
    )[0]
    equal((found[0], str(found[1]), found[2], found[3]), (True, "1.50", ["a", None], {"k": 1}))
    equal((str(found[4]), found[5], found[6].days, found[7]), ("2024-02-29", b"\x00\xff", 1, None))  # type: ignore[attr-defined]


if __name__ == "__main__":
    cases.run()
