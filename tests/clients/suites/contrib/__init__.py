"""What comes with PostgreSQL: pgbench, and the modules postgres_fdw and dblink."""
