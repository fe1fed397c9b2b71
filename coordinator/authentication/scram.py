"""The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677), without I/O.

    AuthenticationSASL(offered_mechanisms)
        ◀── SASLInitialResponse   mechanism, gs2 header, n=,r=<client nonce>
    AuthenticationSASLContinue    r=<both nonces>,s=<salt>,i=<iterations>
        ◀── SASLResponse          c=<gs2 header, certificate's hash>,r=<both nonces>,p=<proof>
    AuthenticationSASLFinal       v=<signature>          then AuthenticationOk

`receive` takes the payload of each password message, and gives what to send, or raises the SqlError
that ends the connection.

INVARIANTS
  M1  order of the checks, texts and SQLSTATEs are those of PostgreSQL's auth-scram.c.
  M2  the proof is computed and compared for a mock verifier, too, and fails only then (D3).
  M3  the nonce in the last message is the one of this exchange: an old message is worth nothing.
  M4  a client that believes that we have no channel binding, when we offered it, has been lied to.
  M5  after an error, or after the last message, nothing is received.

The user's name in the messages is ignored: the one of the start-up packet counts. libpq sends an
empty one.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from coordinator.authentication.verifier import KEY_BYTES, ScramVerifier
from sql.errors import SqlError

NONCE_BYTES: Final = 18
SASL_PAYLOAD_BYTES_MAX: Final = 1020
"""Of a password message without its length field. PostgreSQL's limit; libpq sends below 200."""

_PLAIN: Final = "SCRAM-SHA-256"
_PLUS: Final = "SCRAM-SHA-256-PLUS"
_BINDING_HEADER: Final = b"p=tls-server-end-point,,"


@dataclass(frozen=True, slots=True)
class ScramReply:
    """Payload of AuthenticationSASLContinue, or, `is_final`, of AuthenticationSASLFinal: the client
    has proved that it knows the password.
    """

    data: bytes
    is_final: bool = False


class _Step(Enum):
    INITIAL = auto()
    FIRST = auto()
    LAST = auto()
    OVER = auto()


def offered_mechanisms(certificate_hash: bytes | None) -> tuple[str, ...]:
    """The names for AuthenticationSASL, the best one first. Without TLS there is no hash."""
    return (_PLAIN,) if certificate_hash is None else (_PLUS, _PLAIN)


