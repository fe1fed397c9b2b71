"""One suite per Protocol, run against every implementation."""
