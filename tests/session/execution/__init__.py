"""Which engine runs a statement, and what its failures do to the session that asked."""
