"""functions: to be described."""
