"""TPC-DS: its schema, small data of its shape, its 99 queries with PostgreSQL's answers."""
