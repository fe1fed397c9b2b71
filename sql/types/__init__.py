"""types: to be described."""
