"""alter: to be described."""
