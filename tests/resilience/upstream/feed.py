"""Both servers with a source that runs, who writes and who looks; struck from outside."""

import os
import signal
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.resilience.faults.running import REFERENCE
from tests.resilience.upstream.watching import Watcher, judge, read
from tests.resilience.upstream.writers import SCHEMA, TABLES, Marks, Writer
from tests.support.servers import Meridian, Postgres, meridian, postgres_server
from tests.support.synchronous import commits_wait_for

SETTINGS = ("wal_level=logical", "max_replication_slots=20", "max_wal_senders=20")
WRITERS = 4
BETWEEN = 60
"""Upstream transactions before, between and after the strikes."""

END_S = 120.0


@dataclass(slots=True)
class Feed:
    """Both servers and who writes; struck from outside."""

    upstream: Postgres
    server: Meridian
    marks: Marks
    ended: threading.Event
    writers: Sequence[Writer]
    watchers: list[Watcher]

    def progress(self, count: int = BETWEEN) -> None:
        """So many more transactions of the writers."""
        goal = self._done() + count
        until = time.monotonic() + END_S
        while self._done() < goal:
            assert time.monotonic() < until, f"the writers stand still: {self.server.log[-2000:]}"
            assert all(writer.failure is None for writer in self.writers)
            self.ended.wait(0.05)

    def _done(self) -> int:
        return sum(self.marks.newest().values())


def kill(feed: Feed) -> None:
    """kill -9 of the server."""
    feed.server.kill()
    feed.server.start()


def stop_in_order(feed: Feed) -> None:
    assert feed.server.stop() == 0, feed.server.log
    feed.server.start()


def pause(feed: Feed) -> None:
    """SIGSTOP, and later SIGCONT."""
    os.kill(feed.server.pid, signal.SIGSTOP)
    try:
        feed.ended.wait(1.0)
    finally:
        os.kill(feed.server.pid, signal.SIGCONT)


def crash_upstream(feed: Feed) -> None:
    feed.upstream.stop("immediate")
    feed.upstream.start()


def restart_upstream(feed: Feed) -> None:
    feed.upstream.stop("fast")
    feed.upstream.start()


@contextmanager
def fed(
    directory: Path,
    *,
    synchronous: bool = False,
    writers: int = WRITERS,
    kind: type[Writer] = Writer,
) -> Generator[Feed]:
    """Both servers, a running source, and writers."""
    options = (*REFERENCE, "--set", "source_hosts=127.0.0.1")
    with postgres_server(SETTINGS) as upstream, meridian(directory, options) as server:
        with psycopg.connect(upstream.dsn, autocommit=True) as there:
            for statement in SCHEMA:
                there.execute(statement.encode())
        with psycopg.connect(server.dsn, autocommit=True) as here:
            for statement in source_of(upstream.port):
                here.execute(statement.encode())
            # Not loaded yet: a strict read waits for it.
            read(here)
        if synchronous:
            commits_wait_for(upstream.dsn, "feed")
        marks, ended = Marks(), threading.Event()
        clients = [kind(upstream.dsn, number, marks, ended, server) for number in range(writers)]
        watcher = Watcher(upstream.dsn, server, marks, ended)
        for thread in (*clients, watcher):
            thread.start()
        try:
            yield Feed(upstream, server, marks, ended, clients, [watcher])
        finally:
            ended.set()


def source_of(port: int) -> Sequence[str]:
    return (
        f"CREATE CONNECTION upstream TO POSTGRES (HOST '127.0.0.1', PORT {port}, "
        "DATABASE 'postgres', USER 'postgres')",
        "CREATE SCHEMA shop",
        "CREATE SOURCE feed FROM POSTGRES CONNECTION upstream (PUBLICATION 'everything')",
        "CREATE TABLES FROM SOURCE feed IN SCHEMA shop",
    )


def finish(feed: Feed) -> None:
    """The writers end, the server catches up; then both sides are equal (W3)."""
    feed.ended.set()
    for thread in (*feed.writers, *feed.watchers):
        thread.join(END_S)
        assert not thread.is_alive()
    seen = [look for watcher in feed.watchers for look in watcher.seen]
    assert len(seen) > 3
    findings = [finding for watcher in feed.watchers for finding in watcher.findings]
    assert not findings, findings[:5]
    with (
        psycopg.connect(feed.upstream.dsn, autocommit=True) as there,
        psycopg.connect(feed.server.dsn, autocommit=True) as here,
    ):
        newest, until = feed.marks.newest(), time.monotonic() + END_S
        while judge(read(here), newest):
            assert time.monotonic() < until, here.execute(
                "SELECT state, reason FROM meridian.sources"
            ).fetchall()
        # A commit whose answer the writer did not get may still be on its way.
        while any(_rows(there, f"public.{name}") != _rows(here, f"shop.{name}") for name in TABLES):
            assert time.monotonic() < until, {
                name: len(set(_rows(there, f"public.{name}")) ^ set(_rows(here, f"shop.{name}")))
                for name in TABLES
            }
        for look in seen[:: max(1, len(seen) // 20)]:
            assert read(here, look.ts) == look
        assert here.execute("SELECT count(*) FROM feed_errors").fetchall() == [(0,)]


def _rows(connection: psycopg.Connection, table: str) -> list[tuple[object, ...]]:
    text = f"SELECT * FROM {table} x ORDER BY x::text"
    return connection.execute(text.encode()).fetchall()
