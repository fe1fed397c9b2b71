"""What a session needs of its connection: messages, both ways.

Not here: bytes and sockets (`server/connection.py`).
"""

from collections.abc import Sequence
from typing import Protocol

from coordinator.pgwire.flights import BindFlight, Flight
from coordinator.pgwire.messages import BackendMessage, FrontendMessage


class Client(Protocol):
    """The other end, as messages."""

    def send(self, message: BackendMessage) -> None:
        """Queue a message. Errors and notices, and what is queued before them, are written."""
        ...

    async def flush(self) -> None:
        """Write what is queued; waits while the client does not read."""
        ...

    async def relieve(self) -> None:
        """Like flush, if much is queued; otherwise nothing."""
        ...

    def take(self) -> FrontendMessage | None:
        """The next message if it has come."""
        ...

    def flight(self) -> Flight | None:
        """The flight that comes next, if it has come whole (`pgwire/flights.py`)."""
        ...

    def runs(self, most: int) -> Sequence[BindFlight]:
        """The runs of prepared statements that come next, if they have come whole."""
        ...

    def drop(self, flight: Flight) -> None:
        """It is answered, by `send_encoded` or otherwise."""
        ...

    def send_encoded(self, data: bytes) -> None:
        """Queue answers to a flight."""
        ...

    def peek(self) -> FrontendMessage | None:
        """The message that `take` would give or refuse."""
        ...

    def answered(self) -> None:
        """A flight that was begun as its bytes came is answered: write, and go on with the next."""
        ...

    async def more(self) -> None:
        """After `take` or `peek` has found nothing: wait for bytes, or for `wake`.

        Nothing is written meanwhile. Raises EOFError when nothing more will come.
        """
        ...

    def wake(self) -> None:
        """End such a wait."""
        ...
