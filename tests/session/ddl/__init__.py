"""Definitions: side by side, in races, in crashes; temporary relations, types, catalogs."""
