"""Spark and DuckDB by themselves: relations, streaming, interruption, memory, security."""
