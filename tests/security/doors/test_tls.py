"""TLS by real clients and by hostile ones; after each of those the server still serves."""

import contextlib
import re
import resource
import socket
import ssl
import struct
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import trustme

from tests.security.doors.conftest import (
    LOCAL,
    PASSWORD,
    Certificates,
    dsn_of,
    refusal,
    value,
    write_pair,
)
from tests.support.servers import Meridian, meridian

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
GSS_REQUEST = struct.pack("!ii", 8, 80877104)
RULES = """\
hostssl all all 127.0.0.1/32 scram-sha-256
hostssl all all ::1/128 cert
"""


def startup(user: str = "meridian") -> bytes:
    """A StartupMessage."""
    words = f"user\0{user}\0database\0meridian\0\0".encode()
    return struct.pack("!ii", 8 + len(words), 196608) + words


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Meridian]:
    place = tmp_path_factory.mktemp("tls")
    (place / "hba").write_text(RULES)
    options = [*LOCAL, *certificates.options, "--set", f"hba_file={place / 'hba'}"]
    options += ["--listen", "127.0.0.1:0,[::1]:0", "--set", "startup_timeout_s=3"]
    options += ["--set", "connections_unauthenticated_max=20"]
    with meridian(place, options, {"MERIDIAN_PASSWORD": PASSWORD}) as started:
        yield started


@pytest.fixture(autouse=True)
def _lives(server: Meridian) -> Iterator[None]:
    yield
    assert value(server, "select 1", password=PASSWORD, sslmode="require") == 1


def connected(server: Meridian) -> socket.socket:
    """A bare connection."""
    port = urlsplit(server.dsn).port
    return socket.create_connection(("127.0.0.1", port or 0), 20)


@pytest.mark.parametrize(
    "more",
    [
        {"sslmode": "require"},
        {"sslmode": "verify-full", "channel_binding": "require"},
        {"sslmode": "require", "sslnegotiation": "direct", "channel_binding": "require"},
        {"sslmode": "require", "channel_binding": "disable"},
        {"sslmode": "require", "ssl_max_protocol_version": "TLSv1.2"},
    ],
)
def test_libpq(server: Meridian, certificates: Certificates, more: dict[str, str]) -> None:
    if more["sslmode"] == "verify-full":
        more = {**more, "sslrootcert": str(certificates.authority)}
    with psycopg.connect(dsn_of(server, password=PASSWORD, **more)) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("show ssl").fetchall() == [("on",)]
        long = connection.execute("select repeat('x', 3000000)").fetchall()
        assert long == [("x" * 3_000_000,)]
        with connection.cursor().copy("copy (select generate_series(1, 50000)) to stdout") as rows:
            assert sum(1 for _ in rows) == 50_000


def test_plaintext_is_refused_before_the_user_is_looked_at(server: Meridian) -> None:
    for user in ("meridian", "nobody"):
        assert refusal(server, user=user, password=PASSWORD, sslmode="disable") == (
            f'no pg_hba.conf entry for host "127.0.0.1", user "{user}", database "meridian",'
            " no encryption"
        )


def test_client_certificates(server: Meridian, certificates: Certificates, tmp_path: Path) -> None:
    mine = {"sslcert": str(certificates.client), "sslkey": str(certificates.client_key)}
    there = {"host": "::1", "sslmode": "require"}
    shown = "select ssl::text || client_dn from pg_stat_ssl where pid = pg_backend_pid()"
    assert re.fullmatch("true/O=.*/CN=meridian", str(value(server, shown, **there, **mine)))
    assert value(server, "select current_user", **there, **mine) == "meridian"
    assert refusal(server, user="ann", **there, **mine) == (
        'certificate authentication failed for user "ann"'
    )
    assert refusal(server, sslcert="none", **there) == (
        "connection requires a valid client certificate"
    )
    foreign = {"sslcert": str(certificates.foreign), "sslkey": str(certificates.foreign_key)}
    assert "alert" in refusal(server, **there, **foreign)


def test_an_expired_certificate_of_the_server_is_seen(tmp_path: Path) -> None:
    authority = trustme.CA()
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    pair = authority.issue_cert("127.0.0.1", not_before=long_ago, not_after=long_ago + timedelta(1))
    certificate, key = write_pair(pair, tmp_path, "old")
    root = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(str(root))
    options = [*LOCAL, "--set", f"ssl_cert_file={certificate}", "--set", f"ssl_key_file={key}"]
    with meridian(tmp_path, options) as server:
        checked = refusal(server, sslmode="verify-full", sslrootcert=str(root))
        assert "certificate verify failed" in checked
        assert value(server, "select 1", sslmode="require") == 1


def test_old_versions_are_refused(server: Meridian) -> None:
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that nobody should use them
            context.minimum_version = context.maximum_version = version
        with connected(server) as plain:
            plain.sendall(SSL_REQUEST)
            assert plain.recv(1) == b"S"
            with pytest.raises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(plain)


