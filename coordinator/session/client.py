"""What a session needs of its connection: messages, both ways.

Not here: bytes and sockets (`server/connection.py`).
"""

from typing import Protocol

from coordinator.pgwire.messages import BackendMessage, FrontendMessage


class Client(Protocol):
    """The other end, as messages."""

    def send(self, message: BackendMessage) -> None:
        """Queue a message."""
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

    async def receive(self) -> FrontendMessage:
        """The next message. Raises EOFError when there will be none."""
        ...

    async def peek(self) -> FrontendMessage:
        """The message that `receive` will return."""
        ...

    async def more(self) -> None:
        """After `take` has found nothing: write what is queued, wait for bytes, or for `wake`."""
        ...

    def wake(self) -> None:
        """End such a wait."""
        ...
