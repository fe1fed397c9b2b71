"""Self-signed certificates for tests."""

import datetime
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from coordinator.authentication.channel_binding import server_end_point

HASHES = {
    "sha224": hashes.SHA224(),
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
    "sha3-256": hashes.SHA3_256(),
}


@dataclass(frozen=True)
class SelfSigned:
    """A certificate and its key."""

    der: bytes
    pem: bytes
    key_pem: bytes

    @property
    def hash(self) -> bytes:
        """For tls-server-end-point."""
        found = server_end_point(self.der)
        assert found is not None, "the signature has a hash"
        return found


def self_signed(algorithm: str, kind: str = "rsa") -> SelfSigned:
    """A certificate whose signature has this hash. `kind`: of the key, rsa, ec or ed25519."""
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
    match kind:
        case "rsa":
            key = rsa.generate_private_key(65537, 2048)
        case "ec":
            key = ec.generate_private_key(ec.SECP256R1())
        case _:
            key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .sign(key, None if kind == "ed25519" else HASHES[algorithm])
    )
    return SelfSigned(
        made.public_bytes(serialization.Encoding.DER),
        made.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
