"""The function table, and lists of what PostgreSQL itself has.

    data/*.txt ── table ──▶ Function rows: overloads with their templates for each engine
    data/pg_proc.txt ── pg_proc ──▶ rows of pg_proc and pg_cast
    data/postgresql.txt ── postgresql_names ──▶ names that PostgreSQL has

  `table`               overloads of functions, operators, aggregates and casts (`sql/data/*.txt`)
  `pg_proc`             the catalog rows of those that Meridian has, with PostgreSQL's oids
  `pg_proc_texts`       their signatures and definitions as PostgreSQL prints them
  `postgresql_names`    all names that PostgreSQL has, to tell 0A000 from 42883

The binder chooses an overload of `table` and puts it into a `Call`; emitters and the reference
evaluator look up what the row says for them. Imports `sql.types` only; plans hold its rows, so
every package from `sql.plan` upwards, `compute` and `coordinator` import it.
"""
