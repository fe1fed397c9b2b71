"""Clients that only read, and know what the answer is: by key, long, large; one that stands still.

`big` holds `BIG_ROWS` rows (i, k, s) that nobody changes; `own` and `mirror` agree for the keys
from `BLOCK_KEYS` on, in every snapshot.
"""

import asyncio
import random
import socket
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.messages import Query, StartupMessage
from tests.resilience.faults.clients import (
    ANSWER_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    FAILURES,
    state_of,
)
from tests.resilience.soak.crowd import CONTROL, Connection, Crowd, keep_on

BIG_ROWS: Final = 50_000
BLOCK_KEYS: Final = 100

LONG: Final = (
    "SELECT count(*) FROM big a JOIN big b ON a.k = b.k WHERE (a.i * 7 + b.i) % 1009 < 400"
)
"""Most of these are ended by their time, or by others."""

ANSWER_OF_LONG: Final[dict[str, int]] = {}
"""The first one to get an answer leaves it here: all must be the same."""


def read_long(crowd: Crowd, name: str) -> None:
    """Joins that run into their time, and now and then come to their end."""

    def step(connection: Connection, rng: random.Random) -> None:
        crowd.rest(rng, 0.5)
        if crowd.spark:
            connection.execute("SET engine = spark")
        milliseconds = rng.choice((50, 200, 1_000, 20_000))
        connection.execute(f"SET statement_timeout = {milliseconds}".encode())
        [[count]] = connection.execute(LONG.encode()).fetchall()
        assert isinstance(count, int), "it is a bigint"
        if ANSWER_OF_LONG.setdefault(crowd.dsn, count) != count:
            crowd.found("wrong answer", f"{count} and {ANSWER_OF_LONG[crowd.dsn]}: {LONG}")

    keep_on(crowd, name, step)


def _values(rng: random.Random) -> tuple[str, int]:
    rows = rng.randint(1_000, 5_000)
    values = ",".join(f"({row})" for row in range(rows))
    return f"SELECT sum(v) FROM (VALUES {values}) t (v)", rows * (rows - 1) // 2


def _long_list(rng: random.Random) -> tuple[str, int]:
    parts = rng.randint(1_000, 5_000)
    keys = ",".join(map(str, range(1, parts + 1)))
    return f"SELECT count(*) FROM big WHERE i IN ({keys})", parts


def _literal(rng: random.Random) -> tuple[str, int]:
    length = rng.randint(1, 1 << 20)
    return f"SELECT length('{'x' * length}')", length


def _union(rng: random.Random) -> tuple[str, int]:
    parts = rng.randint(100, 1_000)
    branches = " UNION ALL ".join(f"SELECT {part} AS v" for part in range(parts))
    return f"SELECT count(*) FROM ({branches}) u", parts


_LARGE: Final[tuple[Callable[[random.Random], tuple[str, int]], ...]] = (
    _values, _long_list, _literal, _union,
)  # fmt: skip


def send_large(crowd: Crowd, name: str) -> None:
    """Statements of up to a megabyte."""

    def step(connection: Connection, rng: random.Random) -> None:
        crowd.rest(rng, 0.3)
        text, expected = rng.choice(_LARGE)(rng)
        [[answer]] = connection.execute(text.encode(), prepare=False).fetchall()
        if answer != expected:
            crowd.found("wrong answer", f"{answer} instead of {expected}: {text[:200]}")

    keep_on(crowd, name, step)


async def read_short(crowd: Crowd, name: str) -> None:
    """Snapshots, ranges and large results, by asyncpg."""
    rng = random.Random(name)
    with crowd.present(name):
        while not crowd.ended.is_set():
            try:
                connection = await asyncpg.connect(
                    crowd.dsn, timeout=CONNECT_SECONDS_MAX, command_timeout=ANSWER_SECONDS_MAX
                )
            except FAILURES as error:
                crowd.told(state_of(error), str(error))
                continue
            try:
                while not crowd.ended.is_set() and not connection.is_closed():
                    await _read_one(crowd, connection, rng)
            finally:
                connection.terminate()


async def _read_one(crowd: Crowd, connection: asyncpg.Connection, rng: random.Random) -> None:
    first, roll = rng.randrange(BIG_ROWS), rng.random()
    try:
        if roll < 0.4:
            differ = await connection.fetchval(
                "SELECT count(*) FROM own JOIN mirror USING (id)"
                " WHERE id >= $1 AND own.n <> mirror.n",
                BLOCK_KEYS,
            )
            right = differ == 0
        elif roll < 0.8:
            rows = await connection.fetch("SELECT i FROM big WHERE i > $1 AND i <= $1 + 10", first)
            right = len(rows) == min(10, BIG_ROWS - first)
        else:
            rows = await connection.fetch("SELECT i, k, s FROM big WHERE i > $1", first)
            right = len(rows) == BIG_ROWS - first
    except FAILURES as error:
        crowd.told(state_of(error), str(error))
        return
    if not right:
        crowd.found("wrong answer", f"a reader, {roll:.2f}, from {first} on")
    crowd.counted("short reads")
    await asyncio.sleep(rng.random() * 0.1)


def stand_still(crowd: Crowd, name: str) -> None:
    """Ask for a large result, and read nothing of it until all go home."""
    address = urlsplit(crowd.dsn)
    startup = StartupMessage(
        {"user": "meridian", "database": "meridian", "application_name": CONTROL}
    )
    query = Query("SELECT a.i, a.s, b.s FROM big a CROSS JOIN big b WHERE b.i <= 20")
    with crowd.present(name), socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        plain.connect((address.hostname, address.port))
        plain.sendall(encode_frontend(startup) + encode_frontend(query))
        crowd.doing[name] = "stands still"
        crowd.ended.wait()
