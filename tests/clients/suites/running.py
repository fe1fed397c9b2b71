"""Run a suite's program: set it up if its folder has changed, start a server, read what it prints.

    folder ──digest──▶ .cache/clients/NAME/set_up ── the same? ──▶ the program, on one server
                                └ another one: the commands of `set_up` first

A fresh server is started for each run of a program (Q5): Meridian as users start it, without a JVM.
"""

import contextlib
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.clients.suites.outcomes import Outcome, parse_outcomes
from tests.clients.suites.suite import Suite
from tests.support.servers import meridian, postgres

SERVERS = ("postgresql", "meridian")
STAMP = "set_up"
SET_UP_SECONDS_MAX = 1800
COMPLAINT_LINES_MAX = 20


class NotRun(Exception):
    """The suite cannot run on this machine (Q3); says why."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a suite's program on one server."""

    server: str
    outcomes: tuple[Outcome, ...]
    complaints: tuple[str, ...]
    """Lines that are no outcome, and an end that was no good one."""


def prepare(suite: Suite) -> None:
    """Set the suite up, unless nothing has changed since; NotRun if that cannot be."""
    if lacking := suite.lacks():
        raise NotRun(f"this machine lacks {', '.join(lacking)}")
    stamp = suite.cache / STAMP
    digest = _digest(suite)
    if stamp.exists() and stamp.read_text() == digest:
        return
    suite.cache.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **suite.environment}
    for command in map(suite.filled, suite.set_up):
        try:
            done = subprocess.run(
                command,
                cwd=suite.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
                timeout=SET_UP_SECONDS_MAX,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotRun(f"set-up failed: {type(error).__name__}") from error
        if done.returncode != 0:
            (suite.cache / "set_up.log").write_text(done.stdout)
            last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
            raise NotRun(f"set-up failed: {Path(command[0]).name}: {last.strip()}")
    stamp.write_text(digest)


def _digest(suite: Suite) -> str:
    """Of the commands, and of all files of the folder."""
    made = hashlib.sha256(repr([suite.set_up, sorted(suite.environment.items())]).encode())
    for path in sorted(suite.folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            made.update(path.relative_to(suite.folder).as_posix().encode())
            made.update(path.read_bytes())
    return made.hexdigest()


def run_on(suite: Suite, server: str) -> Ran:
    """Run the program on a fresh server (Q5)."""
    with _started(server) as dsn:
        return _run_program(suite, server, {**environment_of(dsn), "SUITE_SERVER": server})


@contextlib.contextmanager
def _started(server: str) -> Iterator[str]:
    """The DSN of a fresh server of this name."""
    with contextlib.ExitStack() as stack:
        if server == "postgresql":
            yield stack.enter_context(postgres(["max_prepared_transactions=10", "fsync=off"]))
            return
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="meridian-"))
        yield stack.enter_context(meridian(Path(place), ["--spark-master", "none"])).dsn


def environment_of(dsn: str) -> dict[str, str]:
    """A server as libpq's variables; what the caller's own variables say is not left over."""
    parts = urlsplit(dsn)
    others = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {
        **others,
        "PGHOST": parts.hostname or "",
        "PGPORT": str(parts.port),
        "PGUSER": parts.username or "",
        "PGDATABASE": parts.path.removeprefix("/"),
        "PGPASSWORD": parts.password or "",
    }


def _run_program(suite: Suite, server: str, environment: Mapping[str, str]) -> Ran:
    log = suite.cache / f"stderr.{server}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as errors, tempfile.TemporaryFile("w+") as printed:
        program = subprocess.Popen(
            suite.filled(suite.run),
            cwd=suite.folder,
            env={**environment, **suite.environment},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=errors,
        )
        try:
            code = program.wait(suite.seconds_max)
            ending = f"the program ended with {code}" if code else ""
        except subprocess.TimeoutExpired:
            ending = f"the program did not end within {suite.seconds_max} seconds"
        finally:
            program.kill()
            program.wait()
        printed.seek(0)
        outcomes, wrong = parse_outcomes(printed)
    complaints = [f"no outcome: {line[:200]}" for line in wrong[:COMPLAINT_LINES_MAX]]
    complaints += [ending] if ending else []
    return Ran(server, tuple(outcomes), tuple(complaints))
