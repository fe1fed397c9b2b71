"""Random queries on PostgreSQL and both engines: `make sqlfuzz SECONDS=60`."""
