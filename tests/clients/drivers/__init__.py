"""Real clients against the real stack: psycopg, asyncpg, psql, pgjdbc, SQLAlchemy."""
