"""Subscribers: `python -m tests.bench.follow_bench [--only one,many] [--subscribers N]`.

one     a commit to the row at one subscriber; PostgreSQL: NOTIFY to one listener
many    N subscribers of one table, 50 commits a second
keyed   N subscribers `WHERE k = n`, 1,000 commits a second
slow    one that reads nothing, beside a COPY of --rows rows and 60 s of 1,000 rows a second
large   a snapshot of four times --rows rows, for one that reads nothing
idle    CPU of a commit that nobody follows, and how much of it is for subscribers

Prints figures, asserts nothing. The clients run beside the server, in one process.
"""

import argparse
import asyncio
import contextlib
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import psycopg
import pyarrow as pa
from psycopg.rows import TupleRow

from coordinator.core.catalog import VersionedCatalog
from coordinator.core.change_streams.subscriptions import Subscriptions
from coordinator.core.read_holds import ReadHolds
from coordinator.core.settings import CoreSettings
from sql.catalog.catalog import Catalog, Table
from storage.types import ShardId, Timestamp
from tests.support.servers import Meridian, meridian, postgres

COMMITS_PER_S = {"one": 20, "many": 50, "keyed": 1000}
WRITERS = 8
SLOW_S = 60
CALLS = 200_000
TABLE = "create table t (k int, sent int8)"


class Subscriber(asyncio.Protocol):
    """Sends one statement, and notes when each row has come: it does little, as there are many."""

    def __init__(self, place: SplitResult, statement: str, told: list[tuple[int, bytes]]) -> None:
        self._place = place
        self._statement = statement
        self._told = told
        self._left = b""
        self._is_ready = False
        self.follows: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who it is."""
        assert isinstance(transport, asyncio.Transport), "it is a socket"
        self._transport = transport
        user, database = self._place.username or "meridian", self._place.path[1:]
        about = f"user\0{user}\0database\0{database}\0\0".encode()
        transport.write(struct.pack("!ii", len(about) + 8, 196_608) + about)

    def leave(self) -> None:
        """Say no good-bye."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Count what came whole."""
        data, at, now = self._left + data, 0, time.perf_counter_ns()
        while len(data) - at >= 5:
            end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
            if end > len(data):
                break
            self._got(data[at : at + 1], data[at + 5 : end], now)
            at = end
        self._left = data[at:]

    def _got(self, kind: bytes, body: bytes, now: int) -> None:
        match kind:
            case b"Z" if not self._is_ready:
                self._is_ready = True
                text = self._statement.encode() + b"\0"
                self._transport.write(b"Q" + struct.pack("!i", len(text) + 4) + text)
            case b"T" | b"C" if not self.follows.done():
                self.follows.set_result(None)
            case b"D" | b"A":
                self._told.append((now, body))
            case b"E":
                if not self.follows.done():
                    self.follows.set_exception(AssertionError(body))
            case _:
                pass


def _last_number(body: bytes) -> int:
    """The number that a row or a notification ends in: when it was sent."""
    body = body.rstrip(b"\0")
    digits = len(body) - len(body.rstrip(b"0123456789"))
    return int(body[-digits:])


def _same(protocol: Subscriber) -> Subscriber:
    return protocol


async def _measured(
    dsn: str, statements: list[str], rate: int, seconds: int, write: Callable[[object, int], str]
) -> tuple[list[float], int]:
    """The latencies of all rows, and how many commits there were."""
    place, told = urlsplit(dsn), list[tuple[int, bytes]]()
    loop = asyncio.get_running_loop()
    made: list[Subscriber] = []
    assert place.hostname is not None, "it listens somewhere"
    assert place.port is not None, "it listens somewhere"
    for statement in statements:
        protocol = Subscriber(place, statement, told)
        await loop.create_connection(partial(_same, protocol), place.hostname, place.port)
        made.append(protocol)
    await asyncio.gather(*(one.follows for one in made))
    await asyncio.sleep(1)
    commits = await asyncio.to_thread(_write, dsn, rate, seconds, write)
    await asyncio.sleep(2)
    for one in made:
        one.leave()
    return [(now - _last_number(body)) / 1e6 for now, body in told], commits


