"""Where the server under test is, and a PostgreSQL of our own that looks into it."""

import contextlib
import os
import subprocess
from collections.abc import Iterator

import psycopg

from tests.support.servers import postgres, postgres_program

Connection = psycopg.Connection[tuple[object, ...]]


def version() -> str:
    """Of the distribution."""
    said = subprocess.run(
        [postgres_program("postgres"), "--version"], capture_output=True, text=True, check=True
    )
    return said.stdout.split()[2]


def remote() -> Connection:
    """A connection to the server under test; libpq's variables say where it is."""
    return psycopg.connect("", autocommit=True)


def fresh_schema(c: Connection, name: str) -> None:
    """An empty schema, first in the search path."""
    c.execute("set client_min_messages = warning")
    c.execute(f"drop schema if exists {name} cascade")
    c.execute(f"create schema {name}")
    c.execute(f"set search_path = {name}")


def conninfo() -> str:
    """The server under test, for dblink."""
    names = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER"}
    parts = [f"{name}={os.environ[variable]}" for name, variable in names.items()]
    if secret := os.environ["PGPASSWORD"]:
        parts.append(f"password={secret}")
    return " ".join(parts)


@contextlib.contextmanager
def local(extension: str) -> Iterator[Connection]:
    """A PostgreSQL with the module, which is a client of the server under test."""
    with postgres(["fsync=off"]) as dsn, psycopg.connect(dsn, autocommit=True) as c:
        c.execute(f"create extension {extension}")
        yield c


def rows(c: Connection, query: str) -> list[tuple[object, ...]]:
    """All rows of a query."""
    return c.execute(query).fetchall()


def value(c: Connection, query: str) -> object:
    """The only value."""
    row = c.execute(query).fetchone()
    return row[0] if row else None


def equal(found: object, wanted: object) -> None:
    """Check a result."""
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"
