"""Every type at every place where an expression may stand, compared with PostgreSQL."""
