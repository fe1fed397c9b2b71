"""LISTEN, UNLISTEN and NOTIFY of an open transaction, until its commit carries them into the core.

    NOTIFY c, 'p' ─▶ checked ─▶ once each, in order ─┬─ ROLLBACK TO, an error: as at the savepoint
    LISTEN c ──────▶ actions in order ───────────────┴─ COMMIT ─▶ NotificationChanges

INVARIANTS
  W1  of equal notifications of a transaction the first counts (AsyncExistsPendingNotify), unless it
      is undone.
  W2  ROLLBACK TO brings back what was pending at the savepoint; RELEASE keeps everything. What a
      statement has sent that begins again is undone likewise.
  W3  a transaction holds no more than the queue could take: beyond, its NOTIFY fails at once.
  W4  UNLISTEN of a session that has never listened does nothing, and costs no commit.

Not here: who hears what (`core/notifications/queue.py`).
"""

from dataclasses import dataclass
from typing import Final

from coordinator.core.notifications.changes import (
    ListenAction,
    Notification,
    NotificationChanges,
    utf8_bytes,
)
from sql.errors import SqlError

CHANNEL_BYTES_MAX: Final = 63
"""NAMEDATALEN - 1."""

PAYLOAD_BYTES_MAX: Final = 7_999
"""NOTIFY_PAYLOAD_MAX_LENGTH - 1."""


@dataclass(frozen=True, slots=True)
class NotificationsMark:
    """How much was pending at a savepoint, or before a statement (W2)."""

    actions: int
    notifications: int


NOTHING_PENDING: Final = NotificationsMark(0, 0)


class PendingNotifications:
    """See the module. One for a session's transactions. `bytes_max`: of the queue."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._actions: list[ListenAction] = []
        # A dictionary keeps the order.
        self._notifications: dict[Notification, None] = {}
        self._bytes = 0
        self._has_listened = False

    def __bool__(self) -> bool:
        return bool(self._actions or self._notifications)

    def listen(self, channel: str) -> None:
        """LISTEN."""
        self._has_listened = True
        self._actions.append(ListenAction(channel, listens=True))

    def unlisten(self, channel: str | None) -> None:
        """UNLISTEN; None: of all channels (W4)."""
        if self._has_listened:
            self._actions.append(ListenAction(channel, listens=False))

    def notify(self, channel: str, payload: str) -> None:
        """NOTIFY (Async_Notify). Raises 22023, 54000 (W3)."""
        if not channel:
            raise SqlError("22023", "channel name cannot be empty")
        if utf8_bytes(channel) > CHANNEL_BYTES_MAX:
            raise SqlError("22023", "channel name too long")
        if utf8_bytes(payload) > PAYLOAD_BYTES_MAX:
            raise SqlError("22023", "payload string too long")
        notification = Notification(channel, payload)
        if notification in self._notifications:
            return
        if self._bytes + notification.nbytes > self._bytes_max:
            raise SqlError("54000", "too many notifications in the NOTIFY queue")
        self._notifications[notification] = None
        self._bytes += notification.nbytes

    def changes(self) -> NotificationChanges | None:
        """What the commit does; None: nothing."""
        if not self:
            return None
        return NotificationChanges(tuple(self._actions), tuple(self._notifications), self._bytes)

    def mark(self) -> NotificationsMark:
        """The present state, for a savepoint or a statement."""
        if not self:
            return NOTHING_PENDING
        return NotificationsMark(len(self._actions), len(self._notifications))

    def rewind(self, mark: NotificationsMark) -> None:
        """Back to a savepoint, or to the beginning of a statement that begins again (W2)."""
        del self._actions[mark.actions :]
        while len(self._notifications) > mark.notifications:
            notification, _ = self._notifications.popitem()
            self._bytes -= notification.nbytes

    def forget(self) -> None:
        """The transaction is over."""
        if self:
            self.rewind(NOTHING_PENDING)
