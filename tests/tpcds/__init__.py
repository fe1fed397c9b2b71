"""TPC-DS: its schema, a generator of small data of its shape, its 99 queries, PostgreSQL's answers."""
