"""catalog: to be described."""
