"""The sessions' way to the queue of notifications: whom to wake, and what can be looked at.

    core ── WakeListeners ──▶ SessionNotifications ──▶ session: flag, and out of its wait
    session, once it is idle ── TakeNotifications ──▶ core

All drivers of a process share one, as their cores share the queue.
"""

from collections.abc import Callable, Iterable

from coordinator.core.messages.identities import ConnectionId
from coordinator.core.notifications.queue import NotificationQueue


class SessionNotifications:
    """See the module. Waking never waits, and never fails."""

    def __init__(self, queue: NotificationQueue) -> None:
        self.queue = queue
        """For observation; only steps of cores change it."""
        self._wakers: dict[ConnectionId, Callable[[], None]] = {}

    def attach(self, owner: ConnectionId, wake: Callable[[], None]) -> None:
        """A session begins: `wake` is called when there is something for it to hear."""
        self._wakers[owner] = wake

    def detach(self, owner: ConnectionId) -> None:
        """It is over; nothing happens if it never began."""
        self._wakers.pop(owner, None)

    def wake(self, owners: Iterable[ConnectionId]) -> None:
        """There is something for these sessions to hear."""
        for owner in owners:
            wake = self._wakers.get(owner)
            if wake is not None:
                wake()
