"""datetime: to be described."""
