"""The one line on standard error with which the program says why it ends."""

import sys


def failed(line: str) -> int:
    """Say what is wrong, in one line (E1)."""
    sys.stderr.write(f"meridian: {' '.join(line.split())}\n")
    return 1
