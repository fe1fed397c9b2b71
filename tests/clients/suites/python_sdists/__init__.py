"""The tests that SQLAlchemy and asyncpg ship in their source distributions."""
