"""Delta tables: the log, snapshots, data files and deletion vectors, written and read by us.

    tail of a shard ─ flush_plan ─▶ data file, deletion vectors, log entry ─ snapshot ─▶ Version
    log in the object store ─ recovery ─▶ ShardState

  `layout`, `actions`, `schema`, `table`      names of objects; log actions; Delta schemas; metadata
  `log`, `history`                            log entries as JSON; Meridian's own notes in them
  `files`, `statistics`, `deletion_vectors`   Parquet files, their bounds, their deleted rows
  `change_feed`                               what a version changes, for readers of Delta
  `snapshot`, `flush_plan`, `writes`          the next version; one flush; comparing log and commits
  `checkpoint`, `maintenance`, `checksum`     state of the log in a file, for faster reading
  `recovery`, `file_check`                    a shard from its log; is a data file sound
  `compaction_plan`, `compaction`             choosing and rewriting small or half-deleted files
  `vacuum_plan`, `vacuum`                     deleting files that nobody can read any more

The `*_plan` modules are pure; the core calls those of compaction and vacuum. Imports `storage`,
whose `shard`, `live_files`, `cuts` and `check` import parts of it. `compute` and `coordinator`
import both.
"""
