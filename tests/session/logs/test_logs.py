"""Settings of PostgreSQL's that say what is logged: its texts, and nothing where they say so."""

import json
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from coordinator.config import SettingsError, load
from coordinator.server.log import LOGGED_TEXT_MAX
from coordinator.variables.special_checks import connection_aspects
from tests.support.servers import Meridian, meridian

NO_JVM = ("--spark-master", "none")
PATIENCE_S = 60
"""Only against hanging for ever."""

_LINE = re.compile(r"\S+Z (\w+) meridian\.session (?:\[\d+\] )?(.*)")
_NUMBER = re.compile(r"\d+\.\d{3} ms")

Connection = psycopg.Connection[Any]


def connected(server: Meridian, **options: Any) -> Connection:
    return psycopg.connect(server.dsn, autocommit=True, prepare_threshold=None, **options)


def records(server: Meridian) -> list[tuple[str, str]]:
    """Words and texts of sessions in the log, without the times that statements took."""
    found = (_LINE.fullmatch(line) for line in server.log.splitlines())
    return [(one[1], _NUMBER.sub("N ms", one[2])) for one in found if one is not None]


def news(server: Meridian, known: Sequence[object]) -> list[tuple[str, str]]:
    return records(server)[len(known) :]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with meridian(tmp_path_factory.mktemp("logs"), NO_JVM) as started:
        with connected(started) as connection:
            connection.execute("create table t (k int primary key, v text)")
            connection.execute("insert into t values (1, 'a'), (2, 'b')")
        yield started


def test_nothing_is_logged_of_statements_that_work(server: Meridian) -> None:
    known = records(server)
    with connected(server) as connection:
        connection.execute("select * from t where k = 1")
    assert news(server, known) == []


def test_statements_of_both_protocols(server: Meridian) -> None:
    with connected(server) as connection:
        connection.execute("set log_statement = 'all'")
        known = records(server)
        for _ in range(3):
            # From the second time on, a short way would answer it.
            connection.execute("select v from t where k = 1")
        connection.execute("select v from t where k = %s and v <> %s", (1, "o'x"))
        connection.execute("select v from t where k = %s and %s::text is null", (1, None))
        connection.execute("prepare p as select 1")
        connection.execute("execute p")
        connection.execute("set log_parameter_max_length = 2")
        connection.execute("select %s::text", ("abc",))
        connection.execute("set log_parameter_max_length = 0")
        connection.execute("select %s::text", ("abc",))
    assert news(server, known) == [
        *[("LOG", "statement: select v from t where k = 1")] * 3,
        ("LOG", "execute <unnamed>: select v from t where k = $1 and v <> $2"),
        ("DETAIL", "Parameters: $1 = '1', $2 = 'o''x'"),
        ("LOG", "execute <unnamed>: select v from t where k = $1 and $2::text is null"),
        ("DETAIL", "Parameters: $1 = '1', $2 = NULL"),
        ("LOG", "statement: prepare p as select 1"),
        ("LOG", "statement: execute p"),
        ("DETAIL", "prepare: prepare p as select 1"),
        ("LOG", "statement: set log_parameter_max_length = 2"),
        ("LOG", "execute <unnamed>: select $1::text"),
        ("DETAIL", "Parameters: $1 = 'ab...'"),
        ("LOG", "statement: set log_parameter_max_length = 0"),
        ("LOG", "execute <unnamed>: select $1::text"),
    ]


KINDS: dict[LiteralString, str] = {
    "select 1": "all",
    "begin": "all",
    "insert into t values (7, 'x')": "mod",
    "explain analyze delete from t where k = 7": "mod",
    "explain delete from t where k = 7": "all",
    "truncate e": "mod",
    "rollback": "all",
    "create table e2 (k int)": "ddl",
    "create table e3 as select 1 as x": "ddl",
    "alter table e2 add column v int": "ddl",
    "drop table e2, e3": "ddl",
    "comment on table t is null": "ddl",
    "show work_mem": "all",
}


@pytest.mark.parametrize("kinds", ["none", "ddl", "mod"])
def test_kinds_of_statements(server: Meridian, kinds: LiteralString) -> None:
    logged = {"none": (), "ddl": ("ddl",), "mod": ("ddl", "mod")}[kinds]
    with connected(server) as connection:
        connection.execute("create table e (k int)")
        connection.execute(f"set log_statement = '{kinds}'")
        known = records(server)
        for text in KINDS:
            connection.execute(text)
        found = news(server, known)
        connection.execute("reset log_statement")
        connection.execute("drop table e")
    assert found == [("LOG", f"statement: {t}") for t, kind in KINDS.items() if kind in logged]


