"""SCRAM-SHA-256 verifiers: what is stored for a password, and the check of a password against it.

    SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>          (RFC 5803, base64)

INVARIANTS
  V1  new verifiers have between 1,024 and 100,000 iterations. Stored ones, which came from
      elsewhere, have up to 10,000,000: in SCRAM the client pays for them.
  V2  a server that computes itself (the method `password`) does at most 100,000 iterations.
  V3  a mock verifier fits no password, and its salt depends on the name and the secret only (D3).

`stored_password`, `new_verifier` and `is_password_of` take milliseconds: run them in a thread.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from coordinator.authentication.saslprep import prepared_password
from sql.errors import SqlError, not_supported

ITERATIONS_DEFAULT: Final = 4096
ITERATIONS_MIN: Final = 1_024
ITERATIONS_MAX: Final = 100_000
STORED_ITERATIONS_MAX: Final = 10_000_000
SALT_BYTES: Final = 16
KEY_BYTES: Final = 32
MOCK_SECRET_BYTES: Final = 32

_FORM: Final = re.compile(
    r"SCRAM-SHA-256\$([0-9]{1,10}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)"
)

_MD5: Final = re.compile(r"md5[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """The parts of a verifier, decoded. `is_mock`: of nobody; no proof fits it (V3)."""

    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    is_mock: bool = False

    def __str__(self) -> str:
        """As it is stored."""
        salt, stored, server = (
            base64.b64encode(part).decode()
            for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


def parse_verifier(text: str) -> ScramVerifier | None:
    """The parts of a stored verifier; None if the text is none that we take (V1)."""
    verifier = _parsed(text)
    if verifier is None or not 1 <= verifier.iterations <= STORED_ITERATIONS_MAX:
        return None
    return verifier


def stored_password(password: str, *, iterations: int, salt: bytes) -> str:
    """What is stored for the password of CREATE ROLE: its verifier, or the verifier that it is.
    22023 for a verifier of more iterations than we take (V1): it is no password in plain text.
    """
    given = _parsed(password)
    if given is None and _MD5.fullmatch(password):
        raise not_supported("an MD5 password")
    if given is None or given.iterations < 1:
        return str(new_verifier(password, iterations=iterations, salt=salt))
    if given.iterations > STORED_ITERATIONS_MAX:
        raise SqlError(
            "22023",
            "SCRAM verifier has too many iterations",
            detail=f"It has {given.iterations}; at most {STORED_ITERATIONS_MAX} are allowed.",
        )
    return password


def new_verifier(password: str | bytes, *, iterations: int, salt: bytes) -> ScramVerifier:
    """The verifier of a password. `salt`: 16 random bytes. 22023 for iterations outside of V1."""
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        words = f'{iterations} is outside the valid range for parameter "scram_iterations"'
        raise SqlError("22023", f"{words} ({ITERATIONS_MIN} .. {ITERATIONS_MAX})")
    assert len(salt) == SALT_BYTES, "a salt has 16 bytes"
    salted = _salted(password, salt, iterations)
    stored_key = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    return ScramVerifier(iterations, salt, stored_key, _server_key(salted))


def mock_verifier(user: str, *, secret: bytes, iterations: int) -> ScramVerifier:
    """The verifier of a user who has none. `secret`: 32 bytes, always the same (V3)."""
    assert len(secret) == MOCK_SECRET_BYTES, "V3: the secret has 32 bytes"
    salt = hashlib.sha256(user.encode("utf-8", "surrogateescape") + secret).digest()[:SALT_BYTES]
    nothing = bytes(KEY_BYTES)
    return ScramVerifier(iterations, salt, nothing, nothing, is_mock=True)


def is_password_of(password: str | bytes, verifier: ScramVerifier) -> bool:
    """Whether the verifier was made of this password; never for a mock, and not beyond V2."""
    is_computed = verifier.iterations <= ITERATIONS_MAX
    # One that costs too much is refused in about the time of a mock.
    iterations = verifier.iterations if is_computed else ITERATIONS_DEFAULT
    computed = _server_key(_salted(password, verifier.salt, iterations))
    is_equal = hmac.compare_digest(computed, verifier.server_key)
    return is_equal and is_computed and not verifier.is_mock


def _parsed(text: str) -> ScramVerifier | None:
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    try:
        salt, stored, server = (base64.b64decode(found[i], validate=True) for i in (2, 3, 4))
    except (binascii.Error, ValueError):
        return None
    if len(stored) != KEY_BYTES or len(server) != KEY_BYTES:
        return None
    return ScramVerifier(int(found[1]), salt, stored, server)


def _salted(password: str | bytes, salt: bytes, iterations: int) -> bytes:
    raw = password.encode() if isinstance(password, str) else password
    return hashlib.pbkdf2_hmac("sha256", prepared_password(raw), salt, iterations)


def _server_key(salted: bytes) -> bytes:
    return hmac.digest(salted, b"Server Key", "sha256")
