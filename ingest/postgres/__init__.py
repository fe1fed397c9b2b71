"""Read PostgreSQL: a snapshot, then its stream of logical replication, by one slot.

    LibpqLink ─▶ replication_connection ─▶ pgoutput ─▶ assembler ─▶ reader ─▶ SourceBatch
                                                           ▲               ▲
                                                     table_decoder    publication

`reader.PostgresReader` implements the contract of `ingest/reader.py`. From below to above:
`pgoutput` decodes messages and knows nothing else. `libpq_link` runs libpq without blocking the
loop. `upstream_types` maps types, `table_decoder` makes values of texts, `publication` asks what
is published and whether it still is. `fold` is for those who prepare a batch for a table.

psycopg is imported with the first connection, so that a server without a source does not load it.
"""
