"""`meridian doctor`: of a server that runs, stands, is stopped, was killed, or is broken."""

import asyncio
import hashlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from coordinator.config import Settings
from coordinator.monitoring.health import Health, HealthState
from coordinator.monitoring.observation import ServerObserver
from coordinator.server import diagnostics
from coordinator.server.diagnostics import DOCTOR_SOCKET, answering_doctor
from coordinator.server.doctor import doctor
from storage.layout import DataDirectory
from tests.support.servers import Meridian, meridian

SECRET = "hunter2"
OPTIONS = ("--spark-master", "none")


@dataclass(frozen=True)
class Told:
    """What a doctor has said, and the archive that it has made."""

    said: str
    parts: Mapping[str, str]
    path: Path

    @property
    def findings(self) -> list[str]:
        lines = self.parts["report"].splitlines()
        return [line.partition(". ")[2] for line in lines if line.partition(".")[0].isdigit()]


def unpacked(path: Path, said: str) -> Told:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    parts: dict[str, str] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            folder, _, name = member.name.rpartition("/")
            assert folder.startswith("meridian-doctor-")
            parts[name.removesuffix(".txt")] = file.read().decode()
    assert said.startswith(parts["report"])
    assert str(path) in said
    return Told(said, parts, path)


def examine(output: Path, *options: str, environment: Mapping[str, str] | None = None) -> Told:
    ran = subprocess.run(
        [str(Path(sys.executable).parent / "meridian"), "doctor", "--output", output, *options],
        capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    return unpacked(output, ran.stdout)


def contents(place: Path) -> dict[str, str]:
    """What each file below is, and who may read it."""
    return {
        str(path.relative_to(place)): f"{hashlib.sha256(path.read_bytes()).hexdigest()}"
        f" {path.stat().st_mode}"
        for path in place.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meridian]:
    options = (*OPTIONS, "--set", "app.api_token=hunter2", "--set", "log_statement=all")
    environment = {"MERIDIAN_PASSWORD": f"first-{SECRET}"}
    # A path that is too long for a socket is no obstacle.
    place = tmp_path_factory.mktemp("d" * 100)
    with meridian(place, options, environment=environment) as server:
        yield server


def test_a_server_that_runs(running: Meridian, tmp_path: Path) -> None:
    dsn = running.dsn.replace("meridian@", f"meridian:first-{SECRET}@")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create role ann login password 'hunter2'")
        connection.execute("create table t (id int)")
        connection.execute("create source s from generator counter (rows per second 10)")
        connection.execute("create table counter from source s")
        connection.execute("alter source s pause")
        told = examine(tmp_path / "a.tar.gz", "--data-dir", str(running.data))
        connection.execute("drop source s cascade")
    parts = told.parts
    assert list(parts) == [
        *("report", "versions", "settings", "process", "server", "health", "log", "stacks"),
        *("troubles", "metrics"),
    ]
    assert parts["health"] == "ready\n"
    assert f"pid {running.pid}" in parts["server"]
    assert f"pid {running.pid}" in parts["process"]
    assert "\nthread " in parts["process"]
    assert "task " in parts["stacks"]
    assert "thread doctor" in parts["stacks"]
    assert "uvloop" in parts["stacks"]
    assert "meridian_tables 3.0" in parts["metrics"]
    assert "create table t (id int)" in parts["log"]
    assert "psycopg" in parts["versions"]
    # Of the server, and not of the doctor's own command line.
    assert "log_statement = 'all'" in parts["settings"]
    assert parts["troubles"] == "source public.s is paused\n"
    assert "source public.s is paused\n" in told.said
    # The machine may be slow or full: only these may be said of a healthy server.
    benign = ("the disk of", "the event loop", "the log has")
    assert [text for text in told.findings if not text.startswith(benign)] == []
    everything = [told.said, told.path.read_bytes().decode(errors="replace"), *parts.values()]
    assert [text for text in everything if SECRET in text] == []
    assert sum(text.count("<hidden>") for text in parts.values()) >= 2


def test_a_server_that_is_stopped_by_a_signal(running: Meridian, tmp_path: Path) -> None:
    running.signal(signal.SIGSTOP)
    try:
        ran = unpacked_by_thread(running.data, tmp_path)
    finally:
        running.signal(signal.SIGCONT)
    assert ran.findings[0] == f"the server, process {running.pid}, is stopped: send it SIGCONT"
    assert "stacks" not in ran.parts


def unpacked_by_thread(data: Path, place: Path) -> Told:
    """Without the patience that a person has."""
    code = (
        "import coordinator.server.doctor as d, sys; d.DOCTOR_PATIENCE_S = 0.5;"
        "from coordinator.config import Settings;"
        "d.doctor(Settings(data_dir=sys.argv[1]), refused=None, log=None, output=sys.argv[2])"
    )
    path = place / "b.tar.gz"
    ran = subprocess.run(
        [sys.executable, "-c", code, data, path], capture_output=True, text=True, check=True
    )
    return unpacked(path, ran.stdout)


def test_it_overwrites_nothing(running: Meridian, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("mine")
    settings = Settings(data_dir=str(running.data))
    assert doctor(settings, refused=None, log=None, output=str(path)) == 1
    assert path.read_text() == "mine"


def test_its_socket_is_for_the_server_s_user(running: Meridian) -> None:
    found = (running.data / DOCTOR_SOCKET).stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_uid == os.geteuid()


@pytest.mark.parametrize(("other", "is_told"), [(0, True), (1, False)])
def test_others_are_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: int, is_told: bool
) -> None:
    one, peer = socket.socketpair(socket.AF_UNIX)
    with one, peer:
        assert diagnostics._user_of(one) == os.geteuid()
    monkeypatch.setattr(diagnostics, "_user_of", lambda _client: os.geteuid() + other)

    async def serve() -> bytes:
        observer = ServerObserver(Health())
        with answering_doctor(Settings(data_dir=str(tmp_path)), tmp_path, observer):
            reader, writer = await asyncio.open_unix_connection(tmp_path / DOCTOR_SOCKET)
            told = await reader.read()
            writer.close()
            return told

    assert (asyncio.run(serve()) != b"") == is_told


# --- no server ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Meridian:
    with meridian(tmp_path_factory.mktemp("killed"), OPTIONS) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table t (id int)")
            connection.execute("insert into t values (1), (2)")
        assert server.stop() == 0
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("insert into t values (3)")
        server.kill()
    return server


def test_after_a_kill(killed: Meridian, tmp_path: Path) -> None:
    (killed.data / "tmp" / "spilled").write_text("of the dead")
    log = killed.data.parent / "stderr"
    log.write_text(f"{log.read_text()}x ERROR meridian.driver postgresql://a:{SECRET}@h broke\n")
    before = contents(killed.data)
    told = examine(tmp_path / "a.tar.gz", "--data-dir", str(killed.data), "--log", str(log))
    assert told.findings[0] == f"no server runs on the data directory {killed.data}"
    assert told.findings[-1].endswith("ERROR meridian.driver postgresql://a:<hidden>@h broke")
    assert told.parts["check"] == "checked 1 tables: ok\n"
    assert "stacks" not in told.parts
    assert SECRET not in "".join(told.parts.values())
    after = contents(killed.data)
    # SQLite brings its log into its file, which says the same.
    for name in ("lock", "stash.db", "stash.db-wal", "stash.db-shm", "stash.db.lock"):
        before.pop(name, None), after.pop(name, None)
    assert after == before


def test_a_missing_file_of_a_table(killed: Meridian, tmp_path: Path) -> None:
    file = next((killed.data / "warehouse").glob("*/*.parquet"))
    kept = file.rename(tmp_path / "kept")
    try:
        told = examine(tmp_path / "a.tar.gz", "--data-dir", str(killed.data))
    finally:
        kept.rename(file)
    (found,) = [text for text in told.findings if "meridian check fails: error: " in text]
    assert told.findings.index(found) == 1
    assert "checked 1 tables: 1 errors\n" in told.parts["check"]


def test_a_stash_that_is_no_stash(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "stash.db").write_text("garbage" * 1_000)
    told = examine(tmp_path / "a.tar.gz", "--data-dir", str(data))
    assert told.findings[0] == f"no server runs on the data directory {data}"
    assert told.findings[1].startswith("meridian check fails: ")
    assert (data / "stash.db").read_text() == "garbage" * 1_000


def test_nothing_there_and_settings_that_are_refused(tmp_path: Path) -> None:
    data = tmp_path / "nowhere"
    options = ("--data-dir", str(data), "--set", f"nonsense={SECRET}", "--set", "listen=x")
    told = examine(tmp_path / "a.tar.gz", *options)
    assert told.findings[0].startswith("the settings are refused, so no server starts: ")
    assert told.findings[1] == f"there is no data directory {data}: is --data-dir right?"
    assert not data.exists()


# --- a loop that stands ---------------------------------------------------------------------------


def test_a_loop_that_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diagnostics, "LOOP_S", 0.2)
    stands, go_on = threading.Event(), threading.Event()
    settings = Settings(data_dir=str(tmp_path / "data"))
    directory = DataDirectory.open(settings.data_path)

    async def serve() -> None:
        with answering_doctor(settings, directory.root, ServerObserver(Health())):
            stands.set()
            go_on.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert stands.wait(60)
        path = tmp_path / "a.tar.gz"
        assert doctor(settings, refused=None, log=None, output=str(path)) == 0
    finally:
        go_on.set()
        thread.join()
        directory.close()
    told = unpacked(path, capsys.readouterr().out)
    assert told.findings[0] == "the event loop stands still: stacks.txt says where"
    assert "go_on.wait()" in told.parts["stacks"]
    assert told.parts["health"] == "recovering\n"
    assert "metrics" not in told.parts
    assert not (directory.root / DOCTOR_SOCKET).exists()


