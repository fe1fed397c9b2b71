"""The queue of notifications: who listens to which channels, and what each has not heard yet.

    commit applied ─▶ apply: LISTEN, UNLISTEN ─▶ channels ─┐
                            NOTIFY ─▶ queue: 7 8 9 10 11   └▶ sessions to wake
                                               ▲    ▲
                      a position, where a session is behind ─▶ take: what it hears, in order

As in PostgreSQL (async.c) there is one queue for all sessions. A session that is behind has a
position in it, and what is before all positions leaves. A session that sits in a transaction takes
nothing, so it holds the queue.

INVARIANTS
  B1  a notification enters the queue in the step that applies its sender's group: never before it
      is durable, in the order of the commits, and within one in the order of its first NOTIFY.
  B2  LISTEN and UNLISTEN take effect in the step that applies their transaction, before the
      transaction's own notifications. A session hears exactly what enters the queue while it
      listens to the channel, each once; after UNLISTEN it hears no more of what it has not taken.
  B3  a session is behind from the moment when something enters the queue for it until it has taken
      everything. Then, and not again until it has, it is named among those to wake.
  B4  the queue, with what waits for its commit, takes at most `bytes_max`: room is reserved when a
      commit is requested, or the commit is refused. What nobody listens to takes no room after it.
  B5  a session that is over listens to nothing and holds nothing.

PostgreSQL 18 lets a session that listens already hear, on a channel that it comes to listen to,
also what was sent since it was last idle. B2 begins at the commit of LISTEN, as PostgreSQL's manual
says.

One queue serves all cores of a process: between timelines there is no order but that of the steps.
Nothing here is durable: listeners end with their sessions, and these with the process.

Not here: what a transaction collects (`transaction/notifications.py`), when a session is idle
(`session/session.py`).
"""

from dataclasses import dataclass, field
from typing import Final

from coordinator.core.messages.identities import ConnectionId
from coordinator.core.notifications.changes import (
    ListenAction,
    NotificationChanges,
    SentNotification,
    TakenNotifications,
)

TAKEN_BYTES_MAX: Final = 64 << 10
"""What a session takes at once. Larger: more memory for each session that is behind."""

LOOKED_AT_MAX: Final = 5_000
"""Notifications that one `take` looks at. Larger: longer steps, if most are for other sessions."""


@dataclass(slots=True)
class _Entry:
    """A notification in the queue. `readers`: how many sessions have their position here."""

    sent: SentNotification
    nbytes: int
    readers: int = 0


@dataclass(slots=True)
class _Listener:
    """A session. `channels`: from which number on it hears each. `position`: None if it has taken
    everything.
    """

    channels: dict[str, int] = field(default_factory=dict[str, int])
    position: int | None = None

    def hears(self, number: int, channel: str) -> bool:
        """Whether the notification of that number is for this session (B2)."""
        since = self.channels.get(channel)
        return since is not None and since <= number