def test_durations(server: Meridian) -> None:
    with connected(server) as connection:
        connection.execute("set log_min_duration_statement = 0")
        known = records(server)
        connection.execute("select v from t where k = 1")
        connection.execute("select %s::int", (1,))
        connection.execute("set log_statement = 'all'")
        connection.execute("select 2")
        connection.execute("set log_min_duration_statement = -1")
        connection.execute("set log_statement = 'none'")
        connection.execute("set log_duration = on")
        connection.execute("select 3")
        connection.execute("set log_duration = off")
        connection.execute("set log_min_duration_statement = '1h'")
        for _ in range(3):
            connection.execute("select v from t where k = 1")
    assert news(server, known) == [
        ("LOG", "duration: N ms  statement: select v from t where k = 1"),
        ("LOG", "duration: N ms  parse <unnamed>: select $1::int"),
        ("LOG", "duration: N ms  bind <unnamed>: select $1::int"),
        ("DETAIL", "Parameters: $1 = '1'"),
        ("LOG", "duration: N ms  execute <unnamed>: select $1::int"),
        ("DETAIL", "Parameters: $1 = '1'"),
        ("LOG", "duration: N ms  statement: set log_statement = 'all'"),
        ("LOG", "statement: select 2"),
        ("LOG", "duration: N ms"),
        ("LOG", "statement: set log_min_duration_statement = -1"),
        ("LOG", "statement: set log_statement = 'none'"),
        ("LOG", "duration: N ms"),
    ]


def test_errors_with_their_statements(server: Meridian) -> None:
    known = records(server)
    with connected(server) as connection:
        for text, values in (
            ("selec 1", None),
            ("select nope from t", None),
            ("insert into t values (%s, %s)", (1, "z")),
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(text, values)
        connection.execute("set log_parameter_max_length_on_error = -1")
        with pytest.raises(psycopg.Error):
            connection.execute("insert into t values (%s, %s)", (1, "z"))
        connection.execute("set log_min_error_statement = 'panic'")
        with pytest.raises(psycopg.Error):
            connection.execute("select nope")
        connection.execute("set log_min_messages = 'fatal'")
        with pytest.raises(psycopg.Error):
            connection.execute("select nope")
    duplicate = [
        ("ERROR", 'duplicate key value violates unique constraint "t_pkey"'),
        ("DETAIL", "Key (k)=(1) already exists."),
    ]
    assert news(server, known) == [
        ("ERROR", 'syntax error at or near "selec" at character 1'),
        ("STATEMENT", "selec 1"),
        ("ERROR", 'column "nope" does not exist at character 8'),
        ("STATEMENT", "select nope from t"),
        *duplicate,
        ("STATEMENT", "insert into t values ($1, $2)"),
        *duplicate,
        ("CONTEXT", "unnamed portal with parameters: $1 = '1', $2 = 'z'"),
        ("STATEMENT", "insert into t values ($1, $2)"),
        ("ERROR", 'column "nope" does not exist at character 8'),
    ]


def test_a_text_does_not_look_like_another_line(server: Meridian) -> None:
    """Nor does it command the terminal of who reads the log."""
    with connected(server) as connection, pytest.raises(psycopg.errors.SyntaxError):
        connection.execute("select 'a\x1b[31m\r\n\x85\u2028b\t' c d")
    assert "select 'a\\x1b[31m\\r\\n\\x85\\u2028b\t' c d" in server.log
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028]", server.log) is None


def test_a_long_text_is_cut(server: Meridian) -> None:
    """It is made ready for the log on the loop, which it would hold up for all sessions."""
    known = records(server)
    with connected(server) as connection, pytest.raises(psycopg.errors.SyntaxError):
        connection.execute(b"select '" + b"a" * LOGGED_TEXT_MAX + b"' b c")
    (_, (word, text)) = news(server, known)
    assert (word, text) == ("STATEMENT", ("select '" + "a" * LOGGED_TEXT_MAX)[:-8] + "...")


def test_a_log_in_that_is_refused_is_logged(server: Meridian) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(make_conninfo(server.dsn, dbname="nowhere"))
    assert 'log-in refused: 3D000 database "nowhere" does not exist' in server.log


