"""SQL that tries to leave the database or to end the server, through the wire, on both engines."""
