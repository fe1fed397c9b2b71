"""execution: to be described."""
