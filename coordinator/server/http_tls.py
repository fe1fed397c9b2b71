"""TLS on the HTTP listener, for clients that begin with it; others speak plaintext on that port.

    socket ─▶ first byte ─┬─ of a handshake ─▶ TlsLayer ─▶ aiohttp's protocol
                          └─ of anything else ───────────▶

The certificate is the one of the port for SQL, as it was last loaded.

INVARIANTS
  E1  a failure of TLS closes the connection; no word of ours follows it in plaintext.
  E2  whoever bounds connections sees the socket from the first moment on, not after a handshake.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from coordinator.monitoring.page import TLS_FACTS
from coordinator.server.tls import ServerTls, TlsFailed, TlsLayer

log = logging.getLogger("meridian.http")

_TLS_HANDSHAKE: Final = 0x16
"""The first byte of a client that begins with TLS; no request begins so."""


class _Transport(asyncio.Transport):
    """The transport that the inner protocol sees; `layer` comes with the first byte."""

    def __init__(self, raw: asyncio.Transport) -> None:
        super().__init__()
        self.raw = raw
        self.layer: TlsLayer | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == TLS_FACTS:
            return self.layer.facts() if self.layer is not None and self.layer.is_open else None
        return self.raw.get_extra_info(name, default)

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        if self.layer is None:
            self.raw.write(data)
            return
        if not self.layer.is_open:
            return  # E1
        try:
            for piece in self.layer.send(bytes(data)):
                self.raw.write(piece)
        except TlsFailed as failure:
            log.info("TLS failed: %s", failure)
            self.raw.abort()

    def writelines(self, list_of_data: "Iterable[bytes | bytearray | memoryview[Any]]") -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if self.layer is not None and not self.raw.is_closing():
            self.raw.write(self.layer.end())
        self.raw.close()

    def abort(self) -> None:
        self.raw.abort()

    def is_closing(self) -> bool:
        return self.raw.is_closing()

    def can_write_eof(self) -> bool:
        return False

    def is_reading(self) -> bool:
        return self.raw.is_reading()

    def pause_reading(self) -> None:
        self.raw.pause_reading()

    def resume_reading(self) -> None:
        self.raw.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self.raw.get_write_buffer_size()


class PlainOrTls(asyncio.Protocol):
    """See the module. `inner`: speaks HTTP; `offer`: what new connections may have."""

    def __init__(self, inner: asyncio.Protocol, offer: Callable[[], ServerTls | None]) -> None:
        self._inner = inner
        self._offer = offer
        self._transport: _Transport | None = None
        self._is_new = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected (E2)."""
        # uvloop's transports are no subclass of asyncio's, only their equals.
        self._transport = _Transport(cast(asyncio.Transport, transport))
        self._inner.connection_made(self._transport)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        transport = self._transport
        assert transport is not None, "bytes come from a connection"
        if self._is_new:
            self._is_new = False
            offer = self._offer() if data[0] == _TLS_HANDSHAKE else None
            if offer is not None:
                transport.layer = TlsLayer(offer, direct=False)
        layer = transport.layer
        if layer is None:
            self._inner.data_received(data)
            return
        try:
            plain = layer.receive(data)
        except TlsFailed as failure:
            log.info("TLS failed: %s", failure)
            transport.raw.write(layer.outgoing())
            transport.raw.close()
            return
        transport.raw.write(layer.outgoing())
        if plain:
            self._inner.data_received(plain)
        if layer.is_ended:
            transport.close()

    def eof_received(self) -> bool | None:
        """The client sends nothing more."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._inner.resume_writing()
