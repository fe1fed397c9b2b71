"""One upstream transaction that is larger than memory, in a process of its own, killed meanwhile.

Upstream is synchronous: when its COMMIT has returned, a strict read here is equal to it.
"""

import threading
from pathlib import Path

import psycopg
import pytest

from tests.resilience.upstream.feed import SETTINGS, make_synchronous, source_of
from tests.support.servers import Meridian, Postgres, meridian, postgres_server

OPTIONS = (
    "--spark-master", "none", "--set", "source_hosts=127.0.0.1", "--set", "local_memory_mb=256",
)  # fmt: skip
SCHEMA = (
    "CREATE TABLE wide (id int PRIMARY KEY, a int, b text, c numeric(12,2), d timestamptz)",
    "INSERT INTO wide SELECT i, i, 'before', 1, '2026-01-01' FROM generate_series(1, 1000) i",
    "CREATE PUBLICATION everything FOR ALL TABLES",
)
SUMS = "SELECT count(*), sum(id::int8), sum(a::int8), min(b), max(b), sum(c) FROM {}"
PEAK_KB_MAX = 1 << 20


def _commit(upstream: Postgres, rows: int) -> None:
    """Inserts, and changes of what was inserted."""
    with psycopg.connect(upstream.dsn) as there:
        there.execute(
            b"INSERT INTO wide SELECT i, i %% 97, 'w' || i, i / 7.0, '2026-02-03' "
            b"FROM generate_series(1001, %d) i" % rows
        )
        there.execute(b"UPDATE wide SET a = a + 1, b = b || 'u' WHERE id % 10 = 0")
        there.execute(b"UPDATE wide SET id = -id WHERE id % 100 = 1")
        there.execute(b"DELETE FROM wide WHERE id % 15 = 0")


def _peak_kb(server: Meridian) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text().split("VmHWM:")[1]
    return int(status.split()[0])


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "kills"), [(300_000, 2)])
def test_a_large_transaction_is_whole(tmp_path: Path, rows: int, kills: int) -> None:
    with postgres_server(SETTINGS) as upstream, meridian(tmp_path, OPTIONS) as server:
        with psycopg.connect(upstream.dsn, autocommit=True) as there:
            for statement in SCHEMA:
                there.execute(statement.encode())
        with psycopg.connect(server.dsn, autocommit=True) as here:
            for statement in source_of(upstream.port):
                here.execute(statement.encode())
            assert here.execute("SELECT count(*) FROM shop.wide").fetchone() == (1000,)
        make_synchronous(upstream)
        peaks: list[int] = []
        writer = threading.Thread(target=_commit, args=(upstream, rows))
        writer.start()
        for _ in range(kills):
            writer.join(5)
            peaks.append(_peak_kb(server))
            server.kill()
            server.start()
        writer.join()
        with (
            psycopg.connect(upstream.dsn) as there,
            psycopg.connect(server.dsn) as here,
        ):
            wanted = there.execute(SUMS.format("wide").encode()).fetchall()
            assert here.execute(SUMS.format("shop.wide").encode()).fetchall() == wanted
        peaks.append(_peak_kb(server))
        assert max(peaks) < PEAK_KB_MAX, peaks
