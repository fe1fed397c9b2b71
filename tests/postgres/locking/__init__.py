"""Who waits for whom, and what everybody is answered then, beside PostgreSQL."""