def _write(dsn: str, rate: int, seconds: int, write: Callable[[object, int], str]) -> int:
    """Commits at this rate, in several connections."""
    counted = [0] * WRITERS

    def run(place: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            begin = time.perf_counter()
            while (elapsed := time.perf_counter() - begin) < seconds:
                ahead = counted[place] / (rate / WRITERS) - elapsed
                if ahead > 0:
                    time.sleep(ahead)
                text = write(counted[place] * WRITERS + place, time.perf_counter_ns())
                connection.execute(text.encode())
                counted[place] += 1

    threads = [threading.Thread(target=run, args=(place,)) for place in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counted)


def _print(name: str, latencies: list[float], commits: int, seconds: int, more: str = "") -> None:
    ordered = sorted(latencies) or [0.0]
    p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    rates = f"{commits / seconds:5.0f} commits/s {len(latencies) / seconds:7.0f} rows/s"
    print(f"{name:12} p50 {p50:8.2f}  p99 {p99:8.2f} ms  {rates}  {more}", flush=True)


def _one(server: Meridian, subscribers: int, seconds: int, rows: int) -> None:
    del subscribers, rows
    _follow(server, "one", ["SUBSCRIBE t"], seconds)
    _notified("one", ["c"], seconds)


def _many(server: Meridian, subscribers: int, seconds: int, rows: int) -> None:
    del rows
    _follow(server, "many", ["SUBSCRIBE t"] * subscribers, seconds)
    _notified("many", ["c"] * subscribers, seconds)


def _keyed(server: Meridian, subscribers: int, seconds: int, rows: int) -> None:
    del rows
    texts = [f"SUBSCRIBE (SELECT * FROM t WHERE k = {key})" for key in range(subscribers)]
    _follow(server, "keyed", texts, seconds)
    _notified("keyed", [f"c{key}" for key in range(subscribers)], seconds)


def _notified(name: str, channels: list[str], seconds: int) -> None:
    """The same of PostgreSQL, by NOTIFY to those who LISTEN."""
    with postgres(("max_connections=2000",)) as peer:
        with psycopg.connect(peer, autocommit=True) as connection:
            connection.execute(TABLE.encode())

        def notify(key: object, sent: int) -> str:
            assert isinstance(key, int), "it is counted"
            channel = channels[key % len(channels)]
            return f"insert into t values ({key}, {sent}); select pg_notify('{channel}', '{sent}')"

        listens = [f"LISTEN {channel}" for channel in channels]
        told = asyncio.run(_measured(peer, listens, COMMITS_PER_S[name], seconds, notify))
        _print("  NOTIFY", *told, seconds)


def _follow(server: Meridian, name: str, statements: list[str], seconds: int) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t")
        connection.execute(TABLE.encode())
    memory, cpu = server.resident_mb, server.cpu_s
    keys = len(statements)

    def insert(key: object, sent: int) -> str:
        assert isinstance(key, int), "it is counted"
        return f"insert into t values ({key % keys}, {sent})"

    began = time.perf_counter()
    told = asyncio.run(_measured(server.dsn, statements, COMMITS_PER_S[name], seconds, insert))
    cores = (server.cpu_s - cpu) / (time.perf_counter() - began)
    _print(name, *told, seconds, f"{cores:.2f} cores  {server.resident_mb - memory:+d} MB")


def _slow(server: Meridian, subscribers: int, seconds: int, rows: int) -> None:
    """The server's memory beside one who reads nothing, and beside nobody."""
    del subscribers, seconds
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for name in ("nobody", "nobody", "slow", "slow"):
            connection.execute("drop table if exists t")
            connection.execute("create table t (k int, sent int8, b text)")
            follows = contextlib.nullcontext() if name == "nobody" else _not_read(server.dsn)
            with follows, _watched(server) as found:
                began = time.perf_counter()
                _load(connection, rows)
                loaded, copied = time.perf_counter(), len(found)
                for commit in range(SLOW_S * 100):
                    ahead = loaded + commit / 100 - time.perf_counter()
                    if ahead > 0:
                        time.sleep(ahead)
                    connection.execute(
                        "insert into t select g, g, 'y' from generate_series(1, 10) g"
                    )
                elapsed = time.perf_counter() - loaded
            quarters = [found[copied + (len(found) - copied - 1) * part // 4] for part in range(5)]
            print(
                f"{name:12} {rows} rows by COPY in {loaded - began:.0f} s: "
                f"resident {found[0]} MB, at most {max(found[:copied])} MB; "
                f"{SLOW_S * 1000} rows in {elapsed:.0f} s: {quarters} MB, at most "
                f"{max(found[copied:])} MB",
                flush=True,
            )


def _load(connection: psycopg.Connection[TupleRow], rows: int) -> None:
    """In one commit."""
    with connection.cursor().copy("copy t from stdin") as copy:
        for start in range(0, rows, 1000):
            copy.write("".join(f"{n}\t{n}\tx{n}\n" for n in range(start, start + 1000)))


def _large(server: Meridian, subscribers: int, seconds: int, rows: int) -> None:
    """The server's memory while it holds a snapshot that nobody reads."""
    del subscribers
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("create table t (k int, sent int8, b text)")
        for _ in range(4):
            _load(connection, rows)
        time.sleep(5)
        with _watched(server) as found, _not_read(server.dsn):
            time.sleep(seconds)
        most, end = max(found), found[-1]
        print(
            f"large        snapshot of {4 * rows} rows that is not read, {seconds} s: "
            f"resident {found[0]} MB, at most {most} MB, {end} MB at the end"
        )


def _no_schema(_: Table) -> pa.Schema:
    raise AssertionError("nobody follows a table")


def _idle(server: Meridian, subscribers: int, seconds: int, rows: int) -> None:
    """What a commit does for subscribers, if there are none."""
    del subscribers, rows
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(TABLE.encode())
    cpu = server.cpu_s
    commits = _write(server.dsn, 500, seconds, lambda key, _: f"insert into t values ({key}, 1)")
    per_commit = (server.cpu_s - cpu) / commits * 1e6
    frontier = Timestamp(1)
    holds = ReadHolds(Catalog(), frontier=frontier, history_us=1, timeline="system")
    nobody = Subscriptions(
        {}, holds, lambda: frontier, _no_schema, VersionedCatalog(), CoreSettings()
    )
    began = time.perf_counter()
    for _ in range(CALLS):
        nobody.wrote(ShardId("t"), frontier, ())
        len(nobody)
    call = (time.perf_counter() - began) / CALLS * 1e6
    print(
        f"idle         {per_commit:.0f} us of CPU a commit, {call:.2f} us of it for subscribers: "
        f"{100 * call / per_commit:.2f} %",
        flush=True,
    )


@contextlib.contextmanager
def _not_read(dsn: str) -> Generator[None]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        stream = connection.cursor().stream("SUBSCRIBE t WITH (PROGRESS)")
        next(stream)
        yield
        connection.pgconn.finish()


@contextlib.contextmanager
def _watched(server: Meridian) -> Generator[list[int]]:
    """Its resident megabytes, ten times a second."""
    found, over = [server.resident_mb], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            found.append(server.resident_mb)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


MEASURES = {
    "one": _one,
    "many": _many,
    "keyed": _keyed,
    "slow": _slow,
    "large": _large,
    "idle": _idle,
}


def main() -> None:
    """Measure what is asked for, each on a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(MEASURES))
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    options = ("--spark-master", "none", "--set", "connections_max=2000")
    for name in arguments.only.split(","):
        with (
            tempfile.TemporaryDirectory(prefix="bench-") as place,
            meridian(Path(place), options) as server,
        ):
            MEASURES[name](server, arguments.subscribers, arguments.seconds, arguments.rows)


if __name__ == "__main__":
    main()
