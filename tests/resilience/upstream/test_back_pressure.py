"""More than memory takes, and nowhere to put it: memory stays below its limit, clients are served,
and everything comes in the end.

Each test prints the server's peak (`pytest -s`).
"""

import itertools
import time
from pathlib import Path

import psycopg
import pytest

from tests.resilience.faults.preload import Faults
from tests.resilience.upstream.feed import SETTINGS
from tests.resilience.upstream.wide import (
    OPTIONS,
    PEAK_MB_MAX,
    assert_equal,
    commit_often,
    commit_wide,
    feed_wide,
)
from tests.support.proxy import proxy
from tests.support.servers import Meridian, Postgres, meridian, postgres_server

AWAY_S = 60.0


def _served(server: Meridian) -> None:
    """Another client is, whatever the source does."""
    with psycopg.connect(server.dsn, autocommit=True) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)


def _commit_until(end: float, upstream: Postgres, server: Meridian | None = None) -> None:
    for first in itertools.count(10_000_000, 10_000):
        if time.monotonic() > end:
            return
        commit_often(upstream, 200, 5, first=first)
        if server is not None:
            _served(server)


def _state(server: Meridian) -> tuple[object, ...] | None:
    with psycopg.connect(server.dsn, autocommit=True) as client:
        return client.execute("SELECT state, code FROM meridian.sources").fetchone()


def _report(name: str, server: Meridian) -> None:
    print(f"{name}: {server.peak_mb} MiB")
    assert server.peak_mb < PEAK_MB_MAX


@pytest.mark.slow
def test_a_backlog_of_many_transactions(tmp_path: Path) -> None:
    with postgres_server(SETTINGS) as upstream, meridian(tmp_path, OPTIONS) as server:
        feed_wide(upstream, server)
        assert server.stop() == 0
        commit_often(upstream, 40_000, 50)
        commit_wide(upstream, 200_000, first=3_000_000)
        server.start()
        assert_equal(upstream, server)
        _report("backlog", server)


@pytest.mark.slow
def test_a_stash_that_is_away_for_a_minute(tmp_path: Path) -> None:
    """It stands still: nobody is told that it is gone."""
    with (
        postgres_server() as stash,
        proxy("127.0.0.1", stash.port) as link,
        postgres_server(SETTINGS) as upstream,
    ):
        dsn = stash.dsn.replace(f":{stash.port}/", f":{link.port}/")
        places = ("--stash", dsn, "--warehouse", str(tmp_path / "warehouse"))
        with meridian(tmp_path, (*OPTIONS, *places)) as server:
            feed_wide(upstream, server)
            link.freeze()
            until = time.monotonic() + AWAY_S
            commit_often(upstream, 10_000, 50)
            commit_wide(upstream, 300_000, first=2_000_000)
            commit_often(upstream, 10_000, 50, first=3_000_000)
            _commit_until(until, upstream)
            assert server.is_running, server.log
            link.thaw()
            assert_equal(upstream, server)
            _served(server)
            _report("stash away", server)


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    """The source stalls, also within a large transaction; it goes on without a restart."""
    faults = Faults(tmp_path)
    with (
        postgres_server(SETTINGS) as upstream,
        meridian(faults.root, OPTIONS, faults.environment) as server,
    ):
        feed_wide(upstream, server)
        faults.leave_space(3 << 20)
        until = time.monotonic() + AWAY_S / 2
        commit_often(upstream, 4_000, 50)
        commit_wide(upstream, 300_000, first=2_000_000)
        _commit_until(until, upstream, server)
        assert faults.refused
        assert _state(server) in (("stalled", "53100"), ("starting", "53100"), ("running", None))
        faults.leave_space(None)
        assert_equal(upstream, server)
        _report("full disk", server)
