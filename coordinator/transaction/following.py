"""The subscriptions that a session has open, and how one of them ends its statement."""

from collections.abc import Callable

from sql.errors import SqlError


def _nobody(_: SqlError) -> None:
    """Before the session has begun."""


class Following:
    """See the module."""

    def __init__(self) -> None:
        self.open = 0
        """How many there are."""
        self.interrupt: Callable[[SqlError], None] = _nobody
        """Ends the statement that runs, if any."""
