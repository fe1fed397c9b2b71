"""Passwords and tokens are shown nowhere: one search through all that others than their client see.

server's log at debug, with every statement · errors with STATEMENT · pg_stat_activity ·
pg_settings · pg_prepared_statements of others · /metrics · EXPLAIN · meridian doctor
"""

import contextlib
import io
import tarfile
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from coordinator.config import Settings
from coordinator.server.doctor import doctor
from tests.session.monitoring.http_client import get
from tests.support.servers import free_port, meridian

SECRET = "hunter2"
"""Part of each secret below."""

STATEMENTS: tuple[LiteralString, ...] = (
    "create role ann login password 'hunter2'",
    "alter role ann with password 'hunter2' valid until '2030-01-01'",
    "alter role ann password $x$hunter2$x$",
    "alter user ann password 'hunter2' nonsense",
    "create role ann password 'hunter2'",
    "create user bob with password 'hunter2",
    "create user mapping for ann server s options (user 'a', password 'hunter2')",
    "create server s foreign data wrapper w options (host 'h', password 'hunter2')",
    "create connection c to postgres (host 'h', password 'hunter2')",
    "create subscription s connection 'host=h password=hunter2' publication p",
    "select * from dblink('postgresql://ann:hunter2@host/db', 'select 1') as t(a int)",
    "set app.api_token = 'hunter2'",
    "set app.secret to hunter2",
    "select set_config('app.password', 'hunter2', false)",
    "alter role ann set app.token = 'hunter2'",
    "prepare p as select 1 where 'password=hunter2' = 'x'",
    "execute p",
    "select 'password=hunter2'::int",
    'select \'{"access_key": "hunter2"}\'::int',
    "notify c, 'token: hunter2'",
)


def _run(connection: "psycopg.Connection[Any]", text: LiteralString) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.execute(text)


def _doctor(data: Path, place: Path) -> list[str]:
    """What `meridian doctor` prints, and all files of its archive."""
    path = place / "doctor.tar.gz"
    settings = Settings(data_dir=str(data), stash=f"postgresql://ann:{SECRET}@h/d", warehouse="w")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert doctor(settings, refused=f"password={SECRET}", log=None, output=str(path)) == 0
    found = [said.getvalue()]
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            found.append(f"{member.name} {file.read().decode()}")
    assert "create role ann" in "".join(found), "the log is in it"
    return found


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_found_nowhere(tmp_path: Path, form: str) -> None:
    port = free_port()
    options = (
        *("--spark-master", "none", "--set", f"log_format={form}", "--set", "log_level=debug"),
        *("--set", "log_statement=all", "--set", "log_min_duration_statement=0"),
        *("--set", "log_parameter_max_length_on_error=-1", "--set", "log_connections=all"),
        *("--set", f"http_listen=127.0.0.1:{port}", "--set", "audit=login"),
        *("--stash", f"sqlite:{tmp_path / 'stash.db'}", "--set", "log_disconnections=on"),
    )
    environment = {"MERIDIAN_PASSWORD": "first-hunter2"}
    seen: list[str] = []
    with meridian(tmp_path, options, environment=environment) as server:
        dsn = server.dsn.replace("meridian@", "meridian:first-hunter2@")
        with (
            psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as acting,
            psycopg.connect(dsn, autocommit=True) as looking,
        ):
            for text in STATEMENTS:
                _run(acting, text)
                for catalog in ("pg_stat_activity", "pg_settings", "pg_prepared_statements"):
                    rows = looking.execute(f"select * from {catalog}").fetchall()  # type: ignore[arg-type]
                    seen.append(f"{catalog} after {text[:12]}: {rows}")
            acting.execute("create table u (k int primary key, v text)")
            explained: LiteralString = (
                "select 'password=hunter2' from u where v = 'postgresql://ann:hunter2@host/db'"
            )
            for form_of in ("verbose", "verbose, format json", "analyze, verbose"):
                seen += [str(row) for row in acting.execute(f"explain ({form_of}) {explained}")]
                assert "<hidden>" in "".join(seen[-20:])
            with contextlib.suppress(psycopg.Error):
                acting.execute("select %s::int", ("postgresql://ann:hunter2@host/db",))
        seen.append(get(port, "/metrics").text)
        seen += _doctor(server.data, tmp_path)
        assert server.stop() == 0
        lines = server.log.splitlines()
    assert len([line for line in lines if "<hidden>" in line]) >= len(STATEMENTS)
    assert [text for text in (*seen, *lines) if SECRET in text] == []
