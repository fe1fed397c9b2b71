"""TPC-H: its schema, a generator of data of its shape, its 22 queries, PostgreSQL's answers."""
