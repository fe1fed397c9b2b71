"""Durability: the stash, the txns shard, tables on Delta. Knows no SQL and no sessions."""
