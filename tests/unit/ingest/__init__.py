"""What brings records of other systems in."""
