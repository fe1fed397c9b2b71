"""The prefix of errors that our templates raise within an engine."""

from typing import Final

ERROR_TAG: Final = "MERIDIAN:"
"""Messages of `raise_error` in our templates are `MERIDIAN:<sqlstate>:<message>`."""
