"""The log-ins that are recorded from PostgreSQL and played on our server: honest ones and others.

A case is the payloads of the password messages in order. A payload may depend on what the server
answered to the one before: then it is a function of that.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tests.unit.authentication.scram_client import (
    CLIENT_NONCE,
    ServerFirst,
    client_first,
    initial_response,
)

Payload: TypeAlias = bytes | Callable[[ServerFirst], bytes]
PLUS = b"SCRAM-SHA-256-PLUS"
END_POINT = b"p=tls-server-end-point,,"
ZERO_PROOF = b"A" * 43 + b"="
BIG_ITERATIONS = 10_000_000


@dataclass(frozen=True)
class ScramCase:
    """One log-in. `is_tls`: with TLS; the payloads then know the certificate's hash."""

    name: str
    payloads: tuple[Payload, ...]
    user: str = "alice"
    is_tls: bool = False


def _first(message: bytes) -> ScramCase:
    return ScramCase("", (initial_response(message),))


def _bare(bare: bytes) -> tuple[Payload, ...]:
    return (
        initial_response(client_first(bare=bare)),
        lambda server: ServerFirst(server.text, bare).final(),
    )


def _last(make: Callable[[ServerFirst], bytes]) -> tuple[Payload, ...]:
    return initial_response(client_first()), make


def _raw(without_proof: Callable[[ServerFirst], bytes]) -> tuple[Payload, ...]:
    """A last message that is signed as it stands."""
    return _last(lambda server: (b := without_proof(server)) + b",p=" + server.proof(b))


OLD_FINAL = (
    b"c=biws,r=Y2xpZW50LW5vbmNlLTEyMw==R2Tn5UZyFFtvPR7sSlVVgsYr,"
    b"p=v0X8v3Bz2T0CwJGQJyX0F7R5uvaxtdE+epAapcyDKo0="
)
"""Of another log-in."""

_RIGHT = _last(lambda server: server.final())
_NONSENSE = _last(lambda server: server.final(proof=ZERO_PROOF))

# What the first message may be, with what the last one is then.
_FIRST_BARE = {
    "with a name and extensions": b"n=bob,r=" + CLIENT_NONCE + b",x=1,y=",
    "an escaped name": b"n=a=2Cb=3Dc,r=" + CLIENT_NONCE,
    "bad UTF-8 in the name": b"n=\xff\xfe,r=" + CLIENT_NONCE,
    "bad UTF-8 in the nonce": b"n=,r=\xff\xfeabc",
    "a blank in the nonce": b"n=,r=abc def",
    "an empty nonce": b"n=,r=",
    "a mandatory extension": b"m=1,n=,r=" + CLIENT_NONCE,
    "no name": b"r=" + CLIENT_NONCE,
    "no nonce": b"n=",
    "nothing": b"",
    "a name without =": b"n,r=" + CLIENT_NONCE,
    "a digit as attribute": b"n=,r=" + CLIENT_NONCE + b",1=2",
    "an attribute without =": b"n=,r=" + CLIENT_NONCE + b",a",
    "a comma at the end": b"n=,r=" + CLIENT_NONCE + b",",
    "two commas": b"n=,r=" + CLIENT_NONCE + b",,x=1",
    "NUL in the name": b"n=\0,r=" + CLIENT_NONCE,
    "the longest": b"n=" + b"x" * (1020 - 18 - 8 - CLIENT_NONCE.__len__()) + b",r=" + CLIENT_NONCE,
    "one too long": b"n=" + b"x" * (1021 - 18 - 8 - CLIENT_NONCE.__len__()) + b",r=" + CLIENT_NONCE,
}
_FIRST = {
    "flag x": b"x,,n=,r=abc",
    "a flag that is not printable": b"\x80,,n=,r=abc",
    "n without a comma": b"nx,n=,r=abc",
    "n and nothing else": b"n",
    "y without a comma": b"y;,n=,r=abc",
    "an authorization identity": b"n,a=bob,n=,r=abc",
    "an unexpected attribute": b"n,b=bob,n=,r=abc",
    "binding without -PLUS": END_POINT + b"n=,r=abc",
    "empty": b"",
}
_INITIAL = {
    "an unknown mechanism": initial_response(client_first(), b"PLAIN"),
    "a mechanism in lower case": initial_response(client_first(), b"scram-sha-256"),
    "-PLUS without TLS": initial_response(client_first(END_POINT), PLUS),
    "an unknown mechanism and nothing else": b"SCRAM\0",
    "no mechanism": b"",
    "a mechanism without end": b"SCRAM-SHA-256",
    "no length": b"SCRAM-SHA-256\0",
    "half a length": b"SCRAM-SHA-256\0\0\0",
    "a negative length": initial_response(client_first(), length=-2),
    "the most negative length": initial_response(client_first(), length=-(1 << 31)),
    "too great a length": initial_response(client_first(), length=1 << 30),
    "bytes behind the message": initial_response(client_first(), length=5),
    "bytes behind no message": initial_response(client_first(), length=-1),
}
_LAST: dict[str, Callable[[ServerFirst], bytes]] = {
    "a wrong password": lambda server: server.final(password="wrong"),
    "another nonce": lambda server: server.final(nonce=server.nonce[:-4] + b"AAA="),
    "a nonce too short": lambda server: server.final(nonce=server.nonce[:-1]),
    "a nonce too long": lambda server: server.final(nonce=server.nonce + b"A"),
    "the client's nonce alone": lambda server: server.final(nonce=CLIENT_NONCE),
    "no base64 in the proof": lambda server: server.final(proof=b"?" * 44),
    "a blank in the proof": lambda server: server.final(proof=b" " + server.final()[-44:]),
    "a proof without padding": lambda server: server.final(proof=b"A" * 43),
    "a short proof": lambda server: server.final(proof=b"AAAA"),
    "an empty proof": lambda server: server.final(proof=b""),
    "a long proof": lambda server: server.final(proof=b"A" * 64),
    "a proof of 64 kB": lambda server: server.final(proof=b"A" * 65536),
    "an old last message": lambda _: OLD_FINAL,
    "garbage behind the proof": lambda server: server.final(tail=b",x=1"),
    "a comma behind the proof": lambda server: server.final(tail=b","),
    "two proofs": lambda server: server.final(tail=b",p=" + ZERO_PROOF),
    "no proof": lambda server: server.without_proof(b"n,,"),
    "no proof but a comma": lambda server: server.without_proof(b"n,,") + b",",
    "no nonce in the last message": lambda server: b"c=biws,p=" + ZERO_PROOF,
    "no binding in the last message": lambda server: b"r=" + server.nonce + b",p=" + ZERO_PROOF,
    "the flag changed to y": lambda server: server.final(header=b"y,,"),
    "binding in the last message": lambda server: server.final(header=END_POINT + b"x" * 32),
    "an empty last message": lambda _: b"",
    "NUL in the last message": lambda server: server.final(tail=b"\0"),
    "bad UTF-8 in the last message": lambda server: server.final(extra=b",\xff=1"),
    "bad UTF-8 in the proof": lambda server: server.final(proof=b"\xff" * 44),
    "the first message again": lambda _: client_first(),
}


