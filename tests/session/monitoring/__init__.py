"""Health and metrics over HTTP, of listeners in this process and of real servers."""
