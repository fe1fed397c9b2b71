"""Certificates, and servers with rules; every server ends with its test or module."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import trustme

from tests.support.servers import Meridian, meridian

PASSWORD = "sesame"
LOCAL = ("--spark-master", "none", "--set", "auth_delay_ms=0")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM. `client` is of the role meridian, `foreign` of nobody whom the server knows."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    foreign: Path
    foreign_key: Path

    @property
    def options(self) -> tuple[str, ...]:
        """What a server with TLS is started with."""
        named = {
            "ssl_cert_file": self.server,
            "ssl_key_file": self.server_key,
            "ssl_ca_file": self.authority,
        }
        return tuple(part for name, path in named.items() for part in ("--set", f"{name}={path}"))


def write_pair(pair: trustme.LeafCert, place: Path, name: str) -> tuple[Path, Path]:
    """Certificate and key, the key readable by its owner only."""
    certificate, key = place / f"{name}.crt", place / f"{name}.key"
    certificate.write_bytes(b"".join(one.bytes() for one in pair.cert_chain_pems))
    key.touch(0o600)
    key.write_bytes(pair.private_key_pem.bytes())
    return certificate, key


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    place = tmp_path_factory.mktemp("certificates")
    authority, other = trustme.CA(), trustme.CA()
    path = place / "ca.crt"
    authority.cert_pem.write_to_path(str(path))
    return Certificates(
        path,
        *write_pair(authority.issue_cert("localhost", "127.0.0.1", "::1"), place, "server"),
        *write_pair(authority.issue_cert(common_name="meridian"), place, "client"),
        *write_pair(other.issue_cert(common_name="meridian"), place, "foreign"),
    )


StartServer = Callable[..., Meridian]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    """Start servers of this test: `start(rules, *options, password=..)`."""
    with ExitStack() as stack:

        def started(rules: str | None = None, *options: str, password: str = PASSWORD) -> Meridian:
            given = [*LOCAL, *options]
            if rules is not None:
                path = tmp_path / "hba"
                path.write_text(rules)
                given += ["--set", f"hba_file={path}"]
            environment = {"MERIDIAN_PASSWORD": password} if password else {}
            return stack.enter_context(meridian(tmp_path, given, environment))

        yield started


def dsn_of(server: Meridian, **more: str | int) -> str:
    """Where a server is, with other parts; without a password unless one is given."""
    port = urlsplit(server.dsn).port
    plain = {"host": "127.0.0.1", "port": port, "user": "meridian", "dbname": "meridian"}
    parts = {name: str(part) for name, part in {**plain, **more}.items()}
    return psycopg.conninfo.make_conninfo("", **parts)


def refusal(server: Meridian, **more: str | int) -> str:
    """Why a client is not let in: `SQLSTATE message` if the server says so."""
    with pytest.raises(psycopg.OperationalError) as refused:
        psycopg.connect(dsn_of(server, **more)).close()
    text = str(refused.value).split("FATAL:  ")[-1]
    return text.splitlines()[0]


def value(server: Meridian, query: str, **more: str | int) -> object:
    """The value of the last of some statements, by a connection of its own."""
    with psycopg.connect(dsn_of(server, **more), autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        return None if row is None else row[0]


def run_passwd(server: Meridian, name: str, password: str) -> subprocess.CompletedProcess[str]:
    """`meridian passwd`, told by standard input."""
    return meridian_command(["passwd", name, "--data-dir", str(server.data)], f"{password}\n")


def meridian_command(arguments: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
    """A command of the program, with this standard input."""
    program = Path(sys.executable).parent / "meridian"
    return subprocess.run(
        [program, *arguments], input=given, capture_output=True, text=True, check=False
    )
