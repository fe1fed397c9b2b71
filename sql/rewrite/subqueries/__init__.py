"""subqueries: to be described."""
