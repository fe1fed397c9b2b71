r"""psql's commands (\d, \dt+, \gdesc, \copy ..) print what they print on PostgreSQL 18.

`testdata/moved/commands.txt` lists them. Widths of columns, sizes, the superuser's name, ports and
clocks differ, and only PostgreSQL says where in its source an error was raised.
"""

import contextlib
import os
import re
import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.clients.drivers.moved import Peers
from tests.support.servers import postgres_program

LISTED: Final = Path(__file__).parent / "testdata" / "moved" / "commands.txt"
DIVIDER: Final = "---"
SHARE: Final = 0.95
"""Of the listed commands, how many must be the same."""
RESET: Final = "\\pset expanded off\n\\pset format aligned\n\\pset tuples_only off\n\\r\n"


def _sections() -> list[list[str]]:
    """Commands of `make test`, the others that are the same, and those that are not."""
    sections: list[list[str]] = [[]]
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line.startswith(DIVIDER):
            sections.append([])
        elif not line.startswith("#"):
            sections[-1].append(line)
    return sections


def _outputs(dsn: str, commands: Sequence[str]) -> dict[str, list[str]]:
    """What each command prints, without what differs for good reason."""
    script = "".join(
        f"\\echo @@{number}\n{command}\n{_end(command)}{RESET}"
        for number, command in enumerate(commands)
    )
    done = subprocess.run(
        [postgres_program("psql"), dsn, "-X", "-q"],
        input=f"\\set ON_ERROR_STOP 0\n{script}",
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "LC_ALL": "C", "PGCLIENTENCODING": "UTF8", "PAGER": "cat"},
        check=False,
    )
    parts = re.split(r"^@@(\d+)\n", done.stdout, flags=re.MULTILINE)
    numbered = zip(parts[1::2], parts[2::2], strict=True)
    return {commands[int(number)]: _compared(text) for number, text in numbered}


@contextlib.contextmanager
def with_the_same_names(peers: Peers) -> Generator[Peers, None, None]:
    """Both servers have the superusers and the databases of both."""
    rights = "superuser login createdb createrole replication bypassrls"
    with (
        psycopg.connect(peers.meridian, autocommit=True) as ours,
        psycopg.connect(peers.postgresql, autocommit=True) as theirs,
    ):
        ours.execute(f"create role postgres {rights}".encode())
        theirs.execute(f"alter role meridian {rights}".encode())
        theirs.execute("create database meridian")
        try:
            yield peers
        finally:
            ours.execute("drop role postgres")
            theirs.execute("drop database meridian")
            theirs.execute("alter role meridian nologin")


def _end(command: str) -> str:
    return "\\endpipeline\n" if command.startswith("\\startpipeline") else ""


def _compared(text: str) -> list[str]:
    text = re.sub(r"postgres|meridian", "-", text)
    text = re.sub(r"\d+ (kB|bytes|MB)", "size", text)
    text = re.sub(r"^LOCATION: .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ (Server Port|Backend PID) .*", r"\1", text, flags=re.MULTILINE)
    text = re.sub(r"^\w{3} \w{3} .* \(every", "(every", text, flags=re.MULTILINE)
    lines = [re.sub(r"[-+ ]*-{2,}[-+ ]*|\+$", "", line) for line in text.splitlines()]
    return [shown for line in lines if (shown := " ".join(line.split()))]


def _check(peers: Peers, commands: Sequence[str]) -> None:
    with with_the_same_names(peers):
        theirs = _outputs(peers.postgresql, commands)
        ours = _outputs(peers.meridian, commands)
    assert list(theirs) == list(commands), "psql ran all of them"
    different = [command for command in commands if ours.get(command) != theirs[command]]
    shown = [(command, theirs[command], ours.get(command)) for command in different[:3]]
    assert not different, (different, shown)


def test_commands_print_the_same(peers: Peers) -> None:
    _check(peers, _sections()[0])


@pytest.mark.slow
def test_all_commands_print_the_same(peers: Peers) -> None:
    _check(peers, _sections()[1])


def test_most_of_the_listed_commands_are_the_same() -> None:
    same, *others = [len(section) for section in _sections()[1:]]
    same += len(_sections()[0])
    assert same >= SHARE * (same + sum(others))
