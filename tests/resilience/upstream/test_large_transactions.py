"""One upstream transaction that is larger than memory, in a process of its own, killed meanwhile.

Upstream is synchronous: when its COMMIT has returned, a strict read here is equal to it.
"""

import threading
from pathlib import Path

import psycopg
import pytest

from tests.resilience.upstream.feed import SETTINGS
from tests.resilience.upstream.wide import (
    OPTIONS,
    PEAK_MB_MAX,
    SUMS,
    commit_wide,
    feed_wide,
)
from tests.support.servers import meridian, postgres_server
from tests.support.synchronous import commits_wait_for


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "kills"), [(300_000, 2), (5_000_000, 0)])
def test_a_large_transaction_is_whole(tmp_path: Path, rows: int, kills: int) -> None:
    with postgres_server(SETTINGS) as upstream, meridian(tmp_path, OPTIONS) as server:
        feed_wide(upstream, server)
        commits_wait_for(upstream.dsn, "feed")
        peaks: list[int] = []
        writer = threading.Thread(target=commit_wide, args=(upstream, rows))
        writer.start()
        for _ in range(kills):
            writer.join(5)
            peaks.append(server.peak_mb)
            server.kill()
            server.start()
        writer.join()
        with (
            psycopg.connect(upstream.dsn) as there,
            psycopg.connect(server.dsn) as here,
        ):
            wanted = there.execute(SUMS.format("wide").encode()).fetchall()
            assert here.execute(SUMS.format("shop.wide").encode()).fetchall() == wanted
        peaks.append(server.peak_mb)
        assert max(peaks) < PEAK_MB_MAX, peaks
