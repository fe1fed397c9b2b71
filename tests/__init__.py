"""Tests by what they prove; `docs/architecture/09-testing.md` has the table."""
