"""spark: to be described."""
