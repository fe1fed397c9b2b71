"""Every function, operator, cast and aggregate over values at the edges, beside PostgreSQL."""
