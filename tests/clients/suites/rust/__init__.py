"""Clients of Rust: drivers, a pool, query builders, migrators."""
