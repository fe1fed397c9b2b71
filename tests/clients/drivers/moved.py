"""Databases that pg_dump moves between Meridian and PostgreSQL 18, and what must have arrived.

    objects.sql ─▶ server ─pg_dump─▶ file ─psql, pg_restore─▶ server ─▶ FACTS, the same as before

INVARIANTS
  D1  facts are asked in the same words on both servers. Either superuser is called `-`.
"""

import contextlib
import os
import re
import subprocess
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from tests.support.servers import postgres_program

OBJECTS: Final = Path(__file__).parent / "testdata" / "moved" / "objects.sql"
SCHEMAS: Final = "('shop', 'public')"

FACTS: Final[Mapping[str, str]] = {
    "relations": f"""
        select n.nspname, c.relname, c.relkind, c.relpersistence, c.relispopulated, c.reloptions,
          pg_get_userbyid(c.relowner) as owner,
          c.relacl::text, obj_description(c.oid, 'pg_class')
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in {SCHEMAS} and c.relkind <> 't' order by 1, 2""",
    "columns": f"""
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
          a.atthasdef, a.attidentity, a.attgenerated, a.attcollation,
          a.attacl::text,
          col_description(c.oid, a.attnum)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
          join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in {SCHEMAS} and c.relkind in ('r', 'v', 'm') and a.attnum > 0
          and not a.attisdropped order by 1, 2""",
    "constraints": f"""
        select c.conname, c.contype, c.conrelid::regclass::text, c.confrelid::regclass::text,
          c.confdeltype, c.confupdtype, c.condeferrable, c.condeferred, c.convalidated,
          array(select a.attname::text from pg_attribute a
            where a.attrelid = c.conrelid and a.attnum = any (c.conkey) order by 1),
          obj_description(c.oid, 'pg_constraint')
        from pg_constraint c join pg_namespace n on n.oid = c.connamespace
        where n.nspname in {SCHEMAS} order by 3, 1""",
    "indexes": f"""
        select c.relname, m.amname, i.indisunique, i.indisprimary, i.indnullsnotdistinct,
          i.indnatts, i.indnkeyatts, i.indoption::text, i.indpred is null, i.indexprs is null,
          array(select a.attname::text from pg_attribute a where a.attrelid = c.oid order by 1)
        from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
          join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in {SCHEMAS} order by 1""",
    "sequences": f"""
        select schemaname, sequencename, data_type::text, start_value, min_value, max_value,
          increment_by, cycle, cache_size, last_value
        from pg_sequences where schemaname in {SCHEMAS} order by 1, 2""",
    "labels": """
        select t.typname, e.enumlabel, obj_description(t.oid, 'pg_type')
        from pg_enum e join pg_type t on t.oid = e.enumtypid order by 1, e.enumsortorder""",
    "domains": """
        select typname, typbasetype::regtype::text, typnotnull, typdefault
        from pg_type where typtype = 'd' and typname = 'positive'""",
    "schema": """
        select nspname, nspacl::text,
          obj_description(oid, 'pg_namespace') from pg_namespace where nspname = 'shop'""",
    "default privileges": """
        select defaclobjtype, defaclacl::text from pg_default_acl""",
}
RELATIONS: Final = (
    ("shop", "customer"), ("shop", "item"), ("shop", "sale"), ("public", 'Odd "Name'),
    ("public", "nothing"), ("public", "logless"), ("public", "ring"), ("shop", "b_rich"),
    ("shop", "a_richer"), ("shop", "per_customer"), ("shop", "checked"),
    ("shop", "totals"), ("shop", "many_orders"),
)  # fmt: skip
"""Tables and views whose rows arrive."""


@dataclass(frozen=True, slots=True)
class Peers:
    """Servers with the same objects, and an empty Meridian with the same roles."""

    meridian: str
    postgresql: str
    empty: str
    known: dict[str, list[tuple[Any, ...]]]
    """The facts of the first two."""


def create_objects(dsn: str) -> None:
    """The database that is moved."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(OBJECTS.read_bytes())


def facts(dsn: str) -> dict[str, list[tuple[Any, ...]]]:
    """What is in the database (D1)."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, query in FACTS.items():
            rows = connection.execute(query.encode()).fetchall()
            found[name] = [tuple(map(_nameless, row)) for row in rows]
        for schema, name in RELATIONS:
            query_ = sql.SQL("select t.* from {} t order by 1, 2 nulls first")
            if name in ("nothing", "logless"):
                query_ = sql.SQL("select * from {} order by 1")
            rows = connection.execute(query_.format(sql.Identifier(schema, name))).fetchall()
            # NaN is not equal to itself.
            found[name] = [tuple(map(_comparable, row)) for row in rows]
    return found


def _comparable(value: Any) -> Any:
    return value if value == value else "NaN"


def _nameless(value: Any) -> Any:
    """D1."""
    return _SUPERUSERS.sub("-", value) if isinstance(value, str) else value


_SUPERUSERS: Final = re.compile("postgres|meridian")


def run(program: str, *arguments: str) -> str:
    """What a program of PostgreSQL's prints; it must not fail."""
    environment = {**os.environ, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C"}
    command = [postgres_program(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
    return done.stdout


def restore(dsn: str, *files: Path) -> None:
    """Run dumps that are plain SQL; the first error ends it."""
    for file in files:
        run("psql", dsn, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file))


@contextlib.contextmanager
def emptied(dsn: str) -> Generator[str, None, None]:
    """The server as it began, but for its roles, once the test is over."""
    try:
        yield dsn
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("drop schema if exists shop cascade")
            connection.execute('drop table if exists "Odd ""Name", nothing, logless, ring')


def statements(text: str) -> Sequence[str]:
    """The lines of a dump that do something, whatever the superuser is called."""
    return [
        _SUPERUSERS.sub("-", line)
        for line in text.splitlines()
        if line and not line.startswith(("--", "\\restrict", "\\unrestrict"))
    ]