class NotificationQueue:
    """See the module. Changed only inside steps of cores."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._bytes = 0
        self._reserved = 0
        self._entries: dict[int, _Entry] = {}
        self._first = self._next = 0
        self._listeners: dict[ConnectionId, _Listener] = {}
        # By channel; dictionaries keep the order in which sessions came.
        self._by_channel: dict[str, dict[ConnectionId, None]] = {}

    @property
    def usage(self) -> float:
        """The share of the queue that is taken: pg_notification_queue_usage()."""
        return self._bytes / self.bytes_max

    def channels(self, owner: ConnectionId) -> tuple[str, ...]:
        """What a session listens to: pg_listening_channels()."""
        listener = self._listeners.get(owner)
        return () if listener is None else tuple(listener.channels)

    # --- commits -----------------------------------------------------------------------------

    def reserve(self, nbytes: int) -> bool:
        """Keep room for what a commit sends; False: there is none (B4)."""
        if nbytes and self._bytes + self._reserved + nbytes > self.bytes_max:
            return False
        self._reserved += nbytes
        return True

    def release(self, nbytes: int) -> None:
        """The commit is over, one way or the other."""
        self._reserved -= nbytes
        assert self._reserved >= 0, "B4: what was reserved is released once"

    def apply(self, owner: ConnectionId, changes: NotificationChanges) -> list[ConnectionId]:
        """A transaction of `owner` is durable and applied (B1, B2); the sessions to wake (B3)."""
        if changes.actions:
            self._listen(owner, changes.actions)
        woken: list[ConnectionId] = []
        behind: set[str] = set()
        for notification in changes.notifications:
            channel = notification.channel
            receivers = self._by_channel.get(channel)
            if receivers is None:
                continue
            entry = _Entry(SentNotification(owner, notification), notification.nbytes)
            self._bytes += entry.nbytes
            if channel not in behind:
                # After the first one, all who listen to the channel are behind.
                behind.add(channel)
                woken += self._fall_behind(receivers, entry)
            self._entries[self._next] = entry
            self._next += 1
        return woken

    def _fall_behind(
        self, receivers: dict[ConnectionId, None], entry: _Entry
    ) -> list[ConnectionId]:
        """Those for whom the next entry is the first that they have not taken."""
        found: list[ConnectionId] = []
        for owner in receivers:
            listener = self._listeners[owner]
            if listener.position is None:
                listener.position = self._next
                entry.readers += 1
                found.append(owner)
        return found

    def _listen(self, owner: ConnectionId, actions: tuple[ListenAction, ...]) -> None:
        known = self._listeners.get(owner) or _Listener()
        wanted = dict.fromkeys(known.channels)
        for action in actions:
            if action.channel is None:
                wanted.clear()
            elif action.listens:
                wanted.setdefault(action.channel)
            else:
                wanted.pop(action.channel, None)
        for channel in known.channels.keys() - wanted.keys():
            self._forget_channel(owner, channel)
        for channel in wanted:
            self._by_channel.setdefault(channel, {}).setdefault(owner)
        # Who has listened all the time keeps what it has not taken.
        known.channels = {channel: known.channels.get(channel, self._next) for channel in wanted}
        if wanted:
            self._listeners[owner] = known
        else:
            self.forget(owner)

    # --- sessions ----------------------------------------------------------------------------

    def take(self, owner: ConnectionId) -> TakenNotifications:
        """What the session hears next, up to a limit."""
        listener = self._listeners.get(owner)
        if listener is None or listener.position is None:
            return TakenNotifications()
        found: list[SentNotification] = []
        nbytes = 0
        number = listener.position
        end = min(self._next, number + LOOKED_AT_MAX)
        while number < end and nbytes < TAKEN_BYTES_MAX:
            entry = self._entries[number]
            if listener.hears(number, entry.sent.notification.channel):
                found.append(entry.sent)
                nbytes += entry.nbytes
            number += 1
        more = number < self._next
        self._move(listener, number if more else None)
        return TakenNotifications(tuple(found), more)

    def forget(self, owner: ConnectionId) -> None:
        """The session is over, or listens to nothing any more (B5)."""
        listener = self._listeners.pop(owner, None)
        if listener is None:
            return
        for channel in listener.channels:
            self._forget_channel(owner, channel)
        self._move(listener, None)

    def _forget_channel(self, owner: ConnectionId, channel: str) -> None:
        receivers = self._by_channel[channel]
        del receivers[owner]
        if not receivers:
            del self._by_channel[channel]

    def _move(self, listener: _Listener, position: int | None) -> None:
        """A session's position moves on; what is before all positions leaves."""
        before, listener.position = listener.position, position
        if position is not None:
            self._entries[position].readers += 1
        if before is not None:
            self._entries[before].readers -= 1
        while self._first < self._next and not self._entries[self._first].readers:
            self._bytes -= self._entries.pop(self._first).nbytes
            self._first += 1
