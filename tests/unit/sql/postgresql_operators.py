"""Write `sql/data/pg_operator.txt` from a real PostgreSQL.

    python -m tests.unit.sql.postgresql_operators && python -m tests.unit.sql.postgresql_functions

Of PostgreSQL's operators those are written that Meridian has: an expression over NULLs of their
types is not refused. Of operator classes and families those of btree for types that are here; of
aggregates those that pg_proc lists. The second program adds the functions that they name.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

from sql.functions.pg_proc import procedures_by_oid
from sql.types.sql_type import TYPE_OIDS
from tests.support.servers import postgres
from tests.support.stack import serving
from tests.unit.sql.postgresql_functions import STAND_INS

FILE: Final = Path(__file__).parents[3] / "sql" / "data" / "pg_operator.txt"
HEAD: Final = "# Operators of PostgreSQL {version} that Meridian has; see pgcatalog/recorded.py.\n"
BTREE: Final = 403
PSEUDO: Final = (
    "anyarray",
    "record",
    "anyenum",
    "anycompatiblearray",
    "anycompatible",
    "anyelement",
)
RELATIONS: Final = (
    "pg_aggregate",
    "pg_amop",
    "pg_amproc",
    "pg_opclass",
    "pg_operator",
    "pg_opfamily",
)

Row = dict[str, Any]
Found = dict[str, list[Row]]


def main() -> None:
    """Write the file."""
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        found = {name: _rows(connection, name) for name in RELATIONS}
        pairs = connection.execute("select oid::int8, typname::text from pg_type").fetchall()
    types: dict[int, str] = dict(pairs)
    known = {oid for oid, name in types.items() if name in TYPE_OIDS or name in PSEUDO}
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        found["pg_operator"] = [
            row for row in found["pg_operator"] if _answers(connection, row, types)
        ]
    _keep_known(found, known)
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
    query = f"select {', '.join(parts)} from {relation} order by 1, 2, 3, 4"
    return [dict(zip(names, row, strict=True)) for row in connection.execute(query.encode())]


def _answers(
    connection: "psycopg.Connection[tuple[object, ...]]", row: Row, types: dict[int, str]
) -> bool:
    sides: Sequence[str] = [types[oid] for oid in (row["oprleft"], row["oprright"]) if oid]
    tried = [STAND_INS.get(side, side) for side in sides]
    if not TYPE_OIDS.keys() >= {*tried} or "unknown" in tried:
        return False
    nulls = ["row(1)" if side == "record" else f"null::pg_catalog.{side}" for side in tried]
    left = nulls[0] if row["oprleft"] else ""
    call = f"{left} operator(pg_catalog.{row['oprname']}) {nulls[-1]}"
    try:
        connection.execute(f"select {call}".encode())
    except psycopg.Error:
        return False
    return True


def _keep_known(found: Found, known: set[int]) -> None:
    operators = {row["oid"] for row in found["pg_operator"]}
    for row in found["pg_operator"]:
        for column in ("oprcom", "oprnegate"):
            row[column] = row[column] if row[column] in operators else 0
    found["pg_opclass"] = [
        row
        for row in found["pg_opclass"]
        if row["opcmethod"] == BTREE and row["opcintype"] in known and not row["opckeytype"]
    ]
    families = {row["opcfamily"] for row in found["pg_opclass"]}
    found["pg_opfamily"] = [row for row in found["pg_opfamily"] if row["oid"] in families]
    found["pg_amop"] = [
        row
        for row in found["pg_amop"]
        if row["amopfamily"] in families and row["amopopr"] in operators
    ]
    found["pg_amproc"] = [
        row
        for row in found["pg_amproc"]
        if row["amprocfamily"] in families
        and {row["amproclefttype"], row["amprocrighttype"]} <= known
    ]
    listed = procedures_by_oid()
    found["pg_aggregate"] = [row for row in found["pg_aggregate"] if row["aggfnoid"] in listed]
    for row in found["pg_aggregate"]:
        row["aggsortop"] = row["aggsortop"] if row["aggsortop"] in operators else 0


if __name__ == "__main__":
    main()
