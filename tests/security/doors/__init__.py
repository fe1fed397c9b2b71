"""Who may connect, by real servers and real clients."""
