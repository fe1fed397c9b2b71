"""The reader of PostgreSQL, beside a real one that is started once a run."""
