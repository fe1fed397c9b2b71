"""Faults of the real process, its disk and its clock, under recorded load over the wire."""