class ScramExchange:
    """One log-in. `verifier`: of the user, or a mock. `nonce`: 18 random bytes.
    `certificate_hash`: of our certificate, for tls-server-end-point; None without TLS.
    """

    def __init__(
        self, user: str, verifier: ScramVerifier, *, nonce: bytes, certificate_hash: bytes | None
    ) -> None:
        assert len(nonce) == NONCE_BYTES, "a nonce has 18 bytes"
        self._user = user
        self._verifier = verifier
        self._server_nonce = base64.b64encode(nonce)
        self._certificate_hash = certificate_hash
        self._step = _Step.INITIAL
        self._is_bound = False
        self._binding_flag = b""
        self._nonce = b""
        self._first_bare = b""
        self._server_first = b""

    @property
    def is_over(self) -> bool:
        """Nothing more is received (M5)."""
        return self._step is _Step.OVER

    def receive(self, payload: bytes) -> ScramReply:
        """Take the payload of one password message; what to answer. Raises SqlError: 08P01 for what
        is malformed, 28P01 for a wrong password and all that looks like one.
        """
        assert not self.is_over, "M5: the exchange is over"
        step, self._step = self._step, _Step.OVER
        if len(payload) > SASL_PAYLOAD_BYTES_MAX:
            raise self._failed()
        message: bytes | None = payload
        if step is _Step.INITIAL:
            message = self._initial(payload)
        if message is None:
            self._step = _Step.FIRST
            return ScramReply(b"")
        _check_text(message)
        if step is not _Step.LAST:
            reply = ScramReply(self._first(message))
            self._step = _Step.LAST
            return reply
        return ScramReply(self._last(message), is_final=True)

    def _failed(self) -> SqlError:
        return SqlError("28P01", f'password authentication failed for user "{self._user}"')

    def _initial(self, payload: bytes) -> bytes | None:
        """Note the mechanism; the client's first message, None if it comes by itself."""
        mechanism, end, rest = payload.partition(b"\0")
        if not end:
            raise SqlError("08P01", "invalid string in message")
        if mechanism.decode("latin-1") not in offered_mechanisms(self._certificate_hash):
            raise SqlError("08P01", "client selected an invalid SASL authentication mechanism")
        self._is_bound = mechanism == _PLUS.encode()
        length = int.from_bytes(rest[:4], "big", signed=True)
        message = rest[4:]
        if len(rest) < 4 or length < -1 or length > len(message):
            raise SqlError("08P01", "insufficient data left in message")
        if len(message) > max(length, 0):
            raise SqlError("08P01", "invalid message format")
        return None if length == -1 else message

    # ------------------------------------------------------------ the client's first message

    def _first(self, message: bytes) -> bytes:
        reader = _Attributes(message)
        self._binding_flag = message[:1]
        self._read_binding(reader)
        if reader.peek() == b"a":
            words = "client uses authorization identity, but it is not supported"
            raise SqlError("0A000", words)
        if reader.peek() != b",":
            found = f'Unexpected attribute "{_shown(reader.peek())}" in client-first-message.'
            raise _malformed(found)
        reader.skip()
        self._first_bare = reader.rest
        if reader.peek() == b"m":
            raise SqlError("0A000", "client requires an unsupported SCRAM extension")
        reader.value(b"n")
        client_nonce = reader.value(b"r")
        if not all(0x21 <= byte <= 0x7E for byte in client_nonce):
            raise SqlError("08P01", "non-printable characters in SCRAM nonce")
        while reader.rest:
            reader.any()
        self._nonce = client_nonce + self._server_nonce
        salt = base64.b64encode(self._verifier.salt)
        self._server_first = b"r=%b,s=%b,i=%d" % (self._nonce, salt, self._verifier.iterations)
        return self._server_first

    def _read_binding(self, reader: "_Attributes") -> None:
        """The first field of the gs2 header."""
        match reader.peek():
            case b"n" | b"y" if self._is_bound:
                raise _malformed(
                    f"The client selected {_PLUS}, but the SCRAM message does not include channel "
                    "binding data."
                )
            case b"y" if self._certificate_hash is not None:  # M4
                raise SqlError(
                    "28000",
                    "SCRAM channel binding negotiation error",
                    detail="The client supports SCRAM channel binding but thinks the server does "
                    "not.  However, this server does support channel binding.",
                )
            case b"n" | b"y":
                reader.skip()
                if reader.peek() != b",":
                    found = f'Comma expected, but found character "{_shown(reader.peek())}".'
                    raise _malformed(found)
                reader.skip()
            case b"p" if not self._is_bound:
                raise _malformed(
                    f"The client selected {_PLAIN} without channel binding, but the SCRAM message "
                    "includes channel binding data."
                )
            case b"p":
                kind = reader.value(b"p")
                if kind != b"tls-server-end-point":
                    words = f'unsupported SCRAM channel-binding type "{_shown_text(kind)}"'
                    raise SqlError("08P01", words)
            case other:
                raise _malformed(f'Unexpected channel-binding flag "{_shown(other)}".')

    # ------------------------------------------------------------ the client's last message

    def _last(self, message: bytes) -> bytes:
        reader = _Attributes(message)
        self._check_binding(reader.value(b"c"))
        nonce = reader.value(b"r")
        while True:
            # The proof signs all that stands before the comma in front of it.
            before = message[: len(message) - len(reader.rest) - 1]
            name, value = reader.any()
            if name == b"p":
                break
        proof = _decoded_proof(value)
        if reader.rest:
            raise _malformed("Garbage found at the end of client-final-message.")
        if not hmac.compare_digest(nonce, self._nonce):  # M3
            raise SqlError("08P01", "invalid SCRAM response", detail="Nonce does not match.")
        signed = b",".join((self._first_bare, self._server_first, before))
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.sha256(client_key).digest()
        is_proved = hmac.compare_digest(stored_key, self._verifier.stored_key)
        if not is_proved or self._verifier.is_mock:  # M2
            raise self._failed()
        return b"v=" + base64.b64encode(hmac.digest(self._verifier.server_key, signed, "sha256"))

    def _check_binding(self, sent: bytes) -> None:
        if self._is_bound:
            assert self._certificate_hash is not None, "-PLUS is offered with a hash only"
            expected = base64.b64encode(_BINDING_HEADER + self._certificate_hash)
            if not hmac.compare_digest(sent, expected):
                raise SqlError("28000", "SCRAM channel binding check failed")
        elif sent != base64.b64encode(self._binding_flag + b",,"):
            words = "unexpected SCRAM channel-binding attribute in client-final-message"
            raise SqlError("08P01", words)


class _Attributes:
    """Reads `a=value,b=value` from the left."""

    def __init__(self, text: bytes) -> None:
        self.rest = text

    def peek(self) -> bytes:
        """The next byte; empty at the end."""
        return self.rest[:1]

    def skip(self) -> None:
        """Go past the next byte."""
        self.rest = self.rest[1:]

    def value(self, name: bytes) -> bytes:
        """The value of the next attribute, which must have this name."""
        if self.peek() != name:
            words = f'Expected attribute "{name.decode()}" but found "{_shown(self.peek())}".'
            raise _malformed(words)
        return self._value(name)

    def any(self) -> tuple[bytes, bytes]:
        """The next attribute, whatever its name."""
        name = self.peek()
        if not name:
            raise _malformed("Attribute expected, but found end of string.")
        if not name.isalpha():
            words = f'Attribute expected, but found invalid character "{_shown(name)}".'
            raise _malformed(words)
        return name, self._value(name)

    def _value(self, name: bytes) -> bytes:
        self.skip()
        if self.peek() != b"=":
            raise _malformed(f'Expected character "=" for attribute "{name.decode()}".')
        value, _, self.rest = self.rest[1:].partition(b",")
        return value


def _check_text(message: bytes) -> None:
    if not message:
        raise _malformed("The message is empty.")
    if b"\0" in message:
        raise _malformed("Message length does not match input length.")


def _decoded_proof(value: bytes) -> bytes:
    try:
        proof = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        proof = b""
    if len(proof) != KEY_BYTES:
        raise _malformed("Malformed proof in client-final-message.")
    return proof


def _malformed(detail: str) -> SqlError:
    return SqlError("08P01", "malformed SCRAM message", detail=detail)


def _shown(byte: bytes) -> str:
    """One byte as PostgreSQL shows it; the end of the text is a NUL there."""
    code = byte[0] if byte else 0
    return f"'{chr(code)}'" if 0x21 <= code <= 0x7E else f"0x{code:02x}"


def _shown_text(text: bytes) -> str:
    return "".join(chr(code) if 0x21 <= code <= 0x7E else "?" for code in text[:30])
