"""planning: to be described."""