def test_an_observation_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug of ours costs its own part, and is no loop that stands."""
    settings = Settings(data_dir=str(tmp_path / "data"))
    directory = DataDirectory.open(settings.data_path)
    path = tmp_path / "a.tar.gz"

    def broken(_observed: object) -> str:
        raise ValueError("a bug: password=hunter2")

    monkeypatch.setattr(diagnostics, "_metrics", broken)

    async def serve() -> int:
        observer = ServerObserver(Health())
        observer.health.state = HealthState.READY
        with answering_doctor(settings, directory.root, observer):
            return await asyncio.to_thread(
                doctor, settings, refused=None, log=None, output=str(path)
            )

    assert asyncio.run(serve()) == 0
    directory.close()
    told = unpacked(path, capsys.readouterr().out)
    assert told.findings[0] == "a part of the server's answer failed: failure.txt says where"
    assert "ValueError: a bug: password=<hidden>" in told.parts["failure"]


def test_a_directory_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    path = tmp_path / "a.tar.gz"
    assert doctor(Settings(data_dir=str(tmp_path)), refused=None, log=None, output=str(path)) == 0
    told = unpacked(path, capsys.readouterr().out)
    assert told.findings[0].endswith("cannot be read: run the doctor as the server's user")


def test_a_server_that_recovers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"))
    directory = DataDirectory.open(settings.data_path)
    path = tmp_path / "a.tar.gz"

    async def serve() -> int:
        with answering_doctor(settings, directory.root, ServerObserver(Health())):
            return await asyncio.to_thread(
                doctor, settings, refused=None, log=None, output=str(path)
            )

    assert asyncio.run(serve()) == 0
    told = unpacked(path, capsys.readouterr().out)
    assert told.findings[0] == "the server is not ready: it is recovering"
    directory.close()


def test_a_process_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"))
    directory = DataDirectory.open(settings.data_path)
    path = tmp_path / "a.tar.gz"
    assert doctor(settings, refused=None, log=None, output=str(path)) == 0
    directory.close()
    told = unpacked(path, capsys.readouterr().out)
    assert told.findings[0].startswith(f"process {os.getpid()} does not answer (")
    assert "check" not in told.parts
