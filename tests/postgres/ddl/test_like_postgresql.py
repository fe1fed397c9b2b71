"""Definitions as PostgreSQL has them: one script, its answers recorded from PostgreSQL 18.

A script in `testdata/` is a line a statement; `#` begins a comment. Compared are tags, rows, column
names, notices, and errors with all of their fields. Run as a program, this module asks PostgreSQL
and records all scripts, or those that are named; `tests/postgres/transactions` plays them, too, and
has records of its own.

Lines after `# meridian` have no answer of PostgreSQL's: what Meridian refuses, or has of its own;
`REWRITE=1` records them.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest

from tests.support import diagnostics
from tests.support.alike import Alike, is_of_both
from tests.support.servers import postgres
from tests.support.stack import WITHOUT_CUTS, serving

DIRECTORY = Path(__file__).parent / "testdata"
SCRIPTS = sorted(path.stem for path in DIRECTORY.glob("*.sql"))


def statements(name: str) -> tuple[list[str], list[str]]:
    """The statements of a script: those compared with PostgreSQL, and those of Meridian alone."""
    both, _, ours = (DIRECTORY / f"{name}.sql").read_text().partition("# meridian\n")
    return _lines(both), _lines(ours)


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def answers(dsn: str, lines: Sequence[str]) -> Iterator[str]:
    """What a server says, statement by statement."""
    place = psycopg.conninfo.make_conninfo(dsn, user="postgres", dbname="postgres")
    with psycopg.connect(place, autocommit=True) as connection:
        asking = Asking(connection)
        yield from map(asking.answer, lines)


class Asking:
    """One connection, and what it is told."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self.connection = connection
        self._notices: list[str] = []
        self._alike = Alike()
        connection.add_notice_handler(self._told)

    def _told(self, notice: "psycopg.errors.Diagnostic") -> None:
        if is_of_both(notice):
            self._notices.append(diagnostics.told("N", notice))

    def answer(self, line: str) -> str:
        """The statement, its notices, and its tag and rows or its error."""
        self._notices.clear()
        try:
            answer = _result(self.connection.execute(line.encode()))
        except psycopg.Error as error:
            answer = diagnostics.told("E", error.diag)
        told = [self._alike.told(text) for text in [*self._notices, answer]]
        return "\n".join([f"> {line}", *told])


def _result(cursor: "psycopg.Cursor[tuple[object, ...]]") -> str:
    tag = cursor.statusmessage or ""
    if cursor.description is None:
        return tag
    names = ", ".join(column.name for column in cursor.description)
    return "\n".join([f"{tag} ({names})", *(str(row) for row in cursor.fetchall())])


def _recorded(dsn: str, lines: Sequence[str]) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop schema if exists public cascade")
        connection.execute("create schema public")
    return list(answers(dsn, lines))


def record(names: Sequence[str]) -> None:
    """Ask PostgreSQL for scripts; each has a server of its own, whose roles are its own."""
    for name in names:
        with postgres() as dsn:
            place = psycopg.conninfo.make_conninfo(dsn, user="postgres", dbname="postgres")
            said = _recorded(place, statements(name)[0])
            (DIRECTORY / f"{name}.out").write_text("\n\n".join(said) + "\n")


@pytest.mark.parametrize("name", SCRIPTS)
def test_like_postgresql(name: str) -> None:
    both, ours = statements(name)
    with serving(core=WITHOUT_CUTS) as dsn:
        said = list(answers(dsn, [*both, *ours]))
    expected = (DIRECTORY / f"{name}.out").read_text().removesuffix("\n").split("\n\n")
    assert said[: len(both)] == expected
    own = DIRECTORY / f"{name}.meridian"
    if os.environ.get("REWRITE"):
        own.write_text("\n\n".join(said[len(both) :]) + "\n") if ours else None
    if ours:
        assert said[len(both) :] == own.read_text().removesuffix("\n").split("\n\n")


def test_there_are_scripts() -> None:
    assert SCRIPTS


if __name__ == "__main__":
    record(sys.argv[1:] or SCRIPTS)
