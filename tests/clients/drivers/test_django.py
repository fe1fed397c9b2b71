"""A Django project from its first migration to its last row, as on PostgreSQL 18.

`django_project/` is played against a server in a process of its own, for Django is configured once
a process; what it prints was recorded from PostgreSQL (`python -m
tests.clients.drivers.test_django`). CREATE DATABASE is not Meridian's, so Django's test runner
needs `--keepdb`.
"""

import subprocess
import sys
from pathlib import Path

from tests.support.servers import postgres
from tests.support.stack import serving

RECORDED = Path(__file__).parent / "testdata" / "django.out"


def _played(dsn: str) -> str:
    command = [sys.executable, "-m", "tests.clients.drivers.django_project.play", dsn]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_project_does_what_it_does_on_postgresql() -> None:
    with serving() as dsn:
        assert _played(dsn).splitlines() == RECORDED.read_text().splitlines()


if __name__ == "__main__":
    with postgres() as address:
        RECORDED.write_text(_played(address))
