"""One client among many: beside long statements, and beside connections that say nothing.

short      an aggregate of 2,000 rows beside 8 joins that compute as long as they may
strangers  connect and `SELECT 1` beside 1,000 silent connections; PostgreSQL takes no more than 100
"""

import contextlib
import resource
import socket
import statistics
import threading
import time
from urllib.parse import urlsplit

import psycopg

from tests.bench.sizes import Figures, Size

LONG_CLIENTS = 8
SILENT = 1_000
CONNECTS = 20

_SHORT = "select k, count(*), sum(i) from few group by k order by k"
_LONG = "select count(*) from many a join many b on a.i * 7 % 1009 < b.k and a.k > b.i % 990"


def crowded(dsn: str, size: Size) -> Figures:
    """A short statement beside long ones, and a log-in beside strangers."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists few")
        connection.execute("drop table if exists many")
        connection.execute(
            "create table few as select i, i % 10 as k from generate_series(1, 2000) i"
        )
        connection.execute(
            "create table many as select i, i % 997 as k from generate_series(1, 300000) i"
        )
        alone = _times(connection, 3)
        beside = _beside_long(dsn, connection, max(size.seconds, 5))
        found = {
            "short aggregate, alone: p50 ms": statistics.median(alone),
            "short aggregate beside 8 long statements: p50 ms": statistics.median(beside),
            "short aggregate beside 8 long statements: worst ms": max(beside),
        }
        [(version,)] = connection.execute("select version()").fetchall()
    return {**found, **_beside_strangers(dsn)} if "Meridian" in version else found


def _beside_long(dsn: str, connection: psycopg.Connection, seconds: int) -> list[float]:
    threads = [threading.Thread(target=_long, args=(dsn, seconds + 4)) for _ in range(LONG_CLIENTS)]
    for thread in threads:
        thread.start()
    time.sleep(2)  # they compute by now
    found = _times(connection, seconds)
    for thread in threads:
        thread.join()
    return found


def _long(dsn: str, seconds: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"set statement_timeout = '{seconds}s'".encode())
        with contextlib.suppress(psycopg.errors.QueryCanceled):
            connection.execute(_LONG)


def _times(connection: psycopg.Connection, seconds: int) -> list[float]:
    found: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until or not found:
        began = time.monotonic()
        connection.execute(_SHORT).fetchall()
        found.append(1000 * (time.monotonic() - began))
    return found


def _beside_strangers(dsn: str) -> Figures:
    _, most = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    place = "127.0.0.1", urlsplit(dsn).port or 0
    times: list[float] = []
    with contextlib.ExitStack() as opened:
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        for _ in range(SILENT):
            opened.enter_context(socket.create_connection(place))
        for _ in range(CONNECTS):
            began = time.monotonic()
            with psycopg.connect(dsn) as connection:
                connection.execute("select 1").fetchall()
            times.append(1000 * (time.monotonic() - began))
    return {
        "connect beside 1,000 silent connections: first ms": times[0],
        "connect beside 1,000 silent connections: p50 ms": statistics.median(times),
    }
