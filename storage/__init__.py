"""Durable storage: the stash, the txns shard and shards as Delta tables. No SQL, no sessions.

    commit ─ txns ─▶ stash (SQLite, PostgreSQL)             durable here
       └─ shard: tail in memory ─ cuts ─▶ delta/ ─ object_store ─▶ Parquet files and log

  `types`, `errors`, `clock`, `threads`, `directory_lock`    small parts that the others use
  `fast_dataclass`                                           for values that are made all the time
  `stash`, `stash_part`, `memory`                            the key-value store, and its twin
  `sqlite_file`, `stash_sqlite`                              the stash in one SQLite file
  `postgres_link`, `postgres_tables`, `postgres_lease`       PostgreSQL: connection, tables, leader
  `stash_postgres`                                           the stash in PostgreSQL
  `object_store`, `local_store`, `layout`                    named blobs; the data directory
  `batch`, `codec`, `known_rows`, `row_schema`               a transaction's writes to a shard
  `unencoded_rows`                                           its rows before they are Arrow
  `live_files`, `row_versions`, `version`                    versions of a shard, with their files
  `shard`, `tail`, `shard_view`, `grown_view`                versions, later commits, views of them
  `view_marks`                                               a shard whose rows are behind inputs
  `changes`                                                  what each commit changed
  `commit`, `outstanding`, `txns`                            making a commit durable; tidying
  `former_commits`, `upgrade`                                stashes of older programs
  `cuts`, `check`                                            flushing to Delta; `meridian check`

`delta` holds the table format. Everything outside is behind `Stash` and `ObjectStore`. Imports
nothing of the project; `compute` and `coordinator` import it, `sql` does not.
"""
