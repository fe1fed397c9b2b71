"""The same histories on a stash in PostgreSQL, whose connections are cut, frozen and slow.

Not here: two coordinators on one stash (`tests/resilience/failover`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.resilience.faults import nemesis, workloads
from tests.resilience.faults.nemesis import Strike, Target
from tests.resilience.faults.running import REFERENCE, Plan, run
from tests.resilience.faults.workloads import Workload
from tests.support.proxy import Proxy, proxy
from tests.support.servers import meridian, postgres_server

AWAY_S = 1.0
"""Shorter than the server waits for its stash: it may go on without a restart."""


def while_away(name: str, take: Callable[[], None], give_back: Callable[[], None]) -> Strike:
    """Take the stash away for a while, under load; the server goes on when it is back."""

    async def strike(target: Target) -> None:
        await asyncio.to_thread(take)
        try:
            await asyncio.sleep(AWAY_S)
        finally:
            await asyncio.to_thread(give_back)
        await target.progress(10)
        assert target.server.is_running, target.server.log

    strike.__name__ = name
    return strike


def ways(link: Proxy) -> list[Strike]:
    """What may happen between a server and its stash."""
    return [
        while_away("cut", link.cut, link.mend),
        while_away("frozen", link.freeze, link.thaw),
        while_away("slow", lambda: link.delay(0.1), lambda: link.delay(0)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("workload", workloads.ALL, ids=lambda w: w.__name__)
def test_strictly_serializable_while_the_stash_is_away(
    tmp_path: Path, workload: type[Workload]
) -> None:
    with postgres_server() as server, proxy("127.0.0.1", server.port) as link:
        dsn = server.dsn.replace(f":{server.port}/", f":{link.port}/")
        strikes = [*ways(link), nemesis.kill, *ways(link)]
        places = ("--stash", dsn, "--warehouse", str(tmp_path / "warehouse"))
        plan = Plan(strikes, between=15, options=(*REFERENCE, *places))
        report = run(f"{workload.__name__}, stash away", tmp_path, workload(), plan)
    assert not report.findings, "\n".join(map(str, report.findings[:5]))


def test_a_signal_ends_the_server_while_the_stash_is_away(tmp_path: Path) -> None:
    with postgres_server() as stash:
        places = ("--stash", stash.dsn, "--warehouse", str(tmp_path / "warehouse"))
        quick = ("--set", "shutdown_grace_s=1", "--set", "shutdown_flush_s=1")
        with meridian(tmp_path, (*REFERENCE, *places, *quick)) as server:
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute("CREATE TABLE t (id int)")
                connection.execute("INSERT INTO t VALUES (1)")
            stash.stop()
            assert server.stop() == 1
            assert "the next start sees to it" in server.log
            assert "Traceback" not in server.log
            stash.start()
            server.start()
            with psycopg.connect(server.dsn) as connection:
                assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
            assert server.stop() == 0
