"""Every statement of every script in transactions and savepoints, beside PostgreSQL's answers."""
