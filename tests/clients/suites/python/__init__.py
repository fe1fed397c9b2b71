"""Clients in Python: drivers, object-relational mappers, migrators, data frames, dbt, SQLMesh."""
