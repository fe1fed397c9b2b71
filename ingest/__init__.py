"""What brings records of other systems in: readers of upstreams, and their decoding.

    upstream ─▶ SourceReader.read ─▶ SourceBatch ─▶ the core's queue ─▶ commit ─▶ acknowledge

An upstream is the other system. A reader knows one kind of it and nothing of timestamps, commits or
the catalog. The coordinator says from which position on it reads, and what it may acknowledge.

- `reader`: the contract of all readers, and what they give.
- `generator`: a reader that makes its own rows.
- `postgres`: the reader of PostgreSQL: a snapshot by COPY, then logical decoding by `pgoutput`.
- `copy_text`: texts of COPY as columns, for readers and for the wire protocol.
- `secrets`: where passwords of connections come from, and where connections may go.

Only `coordinator` imports the package.

INVARIANTS (F1 to F5 and F10 are in `coordinator/core/sources/__init__.py`)
  F6  definite: `read` after a position gives the records directly behind it, in upstream's order,
      whenever it is asked. Only how many of them a batch has may differ.
  F7  nothing silently: each record is in a batch as a change or as a bad record, or reading fails.
  F8  `inspect` changes nothing upstream. Whatever a reader makes there has a name that its source
      knows before, and `release` removes it, however often it is called.
  F9  a batch is whole upstream transactions; beyond the limits it has exactly one, or a part of one
      that is larger than memory should be (`SourceBatch.ends`).
"""
