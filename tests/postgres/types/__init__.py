"""Types against PostgreSQL: answers recorded from a real server, and whole servers with drivers."""
