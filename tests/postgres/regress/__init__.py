"""PostgreSQL's own regression tests, played on PostgreSQL and on Meridian."""
