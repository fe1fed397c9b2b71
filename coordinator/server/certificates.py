"""Read certificate, key, authorities and revocations into a TLS context.

INVARIANTS
  F1  the key is ours, or root's and readable by our group at most; else there is no context.
  F2  a broken file gives an error that names it, and no context: who has one keeps it.
"""

import os
import ssl
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coordinator.authentication.channel_binding import server_end_point
from coordinator.config import Settings, SettingsError
from coordinator.pgcatalog.activity import ObservedEncryption
from coordinator.server.tls import ALPN, ServerTls, TlsFacts

if TYPE_CHECKING:
    # It takes long to import, and a server without certificates does without (E3 of `main.py`).
    from cryptography import x509

_SERIAL_MAX: Final = 10**38
"""What `numeric` holds."""

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def load_tls(settings: Settings) -> ServerTls | None:
    """What the settings say; None without a certificate. Raises SettingsError (F1, F2)."""
    if not settings.ssl_cert_file:
        return None
    certificate = Path(settings.ssl_cert_file)
    key = Path(settings.ssl_key_file)
    _check_key(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.ssl_min_protocol_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    # No tickets, as in PostgreSQL. TLS 1.2 may resume by session id: its certificate was verified.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols([ALPN])
    try:
        # Without the function OpenSSL would ask the terminal.
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"cannot load the certificate {certificate} with the key {key}: {_reason(error)}"
        ) from error
    if settings.ssl_ca_file:
        _load_authorities(context, settings)
    return ServerTls(context, _end_point(certificate))


def _no_passphrase() -> str:
    raise SettingsError("the key of ssl_key_file has a passphrase, which nobody could enter")


def _load_authorities(context: ssl.SSLContext, settings: Settings) -> None:
    """Whom client certificates must come from. One is asked of everybody, and of some demanded."""
    # Optional: `hba_file` says who needs one. One that is shown must be good.
    context.verify_mode = ssl.CERT_OPTIONAL
    for name, path in (
        ("ssl_ca_file", settings.ssl_ca_file),
        ("ssl_crl_file", settings.ssl_crl_file),
    ):
        if not path:
            continue
        try:
            context.load_verify_locations(path)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"cannot load {name} {path}: {_reason(error)}") from error
    if settings.ssl_crl_file:
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN


def _check_key(path: Path) -> None:
    """Raise SettingsError unless the key is nobody else's (F1)."""
    try:
        found = path.stat()
    except OSError as error:
        raise SettingsError(f"cannot read the key {path}: {_reason(error)}") from error
    if not stat.S_ISREG(found.st_mode):
        raise SettingsError(f"the key {path} is not a regular file")
    mine, forbidden = os.geteuid(), stat.S_IRWXG | stat.S_IRWXO
    if found.st_uid not in (mine, 0):
        raise SettingsError(f"the key {path} must be owned by the server's user or by root")
    if found.st_uid == 0 and mine != 0:
        forbidden = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
    if found.st_mode & forbidden:
        raise SettingsError(
            f"the key {path} has group or world access; it must have permissions u=rw (0600) or"
            " less if the server's user owns it, or u=rw,g=r (0640) or less if root does"
        )


def _end_point(path: Path) -> bytes | None:
    """tls-server-end-point of the first certificate of a file. Raises SettingsError (F2)."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        found = x509.load_pem_x509_certificates(path.read_bytes())
        return server_end_point(found[0].public_bytes(Encoding.DER))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SettingsError(f"cannot read the certificate {path}: {error}") from error


def client_names(certificate: bytes) -> tuple[str | None, str]:
    """The common name of a client's certificate, None without one, and its distinguished name
    (RFC 4514). A common name with a NUL in it names nobody.
    """
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.load_der_x509_certificate(certificate).subject
    common = [str(one.value) for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    name = common[0] if common and "\0" not in common[0] else None
    return name, subject.rfc4514_string()


def observed_encryption(tls: TlsFacts | None) -> ObservedEncryption | None:
    """What pg_stat_ssl shows of a connection."""
    if tls is None:
        return None
    if tls.client is None:
        return ObservedEncryption(tls.version, tls.cipher, tls.bits)
    from cryptography import x509

    client = x509.load_der_x509_certificate(tls.client)
    serial = client.serial_number if client.serial_number < _SERIAL_MAX else None
    subject, issuer = _one_line(client.subject), _one_line(client.issuer)
    return ObservedEncryption(tls.version, tls.cipher, tls.bits, subject, serial, issuer)


def _one_line(name: "x509.Name") -> str:
    return "".join(f"/{one.rfc4514_attribute_name}={one.value!s}" for one in name)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return (error.strerror or str(error)).lower()
