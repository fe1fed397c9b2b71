"""Long lists, flat chains and nested views: the same answers as PostgreSQL, however long."""
