"""rewrite: to be described."""
