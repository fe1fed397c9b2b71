"""Sources: bring what an upstream has committed into tables, each record once.

    DDL ─▶ StartSource ─▶ PullSource ─▶ PrepareBatch ─▶ group commit ─▶ AcknowledgeSource
              ▲               ▲                             │
              └─ failed       └─────────────────────────────┘ committed and readable

`records` has how far a source is read, as the stash has it. `batches` has the member of a group.
`running` has the states of a source, and `steps` moves them; `observed` shows them. `aside` copies
tables beside the stream. `loading` says which tables can be read yet, and `recency` lets queries
wait for upstream. `leftovers` has what stands upstream for sources that need it no more. The driver
runs the effects (`effects`, `completions`) with the readers of package `ingest`.

INVARIANTS of a source
  F1  one record: its position, and the rows, errors and counters that the position stands for,
      change in one transaction of the stash.
  F2  prefix: at every timestamp its tables show the effects of a prefix of upstream's commits, over
      all of them together, from where each table joined.
  F3  gate: AcknowledgeSource leaves only in a step behind the one in which the oracle has applied
      the commit with that position, so every strict read that begins afterwards sees it. A start
      acknowledges what the stash has, which every timestamp of this coordinator is above.
  F4  within a generation the position only advances. A generation is one slot, or its like, that
      stands upstream for the source.
  F5  one writer: only the source writes to its tables, one batch after the other. So a batch
      conflicts with nobody, waits for no lock and is refused only if a definition has changed.
  F6  F7 F8 F9 are the readers' (`ingest/__init__.py`).
  F10 apart: a source that fails, stalls or lags delays no client and no other source. What it waits
      for is a state that can be seen.

A completion names the attempt of its source that has asked for it; that of an older one is dropped.
A start, a failure and each change of a definition begin another attempt, which reads on from the
position in the stash.
"""
