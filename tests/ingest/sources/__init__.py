"""Sources from a real PostgreSQL, by statements of a real server."""
