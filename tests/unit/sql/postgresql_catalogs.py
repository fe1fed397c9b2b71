"""Write `sql/data/catalogs.txt` from a real PostgreSQL.

    python -m tests.unit.sql.postgresql_catalogs

Columns of domains (those of information_schema) are written with the type below.
"""

from itertools import groupby
from pathlib import Path

import psycopg

from tests.support.servers import postgres

FILE = Path(__file__).parents[3] / "sql" / "data" / "catalogs.txt"
HEAD = "# System catalogs and views of PostgreSQL {version}; see sql/catalog/system_catalogs.py.\n"
COLUMNS = """
select n.nspname, c.oid::int, c.relname, c.relkind, a.attname,
  coalesce(b.typname, t.typname) || case when a.attnotnull then '!' else '' end
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
join pg_type t on t.oid = a.atttypid
left join pg_type b on b.oid = t.typbasetype
where n.nspname in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'v')
order by n.nspname desc, c.relname, a.attnum
"""


def main() -> None:
    """Write the file."""
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        rows = connection.execute(COLUMNS).fetchall()
    lines = [
        f"{schema}.{name} {oid} {kind}: {', '.join(f'{row[4]} {row[5]}' for row in columns)}\n"
        for (schema, oid, name, kind), columns in groupby(rows, lambda row: row[:4])
    ]
    FILE.write_text(HEAD.format(version=version) + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
