"""roles: to be described."""
