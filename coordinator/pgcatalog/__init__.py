"""pgcatalog: to be described."""
