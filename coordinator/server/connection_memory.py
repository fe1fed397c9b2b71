"""What one connection has of the server's memory: large messages, and answers that wait.

INVARIANTS
  E1  a large message is accounted for from its header until the next one is taken, which is when
      its session has handled it.
"""

import asyncio
import logging
from typing import Final

from coordinator.memory_account import MemoryAccount, MemoryOwner
from coordinator.pgwire.messages import FrontendMessage
from coordinator.pgwire.protocol import Protocol
from sql.errors import SqlError

log = logging.getLogger("meridian.connection")

MESSAGE_COPIES: Final = 6
"""Of a large message, for a moment: its bytes, its frame, its text, and what the parser makes."""


class ConnectionMemory:
    """See the module."""

    def __init__(self, account: MemoryAccount) -> None:
        self._messages = account.holding(MemoryOwner.MESSAGES)
        self._results = account.holding(MemoryOwner.RESULTS)
        self._handed = 0

    def has_room(self, message_bytes: int) -> bool:
        """Whether a large message may come (E1)."""
        try:
            self._messages.add(MESSAGE_COPIES * message_bytes)
        except SqlError:
            log.warning("no room for a message of %s bytes", message_bytes)
            return False
        return True

    def taken(self, wire: Protocol) -> FrontendMessage | None:
        """The next message; what was taken before is not needed any more (E1)."""
        if self._handed:
            self._messages.add(-self._handed)
            self._handed = 0
        message = wire.take()
        if message is not None:
            self._handed = self._messages.nbytes
        return message

    def waits(self, transport: asyncio.Transport | None) -> None:
        """A result waits for the client. Raises 53200."""
        self._results.set(0 if transport is None else transport.get_write_buffer_size())

    def sent(self) -> None:
        """The client has taken most of them."""
        self._results.close()

    def close(self) -> None:
        """The connection is over."""
        self._messages.close()
        self._results.close()
