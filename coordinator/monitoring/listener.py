"""The HTTP listener: one request a connection, answered on the server's own loop.

    socket ─▶ TLS or not ─▶ aiohttp's parser, bounded ─▶ rules ─▶ word, metrics, page ─▶ close

INVARIANTS
  W1  a connection lives CONNECTION_S at most, however slowly it sends or reads, and CONNECTIONS_MAX
      of them are there at once: for one more the oldest goes. So nobody keeps probes out for long.
  W2  a header is read up to HEADER_BYTES_MAX and HEADERS_MAX; a body is read for the page
      only, which has a limit of its own.
  W3  one scrape at a time: what it reads on the loop is read once it is its turn, and the text is
      made in a thread of its own.
  W4  what is no request is refused in one word, and is not logged: it may hold a token, and its
      sender must not fill the log. Failures of the server's own are logged.
  W5  health is told to everybody, and tells no more than a word; metrics follow `HttpRules`.

Not here: TLS, which a client may begin with (`server/http_tls.py`), and the page (`page.py`).
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from coordinator.monitoring.http_requests import HttpRules
from coordinator.monitoring.metrics import rendered_metrics
from coordinator.monitoring.observation import ServerObserver
from coordinator.monitoring.page import Page
from storage.threads import Threads

log = logging.getLogger("meridian.http")

CONNECTIONS_MAX: Final = 64
"""Larger: more descriptors for who connects and says nothing. Smaller: scrapers are cut off."""
CONNECTION_S: Final = 10.0
"""Larger: who says nothing stays longer. Smaller: scrapes of a busy machine are cut off."""
HEADER_BYTES_MAX: Final = 4096
"""Of one line of a request, the first one too."""
HEADERS_MAX: Final = 32
_STOP_S: Final = 1.0
"""Time for answers at the end. Larger: a later exit."""

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Server": "meridian",  # and not the versions of what answers
}
_HEALTH: Final = ("/healthz", "/readyz")


class _Handler(web.RequestHandler):
    """aiohttp's handler of one connection, with answers of ours to what is no request (W4)."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it has what was sent
    ) -> web.StreamResponse:
        if status == 500:
            log.error("a request to %s failed", request.path, exc_info=exc)
        text = "this is no request" if status == 400 else "the server failed"
        response = web.Response(status=status, text=f"{text}\n", headers=_HEADERS)
        response.force_close()
        return response


class _Connections(web.Server):
    """aiohttp's server with bounds on connections (W1)."""

    def __init__(self, listener: "HttpListener") -> None:
        super().__init__(
            listener.answer,
            access_log=None,
            logger=log,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
            max_headers=HEADERS_MAX,
            read_bufsize=HEADER_BYTES_MAX,
            lingering_time=0,
            auto_decompress=False,
        )
        self._open: dict[web.RequestHandler, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}

    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=asyncio.get_running_loop(), **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            oldest, _ = next(iter(self._open.values()))
            oldest.abort()
            self._forget(next(iter(self._open)))
        timer = asyncio.get_running_loop().call_later(CONNECTION_S, transport.abort)
        self._open[handler] = (transport, timer)
        super().connection_made(handler, transport)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        self._forget(handler)
        super().connection_lost(handler, exc)

    def _forget(self, handler: web.RequestHandler) -> None:
        found = self._open.pop(handler, None)
        if found is not None:
            found[1].cancel()


class HttpListener:
    """See the module; it listens from `start` to `close`."""

    def __init__(
        self,
        observer: ServerObserver,
        rules: HttpRules,
        sockets: Sequence[socket.socket],
        wrap: Callable[[asyncio.Protocol], asyncio.Protocol] = lambda inner: inner,
    ) -> None:
        """`wrap`: gives a connection TLS, if its client wants that."""
        self._observer = observer
        self._wrap = wrap
        self._page = Page(observer, rules)
        self._rules = rules
        self._sockets = sockets
        self._scraping = asyncio.Lock()
        self._thread = Threads(1, thread_name_prefix="scrape")
        self._connections: _Connections | None = None
        self._servers: list[asyncio.Server] = []

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._connections = connections = _Connections(self)
        for one in self._sockets:
            made = await loop.create_server(lambda: self._wrap(connections()), sock=one)
            self._servers.append(made)
            log.info("http at %s port %s", *one.getsockname()[:2])

    async def close(self) -> None:
        """Let go of the ports, and of who is connected."""
        for server in self._servers:
            server.close()
        self._page.close()
        if self._connections is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(2 * _STOP_S):
                    await self._connections.shutdown(_STOP_S)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to a request, after which the connection is closed."""
        response = await self._answered(request)
        response.headers.update(_HEADERS)
        response.force_close()
        return response

    async def _answered(self, request: web.BaseRequest) -> web.Response:
        method = self._page.method(request.path)
        if request.method not in (("POST",) if method == "POST" else ("GET", "HEAD")):
            allowed = "POST" if method == "POST" else "GET, HEAD"
            return web.Response(status=405, text=f"{allowed}\n", headers={"Allow": allowed})
        if method is not None:
            return await self._page.answer(request)
        if request.path in _HEALTH:
            health = self._observer.health
            status = 200 if health.is_ready else 503
            return web.Response(status=status, text=f"{health.state.value}\n")
        if request.path != "/metrics":
            return web.Response(status=404, text="there is nothing here\n")
        name = request.get_extra_info("sockname")
        refused = self._rules.refusal(
            host=request.headers.get("Host"),
            local_address=name[0] if isinstance(name, tuple) else None,
            authorization=request.headers.get("Authorization"),
        )
        if refused is not None:
            status, reason = refused
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            return web.Response(status=status, text=f"{reason}\n", headers=headers)
        return await self._metrics()

    async def _metrics(self) -> web.Response:
        async with self._scraping:
            observed = self._observer.observe()
            loop = asyncio.get_running_loop()
            text = await loop.run_in_executor(self._thread, rendered_metrics, observed)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})
