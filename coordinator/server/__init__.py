"""server: to be described."""
