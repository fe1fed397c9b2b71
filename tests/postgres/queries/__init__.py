"""Statements as users and tools send them, beside what PostgreSQL 18 answered."""
