"""Programs of others: drivers, object-relational mappers, psql, and the demo."""
