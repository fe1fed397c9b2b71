"""transaction: to be described."""
