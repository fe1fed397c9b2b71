"""duckdb: to be described."""
