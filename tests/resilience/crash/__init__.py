"""Crashes of the real process: kill -9 under load."""
