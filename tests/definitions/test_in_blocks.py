"""Every statement of the definition scripts in blocks, too: taken back to a savepoint, rolled back.

    BEGIN, SAVEPOINT, statement, ROLLBACK TO, statement, ROLLBACK     nothing is left of it
    statement                                                         PostgreSQL's answer

INVARIANTS
  P1  a statement answers the same alone, in a block, and again after it was taken back.
  P2  what was taken back left nothing: catalogs and rows are what they were.
"""

import re
from collections.abc import Iterator

import psycopg
import pytest

from tests.definitions.test_like_postgresql import DIRECTORY, Asking, statements
from tests.session.stack import serving

SCRIPTS = ("domains",)
"""Those whose statements may be repeated: sequences go on when they are taken back."""

_OWN_BLOCKS = re.compile(r"begin|commit|rollback|savepoint|set |reset|prepare|execute|start ")
_CATALOGS = (
    "select c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
    " pg_get_expr(d.adbin, d.adrelid) from pg_class c left join pg_attribute a on"
    " a.attrelid = c.oid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum"
    " where c.relnamespace >= 2200 order by 1, 3",
    "select conname, contype, pg_get_constraintdef(oid) from pg_constraint order by 1, 3",
    "select t.typname, t.typtype, t.typnotnull, e.enumlabel from pg_type t left join pg_enum e on"
    " e.enumtypid = t.oid where t.typnamespace >= 2200 order by 1, e.enumsortorder",
    "select nspname from pg_namespace order by 1",
)


def _state(connection: "psycopg.Connection[tuple[object, ...]]") -> list[str]:
    """The catalogs, and the rows of all tables in them."""
    told = [str(connection.execute(query.encode()).fetchall()) for query in _CATALOGS]
    tables = connection.execute(
        "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables"
        " where schemaname not in ('pg_catalog', 'information_schema', 'meridian') order by 1"
    )
    for (table,) in tables.fetchall():
        rows = connection.execute(f"select * from {table}".encode()).fetchall()
        told.append(f"{table}: {sorted(map(str, rows))}")
    return told


def _in_block(asking: Asking, line: str) -> Iterator[str]:
    asking.connection.execute("begin")
    asking.connection.execute("savepoint before")
    yield asking.answer(line)
    asking.connection.execute("rollback to before")
    yield asking.answer(line)
    asking.connection.execute("rollback")


@pytest.mark.parametrize("name", SCRIPTS)
def test_in_blocks(name: str) -> None:
    lines, _ = statements(name)
    expected = (DIRECTORY / f"{name}.out").read_text().removesuffix("\n").split("\n\n")
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        asking, is_open, before = Asking(connection), False, _state(connection)
        for line, wanted in zip(lines, expected, strict=True):
            if is_open or _OWN_BLOCKS.match(line):
                asking.answer(line)
                is_open = line not in ("commit", "rollback") and (is_open or line == "begin")
                before = before if is_open else _state(connection)
                continue
            first, again = _in_block(asking, line)
            assert first == wanted, "P1: in a block"
            assert again == wanted, "P1: again"
            if line.lower().startswith("select"):
                continue
            assert _state(connection) == before, f"P2: {line}"
            assert asking.answer(line) == wanted, "P1: alone"
            before = _state(connection)
