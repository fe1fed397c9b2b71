"""stored: to be described."""
