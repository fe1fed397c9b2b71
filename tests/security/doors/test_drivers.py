"""The log-in of drivers that have their own SCRAM and TLS: asyncpg, pg8000; psql of Debian."""

import asyncio
import gc
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pg8000.native
import pytest

from tests.security.doors.conftest import LOCAL, PASSWORD, Certificates
from tests.support.servers import Meridian, meridian

DEBIAN_PSQL = Path("/usr/bin/psql")


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Meridian]:
    place = tmp_path_factory.mktemp("drivers")
    (place / "hba").write_text("hostssl all all all scram-sha-256\nhost all all all reject\n")
    options = [*LOCAL, *certificates.options, "--set", f"hba_file={place / 'hba'}"]
    with meridian(place, options, {"MERIDIAN_PASSWORD": PASSWORD}) as started:
        yield started


def _port(server: Meridian) -> int:
    return urlsplit(server.dsn).port or 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_asyncpg(server: Meridian, certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(certificates.authority))
    here = {"host": "127.0.0.1", "port": _port(server), "user": "meridian", "database": "meridian"}

    async def ask(password: str) -> object:
        connection = await asyncpg.connect(**here, password=password, ssl=context)
        try:
            return await connection.fetchval("select current_user")
        finally:
            await connection.close()

    assert asyncio.run(ask(PASSWORD)) == "meridian"
    with pytest.raises(asyncpg.InvalidPasswordError):
        asyncio.run(ask("wrong"))
    # It offers no ALPN, which PostgreSQL refuses as well.
    with pytest.raises((asyncpg.PostgresError, ConnectionError, asyncpg.InterfaceError)):
        asyncio.run(asyncpg.connect(**here, password=PASSWORD, ssl=context, direct_tls=True))
    # Of a log-in that is refused asyncpg leaves the socket to the collector: now, not in a test
    # that comes later.
    gc.collect()


def test_pg8000(server: Meridian, certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(certificates.authority))
    here = {"host": "127.0.0.1", "port": _port(server), "database": "meridian"}
    connection = pg8000.native.Connection(
        "meridian", password=PASSWORD, ssl_context=context, **here
    )
    assert connection.run("select current_user") == [["meridian"]]
    connection.close()
    with pytest.raises(pg8000.native.DatabaseError, match="28P01"):
        pg8000.native.Connection("meridian", password="wrong", ssl_context=context, **here)


@pytest.mark.skipif(not DEBIAN_PSQL.exists(), reason="no psql of Debian here")
def test_psql_with_channel_binding(server: Meridian, certificates: Certificates) -> None:
    place = (
        f"host=127.0.0.1 port={_port(server)} user=meridian dbname=meridian"
        f" sslmode=verify-full sslrootcert={certificates.authority} channel_binding=require"
    )
    done = subprocess.run(
        [DEBIAN_PSQL, "-XAtc", "select 'in'", place],
        env={**os.environ, "PGPASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("in\n", "")


@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="no pgbouncer here")
def test_pgbouncer_asks_for_verifiers(
    server: Meridian, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Path(f"/tmp/pgbouncer-{os.getpid()}")
    place.mkdir(0o755)
    port = _port(server) + 1
    try:
        (place / "users").write_text(f'"meridian" "{PASSWORD}"\n')
        (place / "ini").write_text(
            "[databases]\n"
            f"meridian = host=127.0.0.1 port={_port(server)} auth_user=meridian\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = scram-sha-256\n"
            f"auth_file = {place}/users\nserver_tls_sslmode = require\nunix_socket_dir =\n"
            "auth_query = select rolname, rolpassword from pg_authid where rolname = $1\n"
            "ignore_startup_parameters = extra_float_digits\n"
        )
        pooler = subprocess.Popen(["pgbouncer", "-u", "nobody", "-q", str(place / "ini")])
        try:
            answer = asyncio.run(_by_pooler(port))
        finally:
            pooler.terminate()
            pooler.wait(20)
    finally:
        shutil.rmtree(place)
    assert answer == "in"


async def _by_pooler(port: int) -> object:
    here = {"host": "127.0.0.1", "port": port, "user": "meridian", "database": "meridian"}
    for _ in range(100):
        try:
            connection = await asyncpg.connect(**here, password=PASSWORD, statement_cache_size=0)
        except ConnectionRefusedError:
            await asyncio.sleep(0.1)
        else:
            break
    try:
        return await connection.fetchval("select 'in'")
    finally:
        await connection.close()
