"""Some clients of the Python suite on Meridian, with the packages that development has anyway.

The cases of their allow files pass, but for those that need a package which is not here. `make
clients` runs all clients, beside PostgreSQL.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.suites.outcomes import parse_outcomes
from tests.clients.suites.running import environment_of
from tests.clients.suites.suite import SUITES
from tests.clients.suites.verdicts import allowed
from tests.support.servers import meridian

CLIENTS = SUITES / "python" / "clients"
FILES = {
    "psycopg": ("psycopg_cases.py", "psycopg_waiting_cases.py"),
    "asyncpg": ("asyncpg_cases.py",),
    "sqlalchemy": ("sqlalchemy_cases.py",),
    "alembic": ("alembic_cases.py",),
    "django": ("django_cases.py",),
}
NOT_HERE = ("psycopg_pool", "greenlet")
"""Packages that the suite's environment has, and that of development lacks."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server of its own, started as users start it, without a JVM."""
    place: Path = tmp_path_factory.mktemp("server")
    with meridian(place, ["--spark-master", "none"]) as server:
        yield environment_of(server.dsn)


@pytest.mark.parametrize("client", FILES)
def test_cases_that_must_pass(environment: dict[str, str], client: str) -> None:
    lines: list[str] = []
    for name in FILES[client]:
        done = subprocess.run(
            [sys.executable, str(CLIENTS / name)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines += done.stdout.splitlines()
    outcomes, wrong = parse_outcomes(lines)
    assert not wrong
    reasons = {outcome.case: outcome.reason for outcome in outcomes}
    broken = {case: reasons.get(case, "not reported") for case in allowed(client)}
    assert len(broken) >= 10
    broken = {
        case: reason
        for case, reason in broken.items()
        if reason and not any(package in reason for package in NOT_HERE)
    }
    assert not broken
