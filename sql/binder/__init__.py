"""binder: to be described."""
