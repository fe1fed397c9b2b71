"""The server's log as operators read it: statements, durations, errors, locks, connections."""
