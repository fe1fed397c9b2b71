"""Write catalogs, catalog_types, pg_keywords, pg_recorded, sql_standard and system_indexes.txt from
a real PostgreSQL.

    python -m tests.unit.sql.postgresql_catalogs

Columns of domains (those of information_schema) are written with the type below.
"""

import json
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

TYPES_FILE = FILE.with_name("catalog_types.txt")
TYPES_HEAD = (
    "# Types of PostgreSQL {version} that only catalogs have; see sql/types/catalog_types.py.\n"
)
KEYWORDS_FILE = FILE.with_name("pg_keywords.txt")
KEYWORDS_HEAD = "# Keywords of PostgreSQL {version}; see pgcatalog/recorded.py.\n"
STANDARD_FILE = FILE.with_name("sql_standard.txt")
STANDARD_HEAD = "# What PostgreSQL {version} says of the standard; see pgcatalog/recorded.py.\n"
STANDARD = ("sql_features", "sql_implementation_info", "sql_parts", "sql_sizing")
OTHERS_FILE = FILE.with_name("pg_recorded.txt")
OTHERS_HEAD = "# Rows of other catalogs of PostgreSQL {version}; see pgcatalog/recorded.py.\n"
OTHERS = {
    "pg_cast": "oid",
    "pg_collation": "oid",
    "pg_range": "rngtypid",
    "pg_type": "oid",
    "pg_conversion": "oid",
    "pg_ts_config": "oid",
    "pg_ts_config_map": "mapcfg, maptokentype, mapseqno",
    "pg_ts_dict": "oid",
    "pg_ts_parser": "oid",
    "pg_ts_template": "oid",
    "pg_wait_events": "type, name",
    "pg_stat_io": "backend_type, object, context",
}
_UNCOUNTED = """
(select backend_type, object, context, {counts}, null::timestamptz as stats_reset from pg_stat_io)
"""
"""Its rows with zeros in place of counts: of what is counted, and not how much of it."""
_BUILTIN = """
(select t.* from pg_type t left join pg_type e on e.oid = t.typelem where t.oid < 12000
  and 'c' not in (t.typtype, coalesce(e.typtype, '-')))
"""
"""Without the types of catalogs' rows."""
INDEXES_FILE = FILE.with_name("system_indexes.txt")
INDEXES_HEAD = (
    "# Indexes and constraints of catalogs of PostgreSQL {version}; see"
    " pgcatalog/system_indexes.py.\n"
)
_CATALOGS = """
c.relnamespace = 'pg_catalog'::regnamespace and c.relkind = 'r' and c.oid < 12000
"""
INDEXES = {
    "index": f"""
select x.oid::int8, x.relname, c.oid::int8, c.relisshared, indisunique, indisprimary,
  indkey::int2[], indcollation::oid[]::int8[], indclass::oid[]::int8[], indoption::int2[],
  pg_get_indexdef(x.oid)
from pg_index i join pg_class x on x.oid = indexrelid join pg_class c on c.oid = indrelid
where {_CATALOGS} order by 3, 1""",
    "column": f"""
select a.attrelid::int8, attname, atttypid::int8, attnum, attlen, attbyval, attalign, attstorage,
  attcollation::int8
from pg_attribute a join pg_index i on i.indexrelid = a.attrelid
  join pg_class c on c.oid = indrelid
where {_CATALOGS} order by 1, attnum""",
    "constraint": f"""
select k.oid::int8, conname, contype, c.oid::int8, conindid::int8, conkey,
  pg_get_constraintdef(k.oid)
from pg_constraint k join pg_class c on c.oid = conrelid where {_CATALOGS} order by 4, 1""",
}
TYPES = """
select concat_ws(' ', typname, oid::int, typlen, typbyval, typcategory, typalign, typstorage,
  typcollation::int, typelem::int, typarray::int)
from pg_type
where typname in ('int2vector', 'oidvector', 'tid', 'xid', 'cid', 'xid8', 'aclitem', 'pg_node_tree',
    'pg_lsn', '_int2vector', '_oidvector', '_tid', '_xid', '_cid', '_xid8', '_aclitem', '_pg_lsn',
    'anyarray', 'inet', 'pg_ndistinct', 'pg_dependencies', 'pg_mcv_list')
  and typnamespace = 'pg_catalog'::regnamespace
order by oid
"""


def main() -> None:
    """Write the files."""
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        rows = connection.execute(COLUMNS).fetchall()
        standard = {
            name: connection.execute(f"table information_schema.{name}").fetchall()
            for name in STANDARD
        }
        others = [
            f"{name} {json.dumps(row, ensure_ascii=False)}\n"
            for name, order in OTHERS.items()
            for row in connection.execute(_rows_of(connection, name, order)).fetchall()
        ]
        keywords = connection.execute("select * from pg_get_keywords() order by word").fetchall()
        indexes = [
            f"{kind} {json.dumps(row, ensure_ascii=False)}\n"
            for kind, query in INDEXES.items()
            for row in connection.execute(query.encode()).fetchall()
        ]
        types = [f"{line}\n" for (line,) in connection.execute(TYPES)]
    lines = [
        f"{schema}.{name} {oid} {kind}: {', '.join(f'{row[4]} {row[5]}' for row in columns)}\n"
        for (schema, oid, name, kind), columns in groupby(rows, lambda row: row[:4])
    ]
    STANDARD_FILE.write_text(
        STANDARD_HEAD.format(version=version)
        + "".join(
            f"{name} {json.dumps(row, ensure_ascii=False)}\n"
            for name in STANDARD
            for row in standard[name]
        ),
        encoding="utf-8",
    )
    OTHERS_FILE.write_text(OTHERS_HEAD.format(version=version) + "".join(others), encoding="utf-8")
    KEYWORDS_FILE.write_text(
        KEYWORDS_HEAD.format(version=version)
        + "".join(f"meridian_keywords {json.dumps(row)}\n" for row in keywords),
        encoding="utf-8",
    )
    INDEXES_FILE.write_text(
        INDEXES_HEAD.format(version=version) + "".join(indexes), encoding="utf-8"
    )
    TYPES_FILE.write_text(TYPES_HEAD.format(version=version) + "".join(types), encoding="utf-8")
    FILE.write_text(HEAD.format(version=version) + "".join(lines), encoding="utf-8")


def _rows_of(connection: "psycopg.Connection[tuple[object, ...]]", name: str, order: str) -> bytes:
    """All rows; an oid and its kin as numbers."""
    cursor = connection.execute(f"select * from {name} limit 0".encode())
    if name == "pg_stat_io":
        counts = [column.name for column in (cursor.description or ())[3:-1]]
        zeros = (f"({count} * 0)::int4 as {count}" for count in counts)
        name = _UNCOUNTED.format(counts=", ".join(zeros))
    if name == "pg_type":
        name = _BUILTIN
    oids = {psycopg.postgres.types[each].oid for each in ("oid", "regproc")}
    shown = [
        f"{column.name}::oid::int8" if column.type_code in oids else f'"{column.name}"'
        for column in cursor.description or ()
    ]
    return f"select {', '.join(shown)} from {name} as each order by {order}".encode()


if __name__ == "__main__":
    main()
