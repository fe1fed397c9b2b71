"""Certificates over a server's life: revoked ones, new ones, whole names; cancelling under TLS."""

import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from storage.clock import SystemClock
from tests.security.doors.conftest import (
    LOCAL,
    PASSWORD,
    Certificates,
    dsn_of,
    refusal,
    value,
    write_pair,
)
from tests.support.servers import meridian


def revocations(authority: trustme.CA, certificate: Path) -> bytes:
    """A list of the authority that has one certificate in it, in PEM."""
    key = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject
    revoked = x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number
    now = datetime.fromtimestamp(SystemClock().now() / 1_000_000, UTC)
    entry = x509.RevokedCertificateBuilder().serial_number(revoked).revocation_date(now).build()
    made = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer)
        .last_update(now - timedelta(days=1))
        .next_update(now + timedelta(days=1))
        .add_revoked_certificate(entry)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    server_pair = write_pair(authority.issue_cert("127.0.0.1"), tmp_path, "server")
    pairs = {
        name: write_pair(authority.issue_cert(common_name="meridian"), tmp_path, name)
        for name in ("good", "bad")
    }
    (tmp_path / "revoked").write_bytes(revocations(authority, pairs["bad"][0]))
    (tmp_path / "hba").write_text("hostssl all all all cert\n")
    named = {
        "ssl_cert_file": server_pair[0],
        "ssl_key_file": server_pair[1],
        "ssl_ca_file": tmp_path / "ca.crt",
        "ssl_crl_file": tmp_path / "revoked",
        "hba_file": tmp_path / "hba",
    }
    options = [part for name, path in named.items() for part in ("--set", f"{name}={path}")]
    with meridian(tmp_path, [*LOCAL, *options]) as server:
        shown = {
            name: {"sslmode": "require", "sslcert": str(pair[0]), "sslkey": str(pair[1])}
            for name, pair in pairs.items()
        }
        assert value(server, "select current_user", **shown["good"]) == "meridian"
        assert "revoked" in refusal(server, **shown["bad"])


def test_new_certificates_are_for_new_connections(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    roots = {}
    for name, authority in (("old", old), ("new", new)):
        roots[name] = str(tmp_path / f"{name}.ca")
        authority.cert_pem.write_to_path(roots[name])
    certificate, key = write_pair(old.issue_cert("127.0.0.1"), tmp_path, "server")
    options = [*LOCAL, "--set", f"ssl_cert_file={certificate}", "--set", f"ssl_key_file={key}"]
    trusting = {name: {"sslmode": "verify-full", "sslrootcert": roots[name]} for name in roots}
    with meridian(tmp_path, options) as server:
        with psycopg.connect(dsn_of(server, **trusting["old"])) as before:
            write_pair(new.issue_cert("127.0.0.1"), tmp_path, "server")
            assert before.execute("select pg_reload_conf()").fetchall() == [(True,)]
            assert value(server, "select 1", **trusting["new"]) == 1
            assert "certificate verify failed" in refusal(server, **trusting["old"])
            certificate.write_text("nonsense")
            before.execute("select pg_reload_conf()")
            assert "access is not reloaded: cannot load the certificate" in server.log
            assert before.execute("select 1").fetchall() == [(1,)]
        assert value(server, "select 1", **trusting["new"]) == 1


def test_the_whole_name_of_a_certificate(tmp_path: Path, certificates: Certificates) -> None:
    subject = x509.load_pem_x509_certificate(certificates.client.read_bytes()).subject
    (tmp_path / "hba").write_text("hostssl all all all cert clientname=DN map=whole\n")
    (tmp_path / "ident").write_text(f'whole "{subject.rfc4514_string()}" meridian\n')
    named = {"hba_file": tmp_path / "hba", "ident_file": tmp_path / "ident"}
    options = [part for name, path in named.items() for part in ("--set", f"{name}={path}")]
    mine = {"sslcert": str(certificates.client), "sslkey": str(certificates.client_key)}
    with meridian(tmp_path, [*LOCAL, *certificates.options, *options]) as server:
        assert value(server, "select current_user", sslmode="require", **mine) == "meridian"
        (tmp_path / "ident").write_text("whole meridian meridian\n")
        server.signal(signal.SIGHUP)
        deadline = time.monotonic() + 30
        while "access is reloaded" not in server.log and time.monotonic() < deadline:
            time.sleep(0.05)
        assert refusal(server, sslmode="require", **mine) == (
            'certificate authentication failed for user "meridian"'
        )


@pytest.mark.parametrize("negotiation", ["postgres", "direct"])
def test_a_statement_is_cancelled_under_tls(
    tmp_path: Path, certificates: Certificates, negotiation: str
) -> None:
    (tmp_path / "hba").write_text("hostssl all all all scram-sha-256\n")
    options = [*LOCAL, *certificates.options, "--set", f"hba_file={tmp_path / 'hba'}"]
    how = {"sslmode": "require", "sslnegotiation": negotiation, "password": PASSWORD}
    with (
        meridian(tmp_path, options, {"MERIDIAN_PASSWORD": PASSWORD}) as server,
        psycopg.connect(dsn_of(server, **how), autocommit=True) as connection,
    ):
        timer = threading.Timer(0.3, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(60)")
        timer.join()
        assert connection.execute("select 1").fetchall() == [(1,)]


def test_the_method_password_over_tls(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "hba").write_text("hostssl all all all password\n")
    options = [*LOCAL, *certificates.options, "--set", f"hba_file={tmp_path / 'hba'}"]
    with meridian(tmp_path, options, {"MERIDIAN_PASSWORD": PASSWORD}) as server:
        how = {"sslmode": "require"}
        right = dsn_of(server, password=PASSWORD, require_auth="password", **how)
        with psycopg.connect(right) as connection:
            assert connection.execute("select current_user").fetchall() == [("meridian",)]
            connection.execute("create role ann login password 'hers'")
            connection.execute(
                "create role old superuser login password 'x' valid until '2020-01-01'"
            )
        for user, password in (("meridian", "wrong"), ("nobody", "x"), ("ann", "x"), ("old", "x")):
            told = refusal(server, user=user, password=password, **how)
            assert told == f'password authentication failed for user "{user}"'
        # A right password of a role that privileges would have to bound (A3 of `login.py`).
        assert "it is not a superuser" in refusal(server, user="ann", password="hers", **how)
        assert "no encryption" in refusal(server, password=PASSWORD, sslmode="disable")
