"""Open the HTTP listener of a server, if its settings ask for one, from its start to its end.

INVARIANTS
  H1  a server without `http_listen` does not import aiohttp, and not prometheus_client before
      `meridian doctor` asks.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

from coordinator.config import Settings, SettingsError, read_secret
from coordinator.monitoring.health import Health
from coordinator.monitoring.http_requests import HttpRules
from coordinator.monitoring.observation import ServerObserver
from coordinator.server.ports import take_http_ports
from coordinator.server.tls import ServerTls

log = logging.getLogger("meridian.http")


@asynccontextmanager
async def http_listening(
    settings: Settings, tls: Callable[[], ServerTls | None] = lambda: None
) -> AsyncGenerator[ServerObserver]:
    """Answer probes, scrapes and browsers in this block, as the observer sees the server. `tls`:
    what a new connection may have.

    Raises SettingsError.
    """
    observer = ServerObserver(Health(standby=settings.standby))
    if not settings.http_listen:
        yield observer
        return
    rules = HttpRules(_hosts(settings), _token(settings))
    sockets = await asyncio.to_thread(take_http_ports, settings)
    from coordinator.monitoring.listener import HttpListener  # H1
    from coordinator.server.http_tls import PlainOrTls

    listener = HttpListener(observer, rules, sockets, lambda inner: PlainOrTls(inner, tls))
    try:
        await listener.start()
        yield observer
    finally:
        await listener.close()


def _hosts(settings: Settings) -> list[str]:
    named = [name.strip() for name in settings.http_hosts.split(",") if name.strip()]
    return [*named, *(host for host, _ in settings.http_addresses)]


def _token(settings: Settings) -> str | None:
    if settings.http_token_file:
        token = read_secret(Path(settings.http_token_file)).strip()
        if not token:
            raise SettingsError(f"the file {settings.http_token_file} has no token")
        return token
    if not all(_is_loopback_host(host) for host, _ in settings.http_addresses):
        log.warning("http_listen is not loopback, so /metrics is refused without http_token_file")
    return None


def _is_loopback_host(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
