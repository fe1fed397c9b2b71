"""Passwords: the first one, SCRAM, what is kept and what is said."""

import json
import socket
import struct
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from coordinator.session.activity import QUERY_BYTES_MAX
from tests.security.doors.conftest import (
    LOCAL,
    PASSWORD,
    StartServer,
    dsn_of,
    refusal,
    run_passwd,
    value,
)
from tests.support.servers import Meridian, meridian


def test_without_a_password_this_machine_is_trusted_and_the_log_says_so(
    start: StartServer,
) -> None:
    server = start(password="")
    assert value(server, "select current_user") == "meridian"
    assert value(server, "select current_user", user="anybody") == "anybody"
    assert "everybody on this machine is superuser" in server.log


def test_the_first_password_is_asked_for_from_then_on(tmp_path: Path) -> None:
    with meridian(tmp_path, LOCAL, {"MERIDIAN_PASSWORD": PASSWORD}) as server:
        assert value(server, "select current_user", password=PASSWORD) == "meridian"
        wrong = 'password authentication failed for user "meridian"'
        assert refusal(server, password="wrong") == wrong
        assert "superuser" not in server.log
    with meridian(tmp_path, LOCAL) as server:
        assert refusal(server, password="wrong") == wrong
        assert value(server, "select 1", password=PASSWORD) == 1
    with meridian(tmp_path, LOCAL, {"MERIDIAN_PASSWORD": "another"}) as server:
        assert value(server, "select 1", password=PASSWORD) == 1
        assert refusal(server, password="another") == wrong
        assert "the one of the environment is ignored" in server.log
        for secret in (PASSWORD, "another"):
            assert secret not in server.log


def test_the_first_password_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{PASSWORD}\n")
    with meridian(tmp_path, LOCAL, {"MERIDIAN_PASSWORD_FILE": str(secret)}) as server:
        assert value(server, "select 1", password=PASSWORD) == 1


def test_passwd_sets_a_password_while_no_server_runs(tmp_path: Path) -> None:
    with meridian(tmp_path, LOCAL) as server:
        value(server, "create role ann superuser login; select 1")
        assert "meridian:" in run_passwd(server, "meridian", "new").stderr  # it is in use
        server.stop()
        done = run_passwd(server, "meridian", "new")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert run_passwd(server, "ann", "hers").returncode == 0
        assert run_passwd(server, "bob", "his").stderr == 'meridian: role "bob" does not exist\n'
        assert "empty" in run_passwd(server, "ann", "").stderr
        assert "reserved" in run_passwd(server, "pg_read_all_data", "x").stderr
        server.start()
        assert value(server, "select current_user", password="new") == "meridian"
        assert value(server, "select current_user", user="ann", password="hers") == "ann"
        assert refusal(server, user="ann", password="new").startswith("password authentication")


@pytest.fixture
def asking(start: StartServer) -> Meridian:
    """A server that asks for passwords, and some roles."""
    server = start(None, "--set", "audit=login")
    with psycopg.connect(dsn_of(server, password=PASSWORD), autocommit=True) as connection:
        connection.execute(
            "create role ann superuser login password 'pässwörd';"
            "create role plain login password 'p';"
            "create role late superuser login password 'p' valid until '2020-01-01';"
            "create role nopass superuser login;"
            "create role nologin superuser password 'p'"
        )
    return server


def test_what_is_wrong_with_a_password_is_not_told(asking: Meridian) -> None:
    for user in ("ann", "late", "nopass", "nobody", "meridian"):
        assert refusal(asking, user=user, password="p") == (
            f'password authentication failed for user "{user}"'
        )


def test_who_is_let_in(asking: Meridian) -> None:
    assert value(asking, "select current_user", user="ann", password="pässwörd") == "ann"
    assert refusal(asking, user="nologin", password="p") == (
        'role "nologin" is not permitted to log in'
    )
    # A3: privileges are not enforced, so a password would promise too much.
    assert refusal(asking, user="plain", password="p") == (
        'role "plain" may not log in with "scram-sha-256", because it is not a superuser'
    )
    assert refusal(asking, password=PASSWORD, dbname="missing") == (
        'database "missing" does not exist'
    )


def test_each_log_in_is_one_line_of_json(asking: Meridian) -> None:
    odd = 'a"b\nc'
    refusal(asking, user=odd, password="p")
    value(asking, "select 1", password=PASSWORD)
    lines = [json.loads(line) for line in asking.log.splitlines() if line.startswith("{")]
    failed, done = lines[-2:]
    assert (failed["user"], failed["sqlstate"], failed["pid"]) == (odd, "28P01", None)
    assert (done["user"], done["sqlstate"], done["address"]) == ("meridian", "00000", "127.0.0.1")
    assert done["pid"] > 0
    assert done["tls"] is None


