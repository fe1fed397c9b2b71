"""regex: to be described."""
