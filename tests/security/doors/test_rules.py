"""Rules of one's own: hba_file and ident_file, read again, and what is broken in them."""

import getpass
import shutil
import signal
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.security.doors.conftest import (
    LOCAL,
    PASSWORD,
    Certificates,
    StartServer,
    dsn_of,
    refusal,
    value,
)
from tests.support.servers import Meridian, meridian

RULES = """\
# TYPE  DATABASE  USER      ADDRESS        METHOD
local   all       all                      peer map=mine
host    sameuser  all       127.0.0.1/32   reject
host    all       +staff    127.0.0.1/32   scram-sha-256
host    postgres  meridian  127.0.0.1/32   trust
"""


def test_the_first_rule_that_matches_decides(start: StartServer) -> None:
    server = start(RULES)
    entry = 'host "127.0.0.1", user "{}", database "{}", no encryption'
    assert value(server, "select 1", dbname="postgres") == 1
    value(
        server,
        "create role staff; create role ann superuser login password 'a' in role staff;"
        "create role bob superuser login password 'b'; select 1",
        dbname="postgres",
    )
    assert value(server, "select current_user", user="ann", password="a") == "ann"
    assert refusal(server, user="bob", password="b") == (
        f"no pg_hba.conf entry for {entry.format('bob', 'meridian')}"
    )
    assert refusal(server) == (
        f"pg_hba.conf rejects connection for {entry.format('meridian', 'meridian')}"
    )
    assert refusal(server, user="nobody", dbname="postgres").startswith("no pg_hba.conf entry")


def test_a_name_that_no_role_has_is_refused(start: StartServer) -> None:
    server = start("host all all all trust\n")
    assert refusal(server, user="nobody") == 'role "nobody" does not exist'
    value(server, "create role plain login; select 1")
    assert value(server, "select current_user", user="plain") == "plain"


def test_files_are_read_again(start: StartServer, tmp_path: Path) -> None:
    server = start("host all all all trust\n")
    path = tmp_path / "hba"
    with psycopg.connect(dsn_of(server), autocommit=True) as connection:
        path.write_text("host all all all reject\n")
        assert connection.execute("select pg_reload_conf()").fetchall() == [(True,)]
        connection.execute("create role nobody; set role nobody")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="pg_reload_conf"):
            connection.execute("select pg_reload_conf()")
        connection.execute("reset role")
        assert refusal(server).startswith("pg_hba.conf rejects")
        path.write_text("host all all nonsense\n")
        connection.execute("select pg_reload_conf()")
        assert "access is not reloaded" in server.log
        assert "line 1 of configuration file" in server.log
        assert refusal(server).startswith("pg_hba.conf rejects")
        shown = connection.execute("select line_number, error from pg_hba_file_rules").fetchall()
        assert shown == [(1, "end-of-line before authentication method")]
        path.write_text("\n# all\nhost all all samehost trust\n")
        server.signal(signal.SIGHUP)
        _until_let_in(server)
        shown = connection.execute(
            "select rule_number, line_number, type, database, user_name, address, auth_method"
            " from pg_hba_file_rules"
        ).fetchall()
        assert shown == [(1, 3, "host", ["all"], ["all"], "samehost", "trust")]


def _until_let_in(server: Meridian) -> None:
    """A signal is handled at some later moment."""
    while True:
        try:
            psycopg.connect(dsn_of(server)).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("host all all all ldap ldapserver=x\n", 'invalid authentication method "ldap"'),
        ("host all all all password\n", "only supported on hostssl connections"),
        ("local all all oauth\n", 'invalid authentication method "oauth"'),
        ("host all all 300.0.0.0/8 trust x\n", "invalid"),
        ("", "contains no entries"),
    ],
)
def test_a_broken_file_refuses_the_start(tmp_path: Path, rules: str, reason: str) -> None:
    path = tmp_path / "hba"
    path.write_text(rules)
    with (
        pytest.raises(RuntimeError, match=reason),
        meridian(tmp_path, [*LOCAL, "--set", f"hba_file={path}"]),
    ):
        pass
    assert not (tmp_path / "data").exists()


