"""variables: to be described."""
