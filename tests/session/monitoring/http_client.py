"""A client of HTTP that sends what it is told, and a listener without a server behind it."""

import asyncio
import contextlib
import http.client
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from coordinator.monitoring.health import Health, HealthState
from coordinator.monitoring.http_requests import HttpRules
from coordinator.monitoring.listener import HttpListener
from coordinator.monitoring.observation import ServerObserver

PATIENCE_S = 60
"""Only against hanging for ever."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


def get(
    port: int, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read().decode())
    finally:
        connection.close()


def scrape(port: int) -> Samples:
    """All samples of `/metrics`, by name and labels."""
    answer = get(port, "/metrics")
    assert answer.status == 200, answer.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


@dataclass
class Listening:
    """A listener in this process, on a port of loopback."""

    port: int
    observer: ServerObserver

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await asyncio.to_thread(get, self.port, path, headers)

    async def raw(self, data: bytes) -> bytes:
        """What it says to these bytes, until it closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            async with asyncio.timeout(PATIENCE_S):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def listening(
    token: str | None = None, hosts: tuple[str, ...] = ()
) -> AsyncIterator[Listening]:
    observer = ServerObserver(Health())
    observer.health.state = HealthState.READY
    bound = socket.create_server(("127.0.0.1", 0))
    port: int = bound.getsockname()[1]
    listener = HttpListener(observer, HttpRules(hosts, token), [bound])
    await listener.start()
    try:
        yield Listening(port, observer)
    finally:
        await listener.close()