def test_peer_on_the_unix_socket(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    me = getpass.getuser()
    place = Path(f"/tmp/meridian-{tmp_path_factory.getbasetemp().name}-{id(tmp_path):x}")
    (tmp_path / "ident").write_text(f'mine "{me}" meridian\nmine /^(.*)$ \\1\n')
    (tmp_path / "hba").write_text("local all all peer map=mine\nhost all all all trust\n")
    place.mkdir(0o700)
    options = [*LOCAL, "--set", f"hba_file={tmp_path / 'hba'}"]
    options += ["--set", f"ident_file={tmp_path / 'ident'}"]
    options += ["--set", f"unix_socket_directory={place}"]
    try:
        with meridian(tmp_path, options) as server:
            here = {"host": str(place)}
            assert value(server, "select current_user", **here) == "meridian"
            assert refusal(server, user="ann", **here) == (
                'Peer authentication failed for user "ann"'
            )
            shown = "select client_addr, client_port from pg_stat_activity"
            shown += " where pid = pg_backend_pid()"
            with psycopg.connect(dsn_of(server, **here)) as connection:
                assert connection.execute(shown).fetchall() == [(None, -1)]
            path = place / f".s.PGSQL.{urlsplit(server.dsn).port}"
            assert path.stat().st_mode & 0o777 == 0o700
            server.kill()
            assert path.exists()
            server.launch("--listen", f"127.0.0.1:{path.name.rpartition('.')[2]}")
            server.wait_until_ready()
            assert value(server, "select current_user", **here) == "meridian"
            server.stop()
            assert not path.exists()
    finally:
        for left in place.iterdir():
            left.unlink()
        place.rmdir()


def test_a_socket_of_a_server_that_lives_is_not_replaced(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        common = [*LOCAL, "--set", f"unix_socket_directory={place}"]
        with meridian(tmp_path / "one", common) as server:
            port = urlsplit(server.dsn).port
            other = [*common, "--listen", f"127.0.0.2:{port}"]
            with (
                pytest.raises(RuntimeError, match="another server uses it"),
                meridian(tmp_path / "two", other),
            ):
                pass
            assert value(server, "select 1", host=str(place)) == 1
            # A file that is another's now is not this server's to remove.
            path = place / f".s.PGSQL.{port}"
            path.unlink()
            path.touch()
            server.stop()
            assert path.exists()
    finally:
        shutil.rmtree(place)


def test_a_socket_path_that_is_too_long_is_a_warning(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    with meridian(tmp_path, [*LOCAL, "--set", f"unix_socket_directory={long}"]) as server:
        assert "is too long (maximum 107 bytes)" in server.log
        assert value(server, "select 1") == 1


def test_other_machines_are_refused_until_there_is_a_password(tmp_path: Path) -> None:
    own = _own_address()
    if own is None:
        pytest.skip("this machine has no address but loopback")
    options = [*LOCAL, "--listen", "*:0"]
    with meridian(tmp_path, options) as server:
        assert refusal(server, host=own).startswith(f'no pg_hba.conf entry for host "{own}"')
    with meridian(tmp_path, options, {"MERIDIAN_PASSWORD": PASSWORD}) as server:
        assert value(server, "select 1", host=own, password=PASSWORD) == 1


def _own_address() -> str | None:
    import psutil

    found = [
        one.address
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family.name == "AF_INET" and not one.address.startswith("127.")
    ]
    return found[0] if found else None


def test_a_certificate_is_demanded_before_a_password(
    tmp_path: Path, certificates: Certificates
) -> None:
    path = tmp_path / "hba"
    path.write_text("hostssl all all all scram-sha-256 clientcert=verify-full\n")
    options = [*LOCAL, *certificates.options, "--set", f"hba_file={path}"]
    mine = {"sslcert": str(certificates.client), "sslkey": str(certificates.client_key)}
    with meridian(tmp_path, options, {"MERIDIAN_PASSWORD": PASSWORD}) as server:
        for password in (PASSWORD, "wrong"):
            told = refusal(server, password=password, sslmode="require", sslcert="none")
            assert told == "connection requires a valid client certificate"
        assert value(server, "select 1", password=PASSWORD, sslmode="require", **mine) == 1
        told = refusal(server, password="wrong", sslmode="require", **mine)
        assert told.startswith("password authentication failed")


def test_an_empty_name_of_the_file_refuses_the_start(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="hba_file names no file"),
        meridian(tmp_path, [*LOCAL, "--set", "hba_file="]),
    ):
        pass
