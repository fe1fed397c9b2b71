"""Definitions of every kind, and the texts that a server shows of them.

expressions.txt   columns of views over `t`, PER_VIEW a view
queries.txt       each becomes a view
tables_with.sql   defaults, checks, generated columns, indexes, domains
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import psycopg

DIRECTORY: Final = Path(__file__).parent / "testdata"
RECORDED: Final = DIRECTORY / "recorded.json"
PER_VIEW: Final = 20
KINDS: Final = ("plain", "pretty")

Connection = psycopg.Connection[tuple[object, ...]]

_TEXTS: Final = {
    "view": "select relname, pg_get_viewdef(oid), pg_get_viewdef(oid, true),"
    " pg_get_viewdef(oid, -1) from pg_class where relkind = 'v' and oid >= 16384",
    "rule": "select ev_class::regclass, pg_get_ruledef(oid), pg_get_ruledef(oid, true)"
    " from pg_rewrite where ev_class >= 16384",
    "constraint": "select coalesce(nullif(conrelid, 0)::regclass::text, contypid::regtype::text)"
    " || ' ' || conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true),"
    " pg_get_expr(conbin, conrelid), pg_get_expr(conbin, conrelid, true)"
    " from pg_constraint where oid >= 16384",
    "index": "select indexrelid::regclass, pg_get_indexdef(indexrelid),"
    " pg_get_indexdef(indexrelid, 0, true), pg_get_indexdef(indexrelid, 1, false),"
    " pg_get_indexdef(indexrelid, 1, true), pg_get_indexdef(indexrelid, 2, false),"
    " pg_get_expr(indpred, indrelid), pg_get_expr(indpred, indrelid, true)"
    " from pg_index join pg_class c on c.oid = indexrelid"
    " where indexrelid >= 16384 and c.relnamespace <> 99",
    "default": "select adrelid::regclass::text || ' ' || adnum, pg_get_expr(adbin, adrelid),"
    " pg_get_expr(adbin, adrelid, true) from pg_attrdef where adrelid >= 16384",
    "column": "select table_name || ' ' || column_name, column_default, generation_expression"
    " from information_schema.columns where table_schema in ('public', 's')"
    " and table_name !~ '^[eq]\\d'",
    "check": "select constraint_name, check_clause from information_schema.check_constraints"
    " where constraint_schema in ('public', 's') and constraint_name not like '%_not_null'",
    "domain": "select domain_name, domain_default from information_schema.domains"
    " where domain_schema = 'public'",
    "definition": "select indexname, indexdef from pg_indexes where schemaname in ('public', 's')",
}


def lines(name: str) -> list[str]:
    """The lines of a file that say something."""
    text = (DIRECTORY / name).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def views() -> dict[str, str]:
    """The queries of all views, by name."""
    found: dict[str, str] = {}
    expressions = lines("expressions.txt")
    for number, first in enumerate(range(0, len(expressions), PER_VIEW), 1):
        some = expressions[first : first + PER_VIEW]
        columns = ", ".join(f"{text} as x{at}" for at, text in enumerate(some, 1))
        found[f"e{number:03}"] = f"select {columns} from t"
    queries = enumerate(lines("queries.txt"), 1)
    return found | {f"q{number:03}": text for number, text in queries}


def define(connection: Connection) -> None:
    """Define everything."""
    statements = [*lines("tables.sql"), *lines("tables_with.sql")]
    statements += (f"create view {name} as {query}" for name, query in views().items())
    for statement in statements:
        connection.execute(statement.encode())


def texts(connection: Connection) -> dict[str, list[object]]:
    """All texts, by kind and name."""
    return dict(_texts(connection))


def _texts(connection: Connection) -> Iterator[tuple[str, list[object]]]:
    for kind, query in _TEXTS.items():
        for name, *shown in connection.execute(query.encode()):
            yield f"{kind} {name}", shown


def define_again(connection: Connection) -> dict[str, list[object]]:
    """Each view once more from each of its texts, plain and pretty; what is shown of those."""
    shown = connection.execute(
        "select relname, pg_get_viewdef(oid), pg_get_viewdef(oid, true) from pg_class"
        " where relkind = 'v' and oid >= 16384"
    ).fetchall()
    for name, *found in shown:
        for kind, text in zip(KINDS, found, strict=True):
            connection.execute(f"create view {kind}_{name} as {text}".encode())
    again = connection.execute(
        "select relname, pg_get_viewdef(oid) from pg_class where relname ~ '^(plain|pretty)_'"
    )
    return {f"again {name}": [text] for name, text in again}


def recorded() -> Mapping[str, list[object]]:
    """PostgreSQL's texts."""
    found: Mapping[str, list[object]] = json.loads(RECORDED.read_text())
    return found