def test_who_leaves_before_the_end_of_a_log_in_is_in_the_audit(start: StartServer) -> None:
    server = start(None, "--set", "audit=login", "--set", "startup_timeout_s=1")
    port = urlsplit(server.dsn).port or 0
    words = b"user\0guest\0database\0meridian\0\0"
    for is_silent in (False, True):
        with socket.create_connection(("127.0.0.1", port), 20) as plain:
            plain.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
            assert plain.recv(1) == b"R"
            while is_silent and plain.recv(1000):
                pass
    value(server, "select 1", password=PASSWORD)
    lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    assert [(one["user"], one["sqlstate"]) for one in lines] == [
        ("guest", "08006"),
        ("guest", "57014"),
        ("meridian", "00000"),
    ]


def test_passwords_are_shown_nowhere(asking: Meridian) -> None:
    with psycopg.connect(dsn_of(asking, password=PASSWORD), autocommit=True) as connection:
        connection.execute("alter role ann password 'hush-hush'")
        with pytest.raises(psycopg.Error):
            connection.execute("alter role ann password 'hush-hush' nonsense")
        shown = "select string_agg(query, '') from pg_stat_activity"
        with psycopg.connect(dsn_of(asking, password=PASSWORD)) as other:
            (text,) = other.execute(shown).fetchone() or ("",)
        assert "alter role ann password <hidden>" in text
        assert "hush" not in text
        assert "hush" not in asking.log


def test_a_password_at_the_cut_of_the_shown_query_is_hidden(asking: Meridian) -> None:
    url = "select 'postgresql://ann:hush"
    comment = "-" * (QUERY_BYTES_MAX - len(url) - 1)
    shown = "select query from pg_stat_activity where pid = %s"
    dsn = dsn_of(asking, password=PASSWORD)
    with psycopg.connect(dsn) as connection, psycopg.connect(dsn) as other:
        connection.execute(f"{comment}\n{url}-hush@host/db'".encode())
        (text,) = other.execute(shown, [connection.info.backend_pid]).fetchone() or ("",)
    assert text.endswith("\nselect 'postgresql://ann:<hidden>")


def test_limits_of_connections(asking: Meridian) -> None:
    with psycopg.connect(dsn_of(asking, password=PASSWORD), autocommit=True) as connection:
        connection.execute("alter role plain connection limit 1")
        rows = connection.execute("show scram_iterations").fetchall()
        assert rows == [("4096",)]
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="1024"):
            connection.execute("set scram_iterations = 5")


def test_a_connection_limit_holds_for_who_is_no_superuser(start: StartServer) -> None:
    server = start("host all all all trust\n")
    value(server, "create role few login connection limit 1; select 1")
    with psycopg.connect(dsn_of(server, user="few")):
        assert refusal(server, user="few") == 'too many connections for role "few"'
    assert value(server, "select 1", user="few") == 1
    value(server, "revoke connect on database meridian from public; select 1")
    assert refusal(server, user="few") == 'permission denied for database "meridian"'


def test_two_passwords_at_once_are_refused(tmp_path: Path) -> None:
    environment = {"MERIDIAN_PASSWORD": "a", "MERIDIAN_PASSWORD_FILE": "b"}
    with pytest.raises(RuntimeError, match="only one of"), meridian(tmp_path, LOCAL, environment):
        pass


def test_a_password_that_was_taken_away_does_not_come_back(tmp_path: Path) -> None:
    environment = {"MERIDIAN_PASSWORD": PASSWORD}
    with meridian(tmp_path, LOCAL, environment) as server:
        value(server, "alter role meridian password null; select 1", password=PASSWORD)
    with meridian(tmp_path, LOCAL, environment) as server:
        assert "was taken away" in server.log
        assert refusal(server, password=PASSWORD).startswith("password authentication failed")


def test_a_password_of_sql_counts_from_the_next_start_on(tmp_path: Path) -> None:
    with meridian(tmp_path, LOCAL) as server:
        value(server, f"alter role meridian password '{PASSWORD}'; select 1")
        server.stop()
        server.start()
        assert value(server, "select 1", password=PASSWORD) == 1
        assert refusal(server, password="wrong").startswith("password authentication failed")


@pytest.mark.parametrize("secret", ["md5" + "0" * 32])
def test_a_first_password_that_is_none_is_one_line(tmp_path: Path, secret: str) -> None:
    with (
        pytest.raises(RuntimeError, match="meridian: the first password: an MD5 password"),
        meridian(tmp_path, LOCAL, {"MERIDIAN_PASSWORD": secret}),
    ):
        pass


def test_the_first_superuser_stays_one(start: StartServer) -> None:
    server = start()
    with psycopg.connect(dsn_of(server, password=PASSWORD), autocommit=True) as connection:
        for attribute in ("nosuperuser", "nologin"):
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                connection.execute(f"alter role meridian {attribute}".encode())
