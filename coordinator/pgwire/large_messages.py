"""Large messages: they need room before their bytes are kept; those without any are let go by.

    header ─▶ awaits ─┬─ room ─▶ the message, when all of it has come
                      └─ none ─▶ its bytes go by ─▶ Malformed (53200)

INVARIANTS
  R1  a message is asked for once, and what comes behind one that has gone by is read as usual.
"""

from collections.abc import Callable
from typing import Final

from coordinator.pgwire.messages import Malformed
from sql.errors import SqlError

LARGE_BYTES: Final = 1 << 20
"""Messages that are longer need room. Larger: clients hold more without being asked. Smaller: more
messages are accounted for one by one."""


class LargeMessages:
    """See the module. `has_room`: for so many bytes."""

    def __init__(self, has_room: Callable[[int], bool]) -> None:
        self._has_room = has_room
        self._is_kept = False
        self._unread = 0
        self._kind: int | None = None

    @property
    def passing(self) -> int | None:
        """The type of the message that goes by, or has gone by and was not reported yet."""
        return self._kind

    def keeps(self, kind: int, length: int, arrived: int) -> bool:
        """Whether a message, of which only `arrived` bytes are there, is waited for; otherwise it
        goes by. `length`: as the header says, without the byte of its type.
        """
        if length <= LARGE_BYTES or self._is_kept:
            return True
        self._is_kept = self._has_room(length)
        if not self._is_kept:
            self._kind, self._unread = kind, 1 + length - arrived
        return self._is_kept

    def arrived(self) -> None:
        """The message is there."""
        self._is_kept = False

    def rest(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """What has come behind the message that goes by."""
        if not self._unread:
            return data
        dropped = min(self._unread, len(data))
        self._unread -= dropped
        return memoryview(data)[dropped:]

    def gone(self) -> Malformed | None:
        """What stands for the message that has gone by; None until all of it has."""
        if self._unread or self._kind is None:
            return None
        is_simple, self._kind = self._kind in b"QFS", None
        error = SqlError(
            "53200",
            "out of memory",
            detail="There is no room for a message of this size at the moment.",
            hint="The server's setting memory_max_mb bounds what all sessions hold together.",
        )
        return Malformed(error, is_simple)
