"""L4 of `ports.py`: who connects to a server that is about to lead waits; a standby refuses."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.config import Settings, SettingsError
from coordinator.server.ports import take_ports
from tests.support.servers import free_port, meridian

HOST = "127.0.0.1"
WAIT_S = 120.0
RULES = f"host all all {HOST}/32 trust\n"
STARTUP = b"user\0meridian\0database\0meridian\0\0"


def greeting() -> bytes:
    """A start-up message of protocol 3.0."""
    return struct.pack("!II", 8 + len(STARTUP), 3 << 16) + STARTUP


def connected(port: int) -> socket.socket:
    """A connection, as soon as somebody listens."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return socket.create_connection((HOST, port), WAIT_S)
        except ConnectionRefusedError:
            assert time.monotonic() < until, "nobody listens"
            time.sleep(0.01)


@contextlib.contextmanager
def starting(place: Path, port: int, rules: Path) -> Iterator[subprocess.Popen[str]]:
    """A server of its own process, whose start stands still while it reads its rules."""
    command = [
        *(sys.executable, "-m", "coordinator.main", "serve", "--data-dir", str(place / "data")),
        *("--listen", f"{HOST}:{port}", "--spark-master", "none", "--set", f"hba_file={rules}"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_who_connects_before_ready_waits_and_is_served(tmp_path: Path) -> None:
    rules, port = tmp_path / "rules", free_port()
    os.mkfifo(rules)
    with starting(tmp_path, port, rules) as process, connected(port) as early:
        early.sendall(greeting())
        rules.write_text(RULES)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        assert early.recv(1) == b"R", "it was asked for nothing, and let in"


def test_who_waits_is_told_when_the_start_fails(tmp_path: Path) -> None:
    rules, port = tmp_path / "rules", free_port()
    os.mkfifo(rules)
    with starting(tmp_path, port, rules) as process, connected(port) as early:
        early.sendall(greeting())
        rules.write_text("nonsense\n")
        assert process.wait(WAIT_S) == 1
        with contextlib.suppress(ConnectionResetError):
            assert early.recv(1) == b""


def test_a_standby_refuses_until_it_leads(tmp_path: Path) -> None:
    port = free_port()
    with meridian(tmp_path, ("--spark-master", "none")) as leader:
        data = ("--data-dir", str(leader.data), "--listen", f"{HOST}:{port}")
        command = [sys.executable, "-m", "coordinator.main", "serve", *data, "--standby"]
        with subprocess.Popen(
            [*command, "--spark-master", "none"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as standby:  # fmt: skip
            try:
                assert standby.stderr is not None
                assert "standing by" in standby.stderr.readline()
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((HOST, port), WAIT_S)
                leader.kill()
                with connected(port) as client:
                    client.sendall(greeting())
                    assert client.recv(1) == b"R"
            finally:
                standby.kill()


def test_a_port_that_is_taken_is_not_shared() -> None:
    with socket.create_server((HOST, 0)) as taken:
        listen = f"{HOST}:{taken.getsockname()[1]}"
        with pytest.raises(SettingsError, match=f"cannot listen on {listen}: address already in"):
            take_ports(Settings(listen=listen))


def test_hosts_without_a_port_of_their_own_get_that_of_the_first() -> None:
    ports = take_ports(Settings(listen=f"{HOST}:0,127.0.0.2:0"))
    try:
        assert len({one.getsockname()[1] for one in ports}) == 1
        assert [one.getsockname()[0] for one in ports] == [HOST, "127.0.0.2"]
        with socket.create_connection(ports[1].getsockname()):
            pass
    finally:
        for one in ports:
            one.close()
