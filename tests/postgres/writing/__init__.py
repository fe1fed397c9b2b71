"""Writing: statements that modify data, beside PostgreSQL's answers and states."""
