"""When to try again after a failure: each further one doubles the pause."""

from typing import Final

RETRY_MIN_US: Final = 100_000
"""After the first failure. Larger: a short outage lasts longer. Smaller: more tries that fail."""

_DOUBLINGS_MAX: Final = 20
"""Beyond any limit that a caller has; it keeps the numbers small."""


def retry_pause_us(failures: int, longest_us: int) -> int:
    """The pause after so many failures in a row, at most `longest_us`."""
    return min(longest_us, RETRY_MIN_US << min(failures - 1, _DOUBLINGS_MAX))
