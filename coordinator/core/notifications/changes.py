"""What a transaction does with notifications, as values: LISTEN, UNLISTEN and NOTIFY.

The session's transaction collects them (`transaction/notifications.py`), its commit carries them
into the core, and the queue applies them (`queue.py`).
"""

from dataclasses import dataclass
from typing import Final

NOTIFICATION_OVERHEAD_BYTES: Final = 320
"""What the objects around the two texts of a notification take in memory."""


@dataclass(frozen=True, slots=True)
class ListenAction:
    """LISTEN or UNLISTEN. `channel` None: UNLISTEN of all channels."""

    channel: str | None
    listens: bool


@dataclass(frozen=True, slots=True)
class Notification:
    """A channel, and what is said on it."""

    channel: str
    payload: str

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        texts = utf8_bytes(self.channel) + utf8_bytes(self.payload)
        return texts + NOTIFICATION_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class NotificationChanges:
    """What a commit does: LISTEN and UNLISTEN in their order, then what it sends, in its order and
    each once. `nbytes`: of what it sends.
    """

    actions: tuple[ListenAction, ...] = ()
    notifications: tuple[Notification, ...] = ()
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class SentNotification:
    """A notification as its listeners hear it; `sender`: the connection that sent it."""

    sender: int
    notification: Notification


@dataclass(frozen=True, slots=True)
class TakenNotifications:
    """The next notifications of a session, in the order of the commits. `more`: there are more."""

    sent: tuple[SentNotification, ...] = ()
    more: bool = False


def utf8_bytes(text: str) -> int:
    """How many bytes a text has on the wire, or where it is kept."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
