"""json: to be described."""