def plain_cases() -> Iterator[ScramCase]:
    """Without TLS."""
    yield ScramCase("right", _RIGHT)
    for user in ("nobody", "unset", "expired", "longer"):
        yield ScramCase(f"right, as {user}", _RIGHT, user)
    yield ScramCase("nonsense for ten million iterations", _NONSENSE, "costly")
    yield ScramCase("nonsense for an unknown user", _NONSENSE, "nobody")
    yield ScramCase("zeros for an unknown user", _last(lambda _: OLD_FINAL), "nobody")
    extended = _raw(lambda server: server.without_proof(b"n,,", extra=b",x=1,y="))
    yield ScramCase("extensions in the last message", extended)
    for name, bare in _FIRST_BARE.items():
        yield ScramCase(f"first: {name}", _bare(bare))
    for name, first in _FIRST.items():
        yield ScramCase(f"first: {name}", (initial_response(first),))
    for name, payload in _INITIAL.items():
        yield ScramCase(f"initial: {name}", (payload,))
    for name, last in _LAST.items():
        yield ScramCase(f"last: {name}", _last(last))
    late = (initial_response(b"", length=-1), client_first(), lambda server: server.final())
    yield ScramCase("the first message by itself", late)
    yield ScramCase("the first message by itself, empty", (*late[:1], b""))
    first = initial_response(client_first(b"y,,"))
    yield ScramCase("y without TLS", (first, lambda server: server.final(header=b"y,,")))
    yield ScramCase("y, then n", (first, lambda server: server.final()))


def tls_cases(certificate_hash: bytes) -> Iterator[ScramCase]:
    """With TLS, for a server that has this certificate."""

    def case(name: str, mechanism: bytes, first: bytes, last: bytes) -> ScramCase:
        payload = initial_response(client_first(first), mechanism)
        payloads = (payload, lambda server: server.final(header=last))
        return ScramCase(f"tls: {name}", payloads, is_tls=True)

    plain = b"SCRAM-SHA-256"
    other = hashlib.sha256(certificate_hash).digest()
    yield case("bound", PLUS, END_POINT, END_POINT + certificate_hash)
    yield case("bound to another certificate", PLUS, END_POINT, END_POINT + other)
    yield case("bound to nothing", PLUS, END_POINT, END_POINT)
    yield case("bound, then not", PLUS, END_POINT, b"n,,")
    yield case("not bound", plain, b"n,,", b"n,,")
    yield case("not bound, then bound", plain, b"n,,", END_POINT + certificate_hash)
    yield case("y although -PLUS was offered", plain, b"y,,", b"y,,")
    yield case("-PLUS with n", PLUS, b"n,,", b"n,,")
    yield case("-PLUS with y", PLUS, b"y,,", b"y,,")
    yield case("-PLUS with tls-unique", PLUS, b"p=tls-unique,,", b"p=tls-unique,,")
    yield case("-PLUS with a strange type", PLUS, b"p=" + b"\xffx" * 20 + b",,", b"n,,")
    yield case("-PLUS without a type", PLUS, b"p,,", b"n,,")
    yield case("-PLUS with an identity", PLUS, END_POINT[:-1] + b"a=bob,", b"n,,")
    yield case("plain with binding", plain, END_POINT, END_POINT + certificate_hash)
