"""Write `sql/data/pg_description.txt` from a real PostgreSQL.

    python -m tests.unit.sql.postgresql_comments

Of the comments that PostgreSQL is born with, those are written that are on what Meridian has.
"""

import json
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.support.servers import postgres
from tests.support.stack import serving

FILE: Final = Path(__file__).parents[3] / "sql" / "data" / "pg_description.txt"
HEAD: Final = "# Comments of PostgreSQL {version}; see pgcatalog/comments.py.\n"
CATALOGS: Final = (
    "pg_am", "pg_cast", "pg_collation", "pg_conversion", "pg_language", "pg_opclass", "pg_operator",
    "pg_opfamily", "pg_proc", "pg_ts_config", "pg_ts_dict", "pg_ts_parser", "pg_ts_template",
    "pg_type",
)  # fmt: skip


def main() -> None:
    """Write the file."""
    with serving() as dsn, psycopg.connect(dsn) as connection:
        there = {
            (relation, oid)
            for name in CATALOGS
            for relation, oid in connection.execute(f"select tableoid, oid from {name}".encode())
        }
    there.add((2615, 11))
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        own: list[tuple[Any, ...]] = connection.execute(
            "select classoid, objoid, description from pg_description where objsubid = 0"
            " order by 1, 2"
        ).fetchall()
    lines = [
        f"pg_description {json.dumps(row, ensure_ascii=False)}\n" for row in own if row[:2] in there
    ]
    FILE.write_text(HEAD.format(version=version) + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
