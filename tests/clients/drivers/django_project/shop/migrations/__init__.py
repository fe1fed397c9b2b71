"""The way of its tables, step by step."""