def test_plaintext_behind_an_ssl_request_is_dropped(server: Meridian) -> None:
    with connected(server) as plain:
        plain.sendall(SSL_REQUEST + startup())
        answer = _all_of(plain)
    assert b"received unencrypted data after SSL request" in answer
    assert b"R\0\0\0" not in answer


def test_plaintext_in_place_of_a_handshake(server: Meridian) -> None:
    with connected(server) as plain:
        plain.sendall(SSL_REQUEST)
        assert plain.recv(1) == b"S"
        plain.sendall(startup())
        answer = _all_of(plain)
    # TLS's alert at most; no word of the protocol in plaintext (T3).
    assert b"FATAL" not in answer


def test_gss_then_ssl(server: Meridian, certificates: Certificates) -> None:
    with connected(server) as plain:
        plain.sendall(GSS_REQUEST)
        assert plain.recv(1) == b"N"
        plain.sendall(SSL_REQUEST)
        assert plain.recv(1) == b"S"
        with _context(certificates).wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            secure.sendall(startup())
            assert b"SCRAM-SHA-256-PLUS" in secure.recv(200)


@pytest.mark.parametrize("protocols", [[], ["http/1.1"]])
def test_direct_tls_needs_alpn(
    server: Meridian, certificates: Certificates, protocols: list[str]
) -> None:
    context = _context(certificates)
    if protocols:
        context.set_alpn_protocols(protocols)
    with (
        connected(server) as plain,
        contextlib.suppress(ssl.SSLError, ConnectionError),
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        secure.sendall(startup())
        assert secure.recv(100) == b""


def test_direct_tls_in_single_bytes(server: Meridian, certificates: Certificates) -> None:
    context = _context(certificates)
    context.set_alpn_protocols(["postgresql"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with connected(server) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                secure.do_handshake()
                break
            except ssl.SSLWantReadError:
                _send_bytes(plain, outgoing.read())
                incoming.write(plain.recv(65_536))
        secure.write(startup())
        _send_bytes(plain, outgoing.read())
        while True:
            try:
                answer = secure.read(100)
                break
            except ssl.SSLWantReadError:
                incoming.write(plain.recv(65_536))
    assert answer[:1] == b"R"


def _send_bytes(plain: socket.socket, data: bytes) -> None:
    for at in range(len(data)):
        plain.sendall(data[at : at + 1])


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_half_open_handshakes_are_bounded_and_end(server: Meridian, count: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        waiting = [stack.enter_context(connected(server)) for _ in range(count)]
        for one in waiting:
            with contextlib.suppress(ConnectionError):
                one.sendall(SSL_REQUEST)
        # 20 places, a quarter of them for one address: for each more, the oldest one goes.
        assert value(server, "select 1", password=PASSWORD, sslmode="require") == 1
        for one in waiting:
            _all_of(one)


def test_there_is_no_tls_on_the_unix_socket(server: Meridian) -> None:
    port = urlsplit(server.dsn).port
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(str(server.data / f".s.PGSQL.{port}"))
        plain.sendall(SSL_REQUEST)
        assert plain.recv(1) == b"N"


def test_what_follows_the_end_of_tls_is_not_kept(
    server: Meridian, certificates: Certificates
) -> None:
    with connected(server) as plain:
        plain.sendall(SSL_REQUEST)
        assert plain.recv(1) == b"S"
        with _context(certificates).wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            secure.sendall(startup())
            assert secure.recv(100)
            with contextlib.suppress(ssl.SSLError, OSError):
                secure.unwrap()
            before = _memory_kib(server)
            with contextlib.suppress(OSError):
                for _ in range(200):
                    plain.sendall(b"x" * (1 << 20))
    assert _memory_kib(server) < before + 100_000


def _memory_kib(server: Meridian) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


def test_a_second_request_for_tls_is_refused(server: Meridian, certificates: Certificates) -> None:
    context = _context(certificates)
    context.set_alpn_protocols(["postgresql"])
    with (
        connected(server) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        secure.sendall(SSL_REQUEST)
        assert b"SSL was answered already" in secure.recv(1000)


def test_garbage_inside_tls(server: Meridian, certificates: Certificates) -> None:
    for payload in (
        b"\0" * 8,
        b"\xff" * 64,
        SSL_REQUEST,
        startup()[:-1],
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        with connected(server) as plain:
            plain.sendall(SSL_REQUEST)
            assert plain.recv(1) == b"S"
            with (
                contextlib.suppress(ssl.SSLError, ConnectionError),
                _context(certificates).wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                secure.sendall(payload)
                secure.recv(100)


def test_a_key_that_others_can_read_refuses_the_start(
    tmp_path: Path, certificates: Certificates
) -> None:
    key = tmp_path / "open.key"
    key.write_bytes(certificates.server_key.read_bytes())
    key.chmod(0o644)
    options = ["--set", f"ssl_cert_file={certificates.server}", "--set", f"ssl_key_file={key}"]
    with (
        pytest.raises(RuntimeError, match="group or world access"),
        meridian(tmp_path, [*LOCAL, *options]),
    ):
        pass


def _context(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates.authority))


def _all_of(plain: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionError):
        while data := plain.recv(65_536):
            found += data
    return found
