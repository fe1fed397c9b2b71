"""Clients of Node.js: drivers, query builders, object-relational mappers, migrators."""
