"""TLS between a socket and the wire protocol, without I/O: bytes in, bytes out.

    socket ─▶ receive ─▶ MemoryBIO ─▶ SSLObject ─▶ plaintext ─▶ pgwire.feed
    socket ◀─ outgoing ◀─ MemoryBIO ◀─ SSLObject ◀─ send ◀───── pgwire.data_to_send

`loop.start_tls` cannot be used: it loses what was read before it (uvloop issue 707), and a client
that begins with TLS at once has sent its first bytes by then.

INVARIANTS
  T1  one task of the loop owns the SSLObject: nothing here waits, and no thread sees it.
  T2  what was received before the handshake ended is never handed on as plaintext.
  T3  a failure of TLS closes the connection; no word of ours follows it in plaintext.
  T4  memory: the plaintext of what was received, and one piece of what is sent.
  T5  records without content, key updates above all, cost time: a client that sends nothing else
      for three records' length is ended.
"""

import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

ALPN: Final = "postgresql"
"""The protocol's registered name: who begins with TLS at once must offer it."""

ENCRYPTED_PIECE_BYTES: Final = 64 << 10
"""Plaintext encrypted at once. Larger: a longer stall of the loop (see `make bench`)."""

_READ_BYTES: Final = 64 << 10
_FED_BYTES: Final = 16 << 10
"""Given to OpenSSL at once, about a record."""
_EMPTY_BYTES_MAX: Final = 48 << 10


class TlsFailed(Exception):
    """The peer speaks no TLS that we accept; the reason is for the log only."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """What a server offers. `end_point`: of its certificate, for channel binding; None if its
    signature has no hash of its own.
    """

    context: ssl.SSLContext
    end_point: bytes | None


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """A connection's encryption, as pg_stat_ssl shows it. `client`: the certificate's DER."""

    version: str
    cipher: str
    bits: int
    client: bytes | None
    end_point: bytes | None
    """Of the server's certificate, as the client saw it."""


class TlsLayer:
    """See the module. `direct`: the client has begun with TLS, so it must have offered ALPN."""

    def __init__(self, tls: ServerTls, *, direct: bool) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._end_point = tls.end_point
        self._direct = direct
        self._is_open = False
        self._is_ended = False
        self._empty_bytes = 0

    @property
    def is_open(self) -> bool:
        """Whether the handshake has ended well."""
        return self._is_open

    @property
    def is_ended(self) -> bool:
        """Whether the client has said that it will send nothing more."""
        return self._is_ended

    def facts(self) -> TlsFacts:
        """See TlsFacts; only once the handshake has ended."""
        assert self._is_open, "nothing is known before"
        cipher = self._object.cipher()
        assert cipher is not None, "an open connection has one"
        name, _, bits = cipher
        client = self._object.getpeercert(binary_form=True)
        version = self._object.version() or ""
        return TlsFacts(version, name, bits, client, self._end_point)

    def receive(self, data: bytes) -> bytes:
        """The plaintext of what the socket has read; afterwards `outgoing` may have something.

        Raises TlsFailed.
        """
        return b"".join(
            self._received(data[at : at + _FED_BYTES]) for at in range(0, len(data), _FED_BYTES)
        )

    def _received(self, data: bytes) -> bytes:
        if self._is_ended:
            return b""  # T4: nobody would read it
        self._incoming.write(data)
        try:
            if not self._is_open:
                self._object.do_handshake()
                self._opened()
            plain = b"".join(self._plaintext())
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLError as error:
            raise TlsFailed(error.reason or str(error)) from error
        self._empty_bytes = 0 if plain else self._empty_bytes + len(data)
        if self._empty_bytes > _EMPTY_BYTES_MAX:
            raise TlsFailed("many records without content")  # T5
        return plain

    def _opened(self) -> None:
        if self._direct and self._object.selected_alpn_protocol() != ALPN:
            raise TlsFailed("direct TLS without the ALPN protocol of PostgreSQL")
        self._is_open = True

    def _plaintext(self) -> Iterator[bytes]:
        while True:
            try:
                piece = self._object.read(_READ_BYTES)
            except ssl.SSLWantReadError:
                return
            except ssl.SSLZeroReturnError:
                piece = b""
            if not piece:
                self._is_ended = True
                return
            yield piece
            if not self._incoming.pending and not self._object.pending():
                return  # what another read would say by an exception, which costs more

    def send(self, data: bytes | memoryview) -> Iterator[bytes]:
        """The encrypted pieces of an answer, in order (T4). Raises TlsFailed."""
        view = memoryview(data)
        for at in range(0, len(view), ENCRYPTED_PIECE_BYTES):
            try:
                self._object.write(view[at : at + ENCRYPTED_PIECE_BYTES])
            except ssl.SSLError as error:
                raise TlsFailed(error.reason or str(error)) from error
            yield self.outgoing()

    def outgoing(self) -> bytes:
        """What the handshake, or a key update, wants to be sent."""
        return self._outgoing.read()

    def end(self) -> bytes:
        """What tells the client that nothing more comes."""
        if self._is_open:
            with suppress(ssl.SSLError):
                self._object.unwrap()
        return self.outgoing()
