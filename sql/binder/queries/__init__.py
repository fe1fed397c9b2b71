"""queries: to be described."""
