"""The queries of monitoring agents and consoles answer with PostgreSQL's names and types.

`testdata/columns/monitoring.sql` is a line a query; `--` says whose. `monitoring.txt` is a
recording of PostgreSQL 18: a line a query with names of columns and oids of their types. Run as a
program, this module records it. PostgreSQL has no pg_stat_statements here: the queries that read it
are compared with the names and types of its version 1.12, which stand in this module.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.support.servers import postgres
from tests.support.stack import serving

DIRECTORY = Path(__file__).parent / "testdata" / "columns"
QUERIES = [
    line
    for line in (DIRECTORY / "monitoring.sql").read_text().splitlines()
    if not line.startswith("--")
]
RECORDED = DIRECTORY / "monitoring.txt"

OF_STATEMENTS = {
    "SELECT userid, dbid, toplevel, queryid, query, plans, total_plan_time, calls,"
    " total_exec_time, stddev_exec_time, rows, shared_blks_hit, shared_blk_read_time, wal_bytes,"
    " wal_buffers_full, jit_functions, jit_deform_time, parallel_workers_launched, stats_since,"
    " minmax_stats_since FROM pg_stat_statements": (
        26, 26, 16, 20, 25, 20, 701, 20, 701, 701, 20, 20, 701, 1700, 20, 20, 701, 20, 1184, 1184,
    ),
    # Datadog
    "SELECT COUNT(*) FROM pg_stat_statements(false)": (20,),
    "SELECT dealloc, stats_reset FROM pg_stat_statements_info": (20, 1184),
    "SELECT calls, rows, query, queryid, pg_database.datname, pg_roles.rolname"
    " FROM pg_stat_statements LEFT JOIN pg_roles ON pg_stat_statements.userid = pg_roles.oid"
    " LEFT JOIN pg_database ON pg_stat_statements.dbid = pg_database.oid"
    " WHERE query != '<insufficient privilege>' AND query NOT LIKE 'EXPLAIN %%' LIMIT 10000": (
        20, 20, 25, 20, 19, 19,
    ),
    # postgres_exporter
    "SELECT pg_get_userbyid(userid) as user, pg_database.datname,"
    " pg_stat_statements.queryid, pg_stat_statements.calls as calls_total,"
    " pg_stat_statements.total_exec_time / 1000.0 as seconds_total,"
    " pg_stat_statements.rows as rows_total FROM pg_stat_statements"
    " JOIN pg_database ON pg_database.oid = pg_stat_statements.dbid"
    " WHERE total_exec_time > (SELECT percentile_cont(0.1) WITHIN GROUP"
    " (ORDER BY total_exec_time) FROM pg_stat_statements)"
    " ORDER BY seconds_total DESC LIMIT 100": (19, 19, 20, 20, 701, 20),
    "SELECT extname, extversion, nspname FROM pg_extension e"
    " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'pg_stat_statements'": (
        19, 25, 19,
    ),
}  # fmt: skip


def columns(dsn: str) -> Iterator[str]:
    """A line a query."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for query in QUERIES:
            cursor = connection.execute(query.encode())
            cursor.fetchall()
            assert cursor.description is not None
            yield ", ".join(f"{each.name} {each.type_code}" for each in cursor.description)


def test_monitoring_queries_have_postgresqls_columns() -> None:
    with serving() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("create table t (id int primary key, v text)")
        found = list(columns(dsn))
    assert found == RECORDED.read_text().splitlines()


def test_queries_of_statements_have_the_columns_of_version_1_12() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create extension pg_stat_statements")
        for query, types in OF_STATEMENTS.items():
            cursor = connection.execute(query.encode())
            assert cursor.fetchall(), query
            assert cursor.description is not None
            assert tuple(each.type_code for each in cursor.description) == types, query


if __name__ == "__main__":
    with postgres() as server:
        RECORDED.write_text("".join(f"{line}\n" for line in columns(server)))
