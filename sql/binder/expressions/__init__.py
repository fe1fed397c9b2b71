"""expressions: to be described."""