def test_waits_for_locks(server: Meridian) -> None:
    known = records(server)
    text: LiteralString = "update t set v = 'r' where k = 2"
    with connected(server) as holder, connected(server) as waiter:
        waiter.execute("set log_lock_waits = on; set deadlock_timeout = '10ms'")
        pids = [one.info.backend_pid for one in (holder, waiter)]
        holder.execute("begin; update t set v = 'q' where k = 2")
        waiting = threading.Thread(target=lambda: waiter.execute(text))
        waiting.start()
        deadline = time.monotonic() + PATIENCE_S
        while len(news(server, known)) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        holder.execute("commit")
        waiting.join(PATIENCE_S)
    found = news(server, known)
    lock = r"ExclusiveLock on a row of relation \d+ of database \d+ after N ms"
    assert re.fullmatch(f"process {pids[1]} still waiting for {lock}", found[0][1])
    assert found[1] == (
        "DETAIL", f"Process holding the lock: {pids[0]}. Wait queue: {pids[1]}."
    )  # fmt: skip
    assert found[2] == ("STATEMENT", text)
    assert re.fullmatch(f"process {pids[1]} acquired {lock}", found[3][1])


def test_who_may_set_them(server: Meridian) -> None:
    with connected(server) as connection:
        connection.execute("create role plain login")
        with pytest.raises(psycopg.errors.CantChangeRuntimeParam):
            connection.execute("set log_connections = 'on'")
        connection.execute("set role plain")
        for name in ("log_statement", "log_duration", "log_lock_waits"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"set {name} = default")  # type: ignore[arg-type]
        connection.execute("set log_parameter_max_length_on_error = 5")


def test_connections_and_json(tmp_path: Path) -> None:
    options = (
        *NO_JVM, "--set", "log_format=json", "--set", "log_connections=all",
        "--set", "log_disconnections=on", "--set", "log_statement=ddl",
    )  # fmt: skip
    with meridian(tmp_path, options) as server:
        with connected(server, application_name="me") as connection:
            rows = "select setting, source from pg_settings where name = 'log_statement'"
            assert connection.execute(rows).fetchone() == ("ddl", "configuration file")
            assert connection.execute("show log_connections").fetchone() == ("all",)
            connection.execute("create table t (k int)\n")
            with pytest.raises(psycopg.Error):
                connection.execute("select nope from t")
            pid = connection.info.backend_pid
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log.splitlines()]
    found = [line for line in lines if line["logger"] == "meridian.session"]
    texts = [re.sub(r"\d+:\d\d:\d\d\.\d+|port=\d+|\d+\.\d+ ms", "..", x["message"]) for x in found]
    assert texts == [
        "connection received: host=127.0.0.1 ..",
        'connection authenticated: user="meridian" method=trust (built-in:2)',
        "connection authorized: user=meridian database=meridian application_name=me",
        "connection ready: setup total=..",
        "statement: create table t (k int)\n",
        'column "nope" does not exist at character 8',
        "disconnection: session time: .. user=meridian database=meridian host=127.0.0.1 ..",
    ]
    error = found[5]
    assert error["timestamp"].endswith("Z")
    assert error["remote_port"] > 0
    kept = ("error_severity", "state_code", "statement", "user", "dbname", "application_name")
    assert [error[name] for name in kept] == [
        "ERROR", "42703", "select nope from t", "meridian", "meridian", "me"
    ]  # fmt: skip
    assert error["pid"] == pid


@pytest.mark.parametrize(
    ("value", "aspects"),
    [
        ("", ()),
        ("off", ()),
        ("on", ("receipt", "authentication", "authorization")),
        ("receipt, Authorization", ("receipt", "authorization")),
        ("all", ("receipt", "authentication", "authorization", "setup_durations")),
    ],
)
def test_what_is_logged_of_connections(value: str, aspects: Sequence[str]) -> None:
    assert connection_aspects(value) == frozenset(aspects)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("log_format=xml", "log_format must be text or json"),
        ("log_connections=sometimes", 'invalid value for parameter "log_connections": "sometimes"'),
        ("log_statement=some", 'invalid value for parameter "log_statement": "some"'),
    ],
)
def test_wrong_values_are_refused_at_the_start(given: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        load(flags={}, sets=[given], environment={})
