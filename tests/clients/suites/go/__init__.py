"""Clients of Go: drivers, an ORM, a query builder, migrators."""
