"""driver: to be described."""
