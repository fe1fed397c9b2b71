"""parser: to be described."""
