"""A real PostgreSQL that is written to feeds a real server, while either is struck.

    Writers ─▶ PostgreSQL ── source ─▶ Meridian ◀── Watcher: slot beside strict reads
                   ▲                      ▲
                   └────── strikes ───────┘            at the end: both sides row by row

INVARIANTS
  W1  gate: what PostgreSQL says was acknowledged is in every strict read that begins afterwards.
  W2  prefix: every strict read sees whole transactions of upstream, over all tables.
  W3  the end: the tables are equal, row by row.
"""
