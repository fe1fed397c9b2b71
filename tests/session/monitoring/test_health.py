"""Probes are told whether a server leads, recovers, stands by or stops."""

import asyncio
import signal
import socket
import time
from pathlib import Path
from typing import cast

import psycopg
import pytest
import uvloop

from compute.executor import Executor
from coordinator.config import Settings, SettingsError
from coordinator.monitoring.health import HealthState
from coordinator.monitoring.observation import ObservedJvm
from coordinator.server.engines import LateEngine, observed_jvm
from coordinator.server.http_listening import http_listening
from tests.session.monitoring.http_client import PATIENCE_S, get
from tests.support.servers import Meridian, free_port

NO_JVM = ("--spark-master", "none")


def _told(port: int, *, path: str = "/readyz") -> tuple[int, str]:
    answer = get(port, path)
    return answer.status, answer.text.strip()


def _wait_for(port: int, expected: tuple[int, str]) -> list[tuple[int, str]]:
    """What probes are told until they are told that."""
    deadline, seen = time.monotonic() + PATIENCE_S, list[tuple[int, str]]()
    while time.monotonic() < deadline:
        try:
            told = _told(port)
        except OSError:
            told = (0, "")  # it does not listen yet
        if told not in seen:
            seen.append(told)
        if told == expected:
            return seen
        time.sleep(0.02)
    raise AssertionError(f"probes were told {seen}")


def test_a_server_that_recovers_says_so() -> None:
    async def run() -> None:
        port = free_port()
        settings = Settings(http_listen=f"127.0.0.1:{port}")
        async with http_listening(settings) as observer:
            for path in ("/healthz", "/readyz"):
                told = await asyncio.to_thread(_told, port, path=path)
                assert told == (503, "recovering")
            metrics = (await asyncio.to_thread(get, port, "/metrics")).text
            assert 'meridian_health{state="recovering"} 1.0' in metrics
            assert "meridian_connections" not in metrics
            observer.health.state = HealthState.READY
            assert await asyncio.to_thread(_told, port) == (200, "ready")

    uvloop.run(run())


@pytest.mark.parametrize(
    ("token", "said"),
    [(None, "cannot read "), ("\n", "has no token"), ("t", "cannot listen on 127.0.0.1:")],
)
def test_what_cannot_listen_does_not_start(tmp_path: Path, token: str | None, said: str) -> None:
    file = tmp_path / "token"
    if token is not None:
        file.write_text(token)

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            where = f"127.0.0.1:{taken.getsockname()[1]}"
            async with http_listening(Settings(http_listen=where, http_token_file=str(file))):
                raise AssertionError("it listens")

    with pytest.raises(SettingsError, match=said):
        uvloop.run(run())


class _Spark:
    """The JVM's part of an engine."""

    is_ready, starts, pid = True, 3, 42


def test_the_jvm_is_observed_once_it_was_started() -> None:
    settings = Settings(spark_heap_mb=7)
    engine = LateEngine("spark", lambda: cast(Executor, _Spark()))
    assert observed_jvm(settings, engine) == ObservedJvm(False, 0, None, 7 << 20)
    asyncio.run(engine.warm())
    assert observed_jvm(settings, engine) == ObservedJvm(True, 3, 42, 7 << 20)
    assert observed_jvm(Settings(spark_start="off"), engine).starts == 0


def test_leader_standby_and_stop(tmp_path: Path) -> None:
    ports = free_port(), free_port()
    options = [(*NO_JVM, "--set", f"http_listen=127.0.0.1:{port}") for port in ports]
    leader, standby = (Meridian(tmp_path, each) for each in options)
    try:
        leader.launch()
        seen = _wait_for(ports[0], (200, "ready"))
        assert set(seen) <= {(0, ""), (503, "recovering"), (200, "ready")}
        leader.wait_until_ready()
        standby.launch("--standby")
        assert _wait_for(ports[1], (503, "standing by"))[-1] == (503, "standing by")
        assert _told(ports[1], path="/healthz") == (503, "standing by")
        leader.kill()
        seen = _wait_for(ports[1], (200, "ready"))
        assert set(seen) <= {(503, "standing by"), (503, "recovering"), (200, "ready")}
        dsn = standby.wait_until_ready()
        with psycopg.connect(dsn) as open_transaction:
            open_transaction.execute("SELECT 1")
            standby.signal(signal.SIGTERM)
            _wait_for(ports[1], (503, "stopping"))
            assert _told(ports[1], path="/healthz") == (503, "stopping")
            open_transaction.execute("SELECT 2")
            open_transaction.commit()
        assert standby.wait() == 0
    finally:
        leader.kill()
        standby.kill()
