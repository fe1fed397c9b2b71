"""pg_hba.conf and pg_ident.conf beside PostgreSQL 18: the same lines, rows of the views alike."""
