"""The queries of the page: the sections that it draws, in this order.

Each is one statement over views that everybody may name. What a role may not see in them is not
shown to it here either. The comment tells them from the statements of others.
"""

from collections.abc import Mapping
from typing import Final

PAGE_QUERIES: Final[Mapping[str, str]] = {
    "sessions": """\
SELECT /* page */ pid, usename AS role, datname AS database, application_name AS application,
  client_addr AS address, state, wait_event_type AS wait_type, wait_event AS wait,
  array_to_string(pg_blocking_pids(pid), ', ') AS blocked_by,
  backend_start AS began_at, xact_start AS transaction_at, query_start AS query_at, query,
  pid = pg_backend_pid() AS own, backend_type AS kind
FROM pg_stat_activity ORDER BY pid""",
    "statements": """\
SELECT /* page */ calls, rows, round(total_exec_time::numeric, 1) AS total_ms,
  round(mean_exec_time::numeric, 2) AS mean_ms, round(max_exec_time::numeric, 2) AS max_ms,
  rolname AS role, query
FROM pg_stat_statements LEFT JOIN pg_roles ON pg_roles.oid = userid
WHERE query NOT LIKE 'SELECT /* page */%'
ORDER BY total_exec_time DESC LIMIT 15""",
    "timelines": """\
SELECT /* page */ t.name, t.clock, t.since_at, t.read_at, t.clock_doubted, c.validated,
  c.by_predicate, c.by_table, c.by_row, c.by_key
FROM meridian.timelines t LEFT JOIN meridian.conflicts c ON c.timeline = t.name
ORDER BY t.name""",
    "tables": """\
SELECT /* page */ f.table_schema AS schema, f.table_name AS name, f.timeline, u.files, u.rows,
  u.bytes, f.tail_rows, f.tail_bytes, f.since_at, f.cut_at, f.upper_at, f.fence,
  s.n_tup_ins AS inserted, s.n_tup_upd AS updated, s.n_tup_del AS deleted
FROM meridian.frontiers f
LEFT JOIN meridian.cuts u ON u.table_schema = f.table_schema AND u.table_name = f.table_name
  AND u.timeline = f.timeline AND u.cut = f.cut
LEFT JOIN pg_stat_all_tables s ON s.schemaname = f.table_schema AND s.relname = f.table_name
ORDER BY u.bytes DESC NULLS LAST, f.table_schema, f.table_name LIMIT 200""",
    "locks": """\
SELECT /* page */ pid, locktype AS type, relation::regclass::text AS relation, mode, granted
FROM pg_locks WHERE pid <> pg_backend_pid() ORDER BY granted, pid LIMIT 200""",
    "subscriptions": """\
SELECT /* page */ id, pid, table_schema AS schema, table_name AS name, timeline, state, position_at
FROM meridian.subscriptions ORDER BY id LIMIT 200""",
    "engines": """\
SELECT /* page */ engine, sum(calls) AS calls, count(*) AS statements
FROM meridian.statement_engines GROUP BY engine ORDER BY engine""",
}

ACTION_QUERIES: Final[Mapping[str, str]] = {
    "cancel": "SELECT pg_cancel_backend({pid})",
    "terminate": "SELECT pg_terminate_backend({pid})",
}
"""`pid` is a number (P4 of `page.py`)."""
