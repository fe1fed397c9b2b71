"""Logical plans to the SQL of an engine."""
