"""Write `sql/data/pg_operator.txt` from a real PostgreSQL.

    python -m tests.unit.sql.postgresql_operators

All operators, their classes and families and all aggregates are written, also those that Meridian
refuses.
"""

import json
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.support.servers import postgres

FILE: Final = Path(__file__).parents[3] / "sql" / "data" / "pg_operator.txt"
HEAD: Final = "# Operators of PostgreSQL {version}; see pgcatalog/recorded.py.\n"
RELATIONS: Final = (
    "pg_aggregate",
    "pg_amop",
    "pg_amproc",
    "pg_opclass",
    "pg_operator",
    "pg_opfamily",
)

Row = dict[str, Any]


def main() -> None:
    """Write the file."""
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        found = {name: _rows(connection, name) for name in RELATIONS}
    lines = [
        f"{name} {json.dumps(list(row.values()), ensure_ascii=False)}\n"
        for name in RELATIONS
        for row in found[name]
    ]
    FILE.write_text(HEAD.format(version=version) + "".join(lines), encoding="utf-8")


def _rows(connection: "psycopg.Connection[Any]", relation: str) -> list[Row]:
    """Whole rows; oids of all kinds as numbers, in the order of the columns."""
    columns = connection.execute(
        "select attname::text, format_type(atttypid, null) from pg_attribute"
        " where attrelid = %s::regclass and attnum > 0 order by attnum",
        [relation],
    ).fetchall()
    casts = {"oid": "int8", "regproc": "oid::int8", "name": "text", '"char"': "text"}
    parts = [f"{name}::{casts.get(kind, kind)}" for name, kind in columns]
    names = [name for name, _ in columns]
    order = "ctid" if relation == "pg_opclass" else "1, 2, 3, 4"
    query = f"select {', '.join(parts)} from {relation} order by {order}"
    return [dict(zip(names, row, strict=True)) for row in connection.execute(query.encode())]


if __name__ == "__main__":
    main()
