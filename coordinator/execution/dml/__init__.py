"""dml: to be described."""
