"""statements: to be described."""
