"""ddl: to be described."""
