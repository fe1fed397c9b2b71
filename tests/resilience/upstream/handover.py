"""Two coordinators on one stash read one upstream: the old one stops somewhere, the other leads.

    PostgreSQL ── link ──▶ old: SIGSTOP in a state ─▶ new leads ─▶ SIGCONT: the old one has to end

A state is a context: within it the old one stands there, and what has held it up goes at the end.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import psycopg

from tests.resilience.failover.coordinators import Coordinator, sharing
from tests.resilience.upstream.feed import END_S, SETTINGS, Feed, source_of
from tests.resilience.upstream.watching import Watcher, judge, read
from tests.resilience.upstream.writers import SCHEMA, Marks, Writer
from tests.session.change_streams.followers import until
from tests.support.proxy import Proxy, proxy
from tests.support.servers import Postgres, postgres_server

WRITERS = 3


@dataclass(slots=True)
class Leading:
    """Who leads, for those who look."""

    dsn: str


@dataclass(slots=True)
class Handover:
    """See the module. `link`: of both coordinators to the upstream; `stash`: its DSN."""

    upstream: Postgres
    link: Proxy
    stash: str
    old: Coordinator
    new: Coordinator
    leading: Leading
    marks: Marks
    ended: threading.Event
    writers: Sequence[Writer]
    watchers: list[Watcher]

    @property
    def feed(self) -> Feed:
        """The new one, as a server that is fed."""
        return Feed(
            self.upstream, self.new.server, self.marks, self.ended, self.writers, self.watchers
        )

    def create(self) -> None:
        """The source, at the old one; what it feeds is loaded."""
        with psycopg.connect(self.old.server.dsn, autocommit=True) as here:
            for statement in source_of(self.link.port):
                here.execute(statement.encode())
            read(here)

    def watch(self) -> None:
        """From now on somebody looks at the slot, and at who leads."""
        watcher = Watcher(self.upstream.dsn, self.leading, self.marks, self.ended)
        self.watchers.append(watcher)
        watcher.start()

    def takes_over(self) -> float:
        """The new one leads; the seconds until it has read all that upstream had before."""
        self.leading.dsn = self.new.server.dsn
        began = time.monotonic()
        self.catch_up(self.new)
        self.watch()
        return time.monotonic() - began

    def catch_up(self, one: Coordinator) -> None:
        """Until it has read all that upstream has now."""
        known, longest = self.marks.newest(), time.monotonic() + END_S
        with psycopg.connect(one.server.dsn, autocommit=True) as here:
            while judge(read(here), known):
                assert time.monotonic() < longest, here.execute(
                    "SELECT state, code, reason FROM meridian.sources"
                ).fetchall()

    def slots(self) -> Sequence[tuple[bool, int]]:
        """Of the upstream: whether somebody holds it, and what was acknowledged."""
        with psycopg.connect(self.upstream.dsn, autocommit=True) as there:
            return there.execute(
                "SELECT active, (confirmed_flush_lsn - '0/0')::int8 FROM pg_replication_slots"
            ).fetchall()


State: TypeAlias = Callable[[Handover], AbstractContextManager[None]]


@contextmanager
def handing_over(directory: Path) -> Generator[Handover]:
    """The old one leads; the upstream is written to, and nothing reads it yet."""
    with (
        sharing(directory, 2, "source_hosts=127.0.0.1") as shared,
        postgres_server(SETTINGS) as upstream,
        proxy("127.0.0.1", upstream.port) as link,
    ):
        old, new = shared.coordinators
        with psycopg.connect(upstream.dsn, autocommit=True) as there:
            for statement in SCHEMA:
                there.execute(statement.encode())
        leading = Leading(old.server.start())
        marks, ended = Marks(), threading.Event()
        writers = [Writer(upstream.dsn, n, marks, ended, leading) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        stash = shared.postgres.dsn
        try:
            yield Handover(
                upstream, link, stash, old, new, leading, marks, ended, writers, watchers=[]
            )
        finally:
            ended.set()


# --- before its tables are loaded ----------------------------------------------------------------


@contextmanager
def inspecting(pair: Handover) -> Iterator[None]:
    """A statement looks at the upstream, and never ends: its coordinator is deposed."""
    told: list[psycopg.Error | None] = []

    def create() -> None:
        try:
            pair.create()
        except psycopg.Error as error:
            told.append(error)

    with psycopg.connect(pair.upstream.dsn) as there:
        there.execute("LOCK TABLE pg_publication")
        thread = threading.Thread(target=create)
        thread.start()
        _upstream_shows(pair, "application_name = 'feed_watch' AND wait_event_type = 'Lock'")
        pair.old.pause()
        yield
    with psycopg.connect(pair.new.server.dsn, autocommit=True) as here:
        assert here.execute("SELECT count(*) FROM meridian.sources").fetchall() == [(0,)]
        # Its connection and schema were made by statements before.
        for statement in source_of(pair.link.port)[-2:]:
            here.execute(statement.encode())
    pair.old.resume()
    thread.join(END_S)
    assert [isinstance(error, psycopg.OperationalError) for error in told] == [True]


@contextmanager
def before_its_slot(pair: Handover) -> Iterator[None]:
    """A source that was just made looks once more, and would make its slot then."""
    with (
        psycopg.connect(pair.old.server.dsn) as here,
        psycopg.connect(pair.upstream.dsn) as there,
    ):
        for statement in source_of(pair.link.port):
            here.execute(statement.encode())
        there.execute("LOCK TABLE pg_publication")
        here.commit()
        _upstream_shows(pair, "application_name = 'feed_watch' AND wait_event_type = 'Lock'")
        pair.old.pause()
        yield


@contextmanager
def making_its_slot(pair: Handover) -> Iterator[None]:
    """The slot waits for a transaction upstream."""
    with (
        psycopg.connect(pair.old.server.dsn, autocommit=True) as here,
        psycopg.connect(pair.upstream.dsn) as there,
    ):
        there.execute("CREATE TABLE unrelated ()")
        for statement in source_of(pair.link.port):
            here.execute(statement.encode())
        _upstream_shows(pair, "query LIKE 'CREATE_REPLICATION_SLOT%' AND state = 'active'")
        pair.old.pause()
        yield


@contextmanager
def copying(pair: Handover) -> Iterator[None]:
    with (
        psycopg.connect(pair.old.server.dsn, autocommit=True) as here,
        psycopg.connect(pair.upstream.dsn, autocommit=True) as there,
    ):
        there.execute("CREATE TABLE a_large_one (id int PRIMARY KEY, t text)")
        there.execute(
            "INSERT INTO a_large_one SELECT i, repeat('x', 1000) FROM generate_series(1, 60000) i"
        )
        for statement in source_of(pair.link.port):
            here.execute(statement.encode())
        _upstream_shows(pair, "query LIKE 'COPY %' AND state = 'active'")
        pair.old.pause()
        _upstream_shows(pair, "query LIKE 'COPY %' AND state = 'active'")
        yield


# --- while it is read ----------------------------------------------------------------------------


@contextmanager
def streaming(pair: Handover) -> Iterator[None]:
    pair.create()
    pair.watch()
    pair.feed.progress()
    pair.old.pause()
    yield


@contextmanager
def with_a_backlog(pair: Handover) -> Iterator[None]:
    """Its connection is full: whoever sends to it cannot even say that it ends."""
    with streaming(pair):
        with psycopg.connect(pair.upstream.dsn, autocommit=True) as there:
            for n in range(6):
                there.execute(
                    "INSERT INTO loose SELECT %s, repeat('y', 10000) FROM generate_series(1, 1000)",
                    [10 + n],
                )
        yield


@contextmanager
def stalled(pair: Handover) -> Iterator[None]:
    """The upstream is away, also when the new one begins."""
    pair.create()
    pair.watch()
    pair.feed.progress()
    pair.upstream.stop("fast")
    with psycopg.connect(pair.old.server.dsn, autocommit=True) as here:
        until(lambda: _is_stalled(here))
    pair.old.pause()
    yield
    pair.upstream.start()


def _is_stalled(here: psycopg.Connection) -> bool:
    return here.execute("SELECT state FROM meridian.sources").fetchall() == [("stalled",)]


@contextmanager
def committing(pair: Handover) -> Iterator[None]:
    """A commit is under way: it becomes durable, and the old one does not hear of it."""
    with _commit_held(pair):
        pair.old.pause()
    yield


@contextmanager
def committing_in_vain(pair: Handover) -> Iterator[None]:
    """A commit is under way that never happens."""
    with _commit_held(pair) as stash:
        pair.old.pause()
        stash.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE " + HELD)
    yield


@contextmanager
def acknowledging(pair: Handover) -> Iterator[None]:
    """What is readable is acknowledged, and that is on its way to the upstream."""
    with _commit_held(pair):
        # What it has asked the upstream before is answered.
        pair.link.freeze_present()
    with psycopg.connect(pair.old.server.dsn, autocommit=True) as here:
        read(here)
        until(lambda: all(told < _acknowledged(here) for _, told in pair.slots()))
    pair.old.pause()
    yield
    pair.link.thaw()


def _acknowledged(here: psycopg.Connection) -> int:
    found = here.execute("SELECT (acknowledged ->> 'lsn')::bigint FROM meridian.sources").fetchone()
    assert found is not None
    return int(found[0])


HELD = "wait_event_type = 'Lock' AND query LIKE '%meridian.entries%' AND pid <> pg_backend_pid()"


@contextmanager
def _commit_held(pair: Handover) -> Iterator[psycopg.Connection]:
    """Within it, a commit of the source is under way in the stash, and does not end."""
    pair.create()
    pair.watch()
    pair.feed.progress()
    with (
        psycopg.connect(pair.stash) as holding,
        psycopg.connect(pair.stash, autocommit=True) as stash,
    ):
        holding.execute("SELECT FROM meridian.entries WHERE collection = 'feeds' FOR UPDATE")
        until(lambda: _is_held(stash))
        yield stash


def _is_held(stash: psycopg.Connection) -> bool:
    return bool(stash.execute("SELECT FROM pg_stat_activity WHERE " + HELD).fetchall())


def _upstream_shows(pair: Handover, condition: str) -> None:
    """Until some session there is in such a state."""
    query = f"SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {condition}"
    with contextlib.closing(psycopg.connect(pair.upstream.dsn, autocommit=True)) as there:
        until(lambda: there.execute(query.encode()).fetchall())
