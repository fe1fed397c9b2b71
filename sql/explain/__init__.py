"""explain: to be described."""
