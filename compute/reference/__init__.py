"""reference: to be described."""
