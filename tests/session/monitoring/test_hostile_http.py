"""What strangers send to the HTTP listener does no harm: afterwards it answers a probe."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from coordinator.monitoring import listener as listener_module
from tests.session.monitoring.http_client import PATIENCE_S, Listening, listening

ENDLESS_BYTES = 1 << 30
PIECE = b"a" * (64 << 10)


def _while_listening(ask: Callable[[Listening], Awaitable[None]], token: str | None = None) -> None:
    async def run() -> None:
        async with listening(token, hosts=("metrics.example", "Other.Example:99")) as one:
            await ask(one)
            answer = await one.get("/healthz")
            assert (answer.status, answer.text) == (200, "ready\n")

    uvloop.run(run())


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: \xff\xfe\r\nX: \xc3\x28\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n" + PIECE,
        b"POST /page/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n" + PIECE,
        b"POST /page/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n" + PIECE,
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    async def ask(one: Listening) -> None:
        said = await one.raw(data)
        assert b" 200 " not in said.split(b"\r\n", 1)[0]

    _while_listening(ask)


LOGIN = (
    b"POST /page/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
    b"Content-Type: application/json\r\n"
)


@pytest.mark.parametrize(
    "data",
    [
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization : Bearer s3cret\r\n\r\n",
        b"s3cret\x00\xff" * 10_000,
        b"GET /metrics HTTP/1.1\r\nX: s3cret\r\n\r\n",
        LOGIN + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\ns3cret\r\n",
        LOGIN + b"Content-Length: 2\r\n\r\n{}s3cret",
    ],
)
def test_what_is_no_request_is_neither_logged_nor_sent_back(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be a token, and its sender must not fill the log."""
    caplog.set_level(logging.INFO)

    async def ask(one: Listening) -> None:
        caplog.clear()
        said = await one.raw(data)
        assert said.endswith(b"this is no request\n")
        assert b"Server: meridian\r\n" in said
        assert b"aiohttp" not in said
        assert not caplog.records

    _while_listening(ask)


@pytest.mark.parametrize("rest", [b"", b"ZZZ\r\n"])
def test_who_leaves_within_a_body_is_not_logged(
    rest: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(one: Listening) -> None:
        caplog.clear()
        _, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(LOGIN + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n" + rest)
        assert (await one.get("/healthz")).status == 200  # it has come
        writer.close()
        await writer.wait_closed()
        assert (await one.get("/healthz")).status == 200
        assert not caplog.records

    _while_listening(ask)


@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n"])
def test_a_gigabyte_of_headers_is_not_read(begin: bytes) -> None:
    piece = b"a: b\r\n" * 10_000 if begin.endswith(b"\r\n") else PIECE

    async def ask(one: Listening) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        sent = 0
        writer.write(begin)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while sent < ENDLESS_BYTES and not reader.at_eof():
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                    sent += len(piece)
        except ConnectionError:
            pass
        finally:
            writer.close()
        assert sent < ENDLESS_BYTES

    _while_listening(ask)


def test_who_says_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "CONNECTION_S", 0.2)

    async def ask(one: Listening) -> None:
        login = b"POST /page/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        login += b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        for begin in (b"", b"GET /healthz HTTP/1.1\r\nX-", login):
            assert await one.raw(begin) == b""

    _while_listening(ask)


def test_who_sends_a_byte_at_a_time_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "CONNECTION_S", 0.2)

    async def ask(one: Listening) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(b"GET / HTTP/1.1\r\nX: ")

        async def drip() -> None:
            while True:
                writer.write(b"a")
                await asyncio.sleep(0.01)

        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            dripping = group.create_task(drip())
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            dripping.cancel()
        writer.close()

    _while_listening(ask)


def test_silent_connections_keep_nobody_out() -> None:
    async def ask(one: Listening) -> None:
        many = range(2 * listener_module.CONNECTIONS_MAX)
        silent = [await asyncio.open_connection("127.0.0.1", one.port) for _ in many]
        assert (await one.get("/healthz")).status == 200
        # The oldest had to go.
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()

    _while_listening(ask)


def test_a_page_of_somebody_else_reads_no_metrics() -> None:
    async def ask(one: Listening) -> None:
        for host, status in {
            "evil.example": 421,
            "evil.example:80": 421,
            "localhost.evil.example": 421,
            "127.0.0.1.evil.example": 421,
            "": 421,
            "localhost": 200,
            "LOCALHOST:99": 200,
            f"127.0.0.1:{one.port}": 200,
            "[::1]:1": 200,
            "metrics.example": 200,
            "other.example:1": 200,
        }.items():
            answer = await one.get("/metrics", {"Host": host, "Origin": "http://evil.example"})
            assert answer.status == status, host
            assert "Access-Control-Allow-Origin" not in answer.headers
            assert ("meridian_health" in answer.text) == (status == 200)
            assert (await one.get("/healthz", {"Host": host or "-"})).text == "ready\n"

    _while_listening(ask)


def test_the_token_is_wanted() -> None:
    async def ask(one: Listening) -> None:
        for given, status in {
            "": 401,
            "Bearer": 401,
            "Bearer wrong": 401,
            "Basic s3cret": 401,
            "Bearer s3cret\u00e9": 401,
            "Bearer s3cret": 200,
            "bearer s3cret": 200,
        }.items():
            headers = {"Authorization": given} if given else {}
            answer = await one.get("/metrics", headers)
            assert answer.status == status, given
            assert "s3cret" not in answer.text
        assert (await one.get("/readyz")).status == 200

    _while_listening(ask, token="s3cret")


def test_other_paths_and_methods_are_refused() -> None:
    async def ask(one: Listening) -> None:
        for path in (
            "/x",
            "/page",
            "/page/",
            "/page.js/",
            "/static/page.js",
            "/metrics/",
            "/../metrics",
            "/metrics%00",
            "/healthz/x",
            "//healthz",
        ):
            assert (await one.get(path)).status == 404, path
        for method in (b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE"):
            request = method + b" /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            assert (await one.raw(request)).startswith(b"HTTP/1.1 405 "), method
        assert (await one.raw(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"))[
            :13
        ] != b"HTTP/1.1 200 "
        head = await one.raw(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"ready" not in head

    _while_listening(ask)
