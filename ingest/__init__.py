"""What brings records of other systems in: readers of upstreams, and their decoding.

    upstream ─▶ SourceReader.read ─▶ SourceBatch ─▶ the core's queue ─▶ commit ─▶ acknowledge

A reader knows one upstream and nothing of timestamps, commits or the catalog. The coordinator says
from which position on it reads, and what it may acknowledge.

INVARIANTS (numbers of `docs/architecture`, page of the sources)
  F6  definite: `read` after a position gives the records directly behind it, in upstream's order,
      whenever it is asked. Only how many of them a batch has may differ.
  F7  nothing silently: each record is in a batch as a change or as a bad record, or reading fails.
  F8  `inspect` changes nothing upstream. Whatever a reader makes there has a name that its source
      knows before, and `release` removes it, however often it is called.
  F9  a batch is whole upstream transactions; beyond the limits it has exactly one.
"""
