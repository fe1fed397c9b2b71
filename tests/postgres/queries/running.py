"""Run statement files on PostgreSQL, to record, and on Meridian, to compare.

INVARIANTS
  N1  every file gets a database of its own, which it shares with nobody: in PostgreSQL a new
      database, in Meridian a schema that is dropped with all in it.
  N2  both servers are asked by the same client, in the simple protocol, with the same settings.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
from psycopg.pq.abc import PGconn

from tests.postgres.queries.answers import Answer, ask, show
from tests.postgres.queries.comparing import Verdict, judge
from tests.postgres.queries.statement_files import Case, cases, path_of, rewrite

_SETTINGS = "set timezone = 'UTC'"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One statement of a file as an engine answered it."""

    area: str
    case: Case
    found: tuple[Answer, ...]
    verdict: Verdict

    @property
    def key(self) -> str:
        """See the function."""
        return key(self.area, self.case)

    @property
    def story(self) -> str:
        """For the reader of a failure."""
        place = f"{self.area}.txt:{self.case.line}"
        return (
            f"{place} {self.verdict.value}\n{self.case.text}\n"
            f"---- expected\n{show(self.case.expected)}\n---- found\n{show(self.found)}\n"
        )


def key(area: str, case: Case) -> str:
    """How lists of statements name one: file and statement, on one line."""
    return f"{area}: {' '.join(case.text.split())}"


def record(dsn: str, area: str) -> None:
    """Write a running PostgreSQL's answers into a file."""
    name = f"sqldiff_{area}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            f"create database {name} template template0"
            " locale_provider builtin builtin_locale 'C.UTF-8' lc_collate 'C' lc_ctype 'C'".encode()
        )
    with psycopg.connect(dsn, autocommit=True, dbname=name) as connection:
        connection.execute(_SETTINGS)
        rewrite(path_of(area), lambda text: ask(connection.pgconn, text))


def run(
    dsn: str, area: str, engine: str, wanted: Callable[[int, Case], bool] = lambda _n, _c: True
) -> Iterator[Outcome]:
    """Run the wanted statements of a file on Meridian, in order."""
    with session(dsn, area, engine) as connection:
        for number, case in enumerate(cases(area)):
            if wanted(number, case):
                found = ask(connection, case.text)
                yield Outcome(area, case, found, judge(case.text, found, case.expected))


def check_alone(dsn: str, engine: str, case: Case) -> None:
    """Ask one statement by itself; it has to be answered as it is recorded."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"set engine = {engine}".encode())
        found = ask(connection.pgconn, case.text)
    verdict = judge(case.text, found, case.expected)
    assert verdict is Verdict.EQUAL, f"{show(case.expected)}\n---- found\n{show(found)}"


@contextlib.contextmanager
def session(dsn: str, area: str, engine: str) -> Iterator[PGconn]:
    """A connection to a database that is as good as new (N1)."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_SETTINGS)
        connection.execute(f"set engine = {engine}".encode())
        for schema in ("public", *_schemas(area)):
            connection.execute(f'drop schema if exists "{schema}" cascade'.encode())
        connection.execute("create schema public")
        yield connection.pgconn


def _schemas(area: str) -> Iterator[str]:
    """The schemas that a file creates."""
    for case in cases(area):
        yield from re.findall(r"(?i)^create schema (\w+)", case.text)
