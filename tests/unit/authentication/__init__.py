"""Who may connect, without sockets: SCRAM beside recorded frames, rules of pg_hba.conf."""
