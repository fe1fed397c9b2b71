"""The PostgreSQL wire protocol without I/O."""
