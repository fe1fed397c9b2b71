"""What sessions hold together is bounded, and comes back."""

import asyncio
import socket
import struct
import threading
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import psycopg
import pytest

from coordinator.execution.context import ExecutionLimits
from coordinator.memory_account import MemoryOwner
from tests.support.servers import Meridian, meridian
from tests.support.stack import running

SMALL = ("--spark-master", "none", "--set", "memory_max_mb=768", "--set", "local_memory_mb=256")
MESSAGE_BYTES = 8 << 20
CLIENTS = 12


_OTHERS = (
    "select from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'"
)


async def _refusal(connection: "psycopg.AsyncConnection[object]", statement: str) -> str:
    try:
        await connection.execute(statement.encode())
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary}"
    return "done"


def test_a_session_has_so_many_statements_and_portals() -> None:
    async def story() -> None:
        limits = ExecutionLimits(statements_max=3, portals_max=3)
        async with running(limits=limits) as stack:
            one = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            other = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            said = [await _refusal(one, f"prepare s{at} as select {at}") for at in range(4)]
            assert said == ["done"] * 3 + ["53400 too many prepared statements"]
            assert await _refusal(other, "prepare s as select 1") == "done"
            assert await _refusal(one, "deallocate s1") == "done"
            assert await _refusal(one, "prepare s3 as select 1") == "done"
            await _refusal(one, "begin")
            said = [await _refusal(one, f"declare c{at} cursor for select 1") for at in range(4)]
            assert said == ["done"] * 3 + ["53400 too many portals"]
            await _refusal(one, "rollback")
            assert await _refusal(one, "begin") == "done"
            assert await _refusal(one, "declare c cursor for select 1") == "done"
            assert stack.server.memory.total > 0
            await one.close()
            await other.close()
            third = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            while await (await third.execute(_OTHERS)).fetchall():
                pass
            assert stack.server.memory.held[MemoryOwner.STATEMENTS] == 0
            await third.close()

    asyncio.run(story())


class _Growth:
    """Watches how much more the server has than at the beginning."""

    def __init__(self, server: Meridian) -> None:
        self._server = server
        self._first = server.resident_mb
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.most_mb = 0

    def __enter__(self) -> "_Growth":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def now_mb(self) -> int:
        return self._server.resident_mb - self._first

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.most_mb = max(self.most_mb, self.now_mb())


def _startup() -> bytes:
    words = b"user\0meridian\0database\0meridian\0\0"
    return struct.pack("!ii", 8 + len(words), 196608) + words


def _query(text: bytes) -> bytes:
    return b"Q" + struct.pack("!i", 5 + len(text)) + text + b"\0"


def _answer(port: int, query: bytes) -> bytes:
    """What the server says to a query; its first bytes."""
    with socket.create_connection(("127.0.0.1", port), 60) as plain:
        plain.sendall(_startup())
        _until_ready(plain)
        plain.sendall(query)
        return _until_ready(plain)[:40]


def _until_ready(plain: socket.socket) -> bytes:
    got = b""
    while not got.endswith(b"Z\0\0\0\5I"):
        piece = plain.recv(65_536)
        assert piece, got
        got += piece
    return got


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> "object":
    with meridian(tmp_path_factory.mktemp("memory"), SMALL) as started:
        with psycopg.connect(started.dsn, autocommit=True) as connection:
            connection.execute(
                "create table wide as select i, repeat(md5(i::text), 31) as s"
                " from generate_series(1, 60000) i"
            )
            connection.execute("select count(*), max(s) from wide").fetchall()
        yield started


def test_many_large_messages_at_once(server: Meridian) -> None:
    """12 × 8 MiB, of each of which there are several copies for a moment: there is room for 5."""
    port = urlsplit(server.dsn).port or 0
    query = _query(b"select length('" + b"x" * MESSAGE_BYTES + b"')")
    said: list[bytes] = []
    with _Growth(server) as growth, psycopg.connect(server.dsn, autocommit=True) as other:
        threads = [
            threading.Thread(target=lambda: said.append(_answer(port, query)))
            for _ in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert other.execute("select 7").fetchall() == [(7,)]
    assert len(said) == CLIENTS
    refused = sum(b"53200" in one for one in said)
    assert 0 < refused < CLIENTS
    assert growth.most_mb < 400
    # Nothing is accounted for any more.
    assert b"length" in _answer(port, query)


@pytest.mark.slow
def test_fifty_clients_that_send_200_megabytes(server: Meridian) -> None:
    """Ten gigabytes: hardly any of it is kept, everybody is told, and others are served."""
    port = urlsplit(server.dsn).port or 0
    query = _query(b"select length('" + b"x" * (200 << 20) + b"')")
    said: list[bytes] = []
    with _Growth(server) as growth, psycopg.connect(server.dsn, autocommit=True) as other:
        threads = [
            threading.Thread(target=lambda: said.append(_answer(port, query))) for _ in range(50)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert other.execute("select 7").fetchall() == [(7,)]
    assert len(said) == 50
    assert all(b"53200" in one or b"length" in one for one in said)
    assert growth.most_mb < 768
    assert b"length" in _answer(port, _query(b"select length('x')"))


def test_clients_that_read_nothing(server: Meridian) -> None:
    """16 of them, with results of 60 MB: they would have a gigabyte, and others are served."""
    port = urlsplit(server.dsn).port or 0
    with ExitStack() as opened, _Growth(server) as growth:
        for _ in range(16):
            plain = opened.enter_context(socket.socket())
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            plain.connect(("127.0.0.1", port))
            plain.sendall(_startup() + _query(b"select * from wide"))
        with psycopg.connect(server.dsn, autocommit=True) as other:
            until = time.monotonic() + 4
            while time.monotonic() < until:
                with suppress(psycopg.errors.OutOfMemory):
                    other.execute("select count(*) from wide where i < 100").fetchall()
        most = growth.most_mb
    assert most < 500
