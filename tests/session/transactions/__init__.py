"""Isolation, conflicts, locking, savepoints and timelines, as sessions see them."""
