"""Definitions and what they demand of rows, compared with PostgreSQL."""
