"""Primary keys, unique constraints, ON CONFLICT, and reads and writes by key."""
