"""What is cancelled stops: nothing computes for a client that has its error, or has left.

The server is a process of its own, whose CPU time says whether it still computes. No time is
asserted: what does not stop runs into the limit of the test.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.support.servers import Meridian, meridian

RUNAWAYS = {
    "regexp_replace": "select length(regexp_replace(repeat('ab', 20000000), 'a', 'b', 'g'))",
    "regexp_split_to_table": "select count(*) from regexp_split_to_table(repeat('ab', 9000000),"
    " 'a')",
    "regexp_matches": "select count(*) from regexp_matches(repeat('ab', 9000000), '(a)b', 'g')",
    "repeated_groups": "select regexp_match(repeat('ab', 900000), '(ab|a)*c?')",
    "jsonb": "select length((repeat('[1,', 4000000) || repeat(']', 4000000))::jsonb::text)"
    " + length(('[' || repeat('1,', 9000000) || '1]')::jsonb::text)",
    "array": "select length(array_to_string(array_fill(1, array[20000000]), ','))",
    # Short parts that take long: what grows fast has no memory left before anybody ends it.
    "string_agg": "select length(string_agg(left(md5((a.v + b.v)::text), 1), '')) from t a, t b",
    "numeric_power": "select sum(a.v::numeric ^ 1.5) from t a, t b",
    "one_value_a_row": "select max(length(regexp_replace(repeat('ab', 90000), 'a' || v % 2, 'b',"
    " 'g'))) from t",
    "to_char": "select count(to_char(a.v::numeric, 'FM999,999,990.00')) from t a, t b",
    "join": "select count(*) from t a, t b, t c where a.v + b.v + c.v < 0",
    # Lists of such lengths would take all memory, and are looked at by nobody while they are made.
    "series_of_times": "select count(*) from generate_series(timestamp '2000-01-01', '9000-01-01',"
    " '1 s') with ordinality",
    "series_of_rows": "select count(*) from t, generate_series(1, t.v * 1000000::bigint)",
    "series_of_times_of_rows": "select count(*) from t, generate_series(timestamp '2000-01-01',"
    " timestamp '2000-01-01' + t.v * interval '1 day', '100 ms')",
    "recursion": "with recursive r (n) as (select 1 union all select n + 1 from r where n < 1e9)"
    " select count(*) from r",
}  # fmt: skip
_OPTIONS = ("--spark-master", "none")
_BUSY_S = 0.15
"""CPU time after which a statement is well on its way."""


@contextlib.contextmanager
def served(directory: Path, *options: str) -> Iterator[Meridian]:
    with meridian(directory, (*_OPTIONS, *options)) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table t (id int primary key, v int)")
            connection.execute("insert into t select x, x from generate_series(1, 20000) x")
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meridian]:
    with served(tmp_path_factory.mktemp("runaways")) as found:
        yield found


def until_busy(server: Meridian, before: float, job: "Future[str]") -> None:
    while server.cpu_s < before + _BUSY_S and not job.done():
        time.sleep(0.01)


def until_idle(server: Meridian) -> None:
    """Return when the process computes no more: a busy thread has most of a core, an idle server
    a hundredth.
    """
    while True:
        before = server.cpu_s
        time.sleep(0.2)
        if server.cpu_s - before < 0.04:
            return


def run(connection: "psycopg.Connection[tuple[object, ...]]", text: str) -> str:
    try:
        connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate or "lost"
    return "done"


def cancel(other: "psycopg.Connection[tuple[object, ...]]", pid: int) -> None:
    other.execute("select pg_cancel_backend(%s)", (pid,))


def terminate(other: "psycopg.Connection[tuple[object, ...]]", pid: int) -> None:
    other.execute("select pg_terminate_backend(%s)", (pid,))


def ended_by(
    server: Meridian,
    text: str,
    end: Callable[["psycopg.Connection[tuple[object, ...]]", int], None],
) -> str:
    with ThreadPoolExecutor(1) as thread, psycopg.connect(server.dsn, autocommit=True) as other:
        one = psycopg.connect(server.dsn, autocommit=True)
        before = server.cpu_s
        job = thread.submit(run, one, text)
        until_busy(server, before, job)
        end(other, one.info.backend_pid)
        found = job.result()
        # Others are served, whoever computes.
        assert other.execute("select count(*) from t").fetchall() == [(20_000,)]
        one.close()
        return found


@pytest.mark.parametrize("name", RUNAWAYS)
def test_what_is_ended_stops(server: Meridian, name: str) -> None:
    text = RUNAWAYS[name]
    assert ended_by(server, text, cancel) == "57014"
    assert ended_by(server, text, terminate) == "57P01"
    with psycopg.connect(server.dsn, autocommit=True) as timed:
        timed.execute("set statement_timeout = 100")
        assert run(timed, text) == "57014"
    lost = psycopg.connect(server.dsn, autocommit=True)
    before = server.cpu_s
    lost.pgconn.send_query(text.encode())
    while server.cpu_s < before + _BUSY_S:
        time.sleep(0.01)
    lost.close()
    until_idle(server)
    with psycopg.connect(server.dsn, autocommit=True) as looker:
        others = "select count(*) from pg_stat_activity where pid <> pg_backend_pid()"
        others += " and backend_type = 'client backend'"
        while looker.execute(others).fetchall() != [(0,)]:
            pass


def test_sigterm_ends_the_server_whatever_runs(tmp_path: Path) -> None:
    options = ("--set", "shutdown_grace_s=0.1", "--set", "shutdown_flush_s=60")
    with (
        ThreadPoolExecutor(len(RUNAWAYS)) as threads,
        served(tmp_path, *options) as server,
        contextlib.ExitStack() as sessions,
    ):
        before = server.cpu_s
        jobs = []
        for text in RUNAWAYS.values():
            one = sessions.enter_context(psycopg.connect(server.dsn, autocommit=True))
            jobs.append(threads.submit(run, one, text))
        until_busy(server, before + 4 * _BUSY_S, jobs[0])
        assert server.stop() == 0
        # Who does not hear in time why is left without an answer. All at once may need more memory
        # than the server has.
        assert {job.result() for job in jobs} <= {"57P01", "lost", "53200"}
