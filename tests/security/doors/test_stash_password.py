"""The password of a stash in PostgreSQL: from files, never silently from the command line."""

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from coordinator.config import Settings, SettingsError, load
from coordinator.server.open_storage import stash_dsn
from tests.security.doors.conftest import LOCAL, Certificates, value
from tests.support.servers import meridian, postgres_server
from tests.support.tls_proxy import tls_before

STASH = "postgresql://ann@127.0.0.1:5432/stash?sslmode=verify-full"


def test_the_password_of_a_file_goes_into_the_address(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("p@ss/w?rd\n")
    settings = load(
        flags={"stash": STASH, "warehouse": "w"},
        sets=[f"stash_password_file={file}"],
        environment={},
    )
    parts = urlsplit(stash_dsn(settings))
    assert (parts.username, parts.password) == ("ann", "p%40ss%2Fw%3Frd")
    assert (parts.hostname, parts.path, parts.query) == (
        "127.0.0.1",
        "/stash",
        "sslmode=verify-full",
    )
    assert not settings.is_password_shown
    assert stash_dsn(Settings(stash=STASH)) == STASH


@pytest.mark.parametrize("stash", ["", "postgresql://ann:p@h/d", "postgresql://h/d"])
def test_a_file_that_nobody_needs_is_refused(stash: str) -> None:
    flags = {"stash": stash, "warehouse": "w"} if stash else {}
    with pytest.raises(SettingsError, match="stash_password_file is for a stash in PostgreSQL"):
        load(flags=flags, sets=["stash_password_file=f"], environment={})


def test_a_server_with_a_stash_that_asks_for_a_password(tmp_path: Path) -> None:
    with postgres_server() as stash:
        with psycopg.connect(stash.dsn, autocommit=True) as connection:
            connection.execute("create role ann superuser login password 'p@ss'")
            row = connection.execute("show hba_file").fetchone()
            assert row is not None
            Path(row[0]).write_text("host all ann all scram-sha-256\nhost all all all trust\n")
            connection.execute("select pg_reload_conf()")
        file = tmp_path / "secret"
        file.write_text("p@ss\n")
        place = f"postgresql://ann@127.0.0.1:{stash.port}/postgres"
        options = [*LOCAL, "--warehouse", str(tmp_path / "warehouse"), "--stash", place]
        (tmp_path / "warehouse").mkdir()
        with meridian(tmp_path, [*options, "--set", f"stash_password_file={file}"]) as server:
            assert value(server, "select 1") == 1
            assert "command line" not in server.log
        shown = [*options[:-1], place.replace("ann@", "ann:p%40ss@")]
        with meridian(tmp_path, shown) as server:
            assert value(server, "select 1") == 1
            assert "the stash's password is on the command line" in server.log
            assert "p%40ss" not in server.log


def test_tls_to_the_stash(tmp_path: Path, certificates: Certificates) -> None:
    """`sslmode` of the stash's address is kept: through what ends TLS before a server without."""
    (tmp_path / "warehouse").mkdir()
    with (
        postgres_server() as stash,
        tls_before(("127.0.0.1", stash.port), certificates) as (port, handshakes),
    ):
        place = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=verify-full"
        options = [*LOCAL, "--warehouse", str(tmp_path / "warehouse"), "--stash"]
        trusted = f"{place}&sslrootcert={certificates.authority}"
        with meridian(tmp_path, [*options, trusted]) as server:
            assert value(server, "create table t (k int); insert into t values (1); table t") == 1
        assert handshakes
        assert set(handshakes) <= {"TLSv1.2", "TLSv1.3"}
        foreign = f"{place}&sslrootcert={certificates.foreign}"
        with (
            pytest.raises(RuntimeError, match="certificate verify failed"),
            meridian(tmp_path, [*options, foreign]),
        ):
            pass
        plain = f"postgresql://postgres@127.0.0.1:{stash.port}/postgres?sslmode=require"
        with (
            pytest.raises(RuntimeError, match="rejected SSL upgrade"),
            meridian(tmp_path, [*options, plain]),
        ):
            pass
