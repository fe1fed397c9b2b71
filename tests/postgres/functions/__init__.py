"""Every row of the function table against answers recorded from a real PostgreSQL."""
