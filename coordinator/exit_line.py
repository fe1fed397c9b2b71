"""Print the one line on standard error that says why the program ends."""

import sys


def report_failure(line: str) -> int:
    """Print one line that says what is wrong (E1 of `main.py`); the exit code."""
    sys.stderr.write(f"meridian: {' '.join(line.split())}\n")
    return 1
