"""A SCRAM client made for lying: every part of its messages can be replaced."""

import base64
import hashlib
import hmac
from dataclasses import dataclass

PASSWORD = "secret"
CLIENT_NONCE = b"Y2xpZW50LW5vbmNlLTEyMw=="


def initial_response(
    message: bytes, mechanism: bytes = b"SCRAM-SHA-256", length: int | None = None
) -> bytes:
    """The payload of SASLInitialResponse; `length` if it is not the message's."""
    claimed = len(message) if length is None else length
    return mechanism + b"\0" + claimed.to_bytes(4, "big", signed=True) + message


def client_first(header: bytes = b"n,,", bare: bytes | None = None) -> bytes:
    """The client's first message; libpq's if nothing is given."""
    return header + (b"n=,r=" + CLIENT_NONCE if bare is None else bare)


@dataclass(frozen=True)
class ServerFirst:
    """What the server answered to the first message."""

    text: bytes
    first_bare: bytes = b"n=,r=" + CLIENT_NONCE

    def _part(self, name: bytes) -> bytes:
        return next(part[2:] for part in self.text.split(b",") if part[:2] == name + b"=")

    @property
    def nonce(self) -> bytes:
        """Both nonces."""
        return self._part(b"r")

    @property
    def salt(self) -> bytes:
        """Decoded."""
        return base64.b64decode(self._part(b"s"))

    @property
    def iterations(self) -> int:
        """What the client has to pay."""
        return int(self._part(b"i"))

    def without_proof(self, header: bytes, nonce: bytes | None = None, extra: bytes = b"") -> bytes:
        """What the proof signs of the last message."""
        channel = base64.b64encode(header)
        return b"c=" + channel + b",r=" + (nonce or self.nonce) + extra

    def proof(self, without_proof: bytes, password: str = PASSWORD) -> bytes:
        """The proof for such a message, in base64."""
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), self.salt, self.iterations)
        key = hmac.digest(salted, b"Client Key", "sha256")
        signed = b",".join((self.first_bare, self.text, without_proof))
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        return base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True)))

    def final(
        self,
        *,
        header: bytes = b"n,,",
        password: str = PASSWORD,
        nonce: bytes | None = None,
        extra: bytes = b"",
        proof: bytes | None = None,
        tail: bytes = b"",
    ) -> bytes:
        """The last message."""
        before = self.without_proof(header, nonce, extra)
        given = self.proof(before, password) if proof is None else proof
        return before + b",p=" + given + tail
