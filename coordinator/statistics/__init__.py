"""Statistics of statements, relations and databases, as pg_stat_statements and pg_stat_* show them.

    session ── one call a statement ──▶ CountedStatement ── folded when somebody asks ──┐
                                                                                        ▼
                         StatementEntries, RelationCounts, DatabaseCounts ──▶ `pgcatalog/`

Whoever runs a statement adds to an object that is kept beside its plan. What this means for entries
and tables is worked out later: when a view is read, or when many objects wait.

    query_texts          which statement a text is: its fingerprint, and its text without literals
    relation_accesses    which tables and indexes a bound statement reads and writes
    counted_statements   what is added to
    statement_entries    rows of pg_stat_statements, bounded
    relation_counts      counts of tables, indexes and databases
    server_statistics    all of it, of one server

Sessions and `pgcatalog` import it; it knows neither.
"""
