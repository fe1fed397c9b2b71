"""A subscription as its session holds it: take what there is, wait until there is more.

    core ── WakeSubscribers ──▶ SubscriptionWakers ──▶ ChangeStream.wait
    session ── take, move, close ──▶ core

INVARIANTS
  W1  nobody polls: who waits is woken by the step that has something for it, or by the end of the
      driver.
  W2  a wake-up is never lost: it is forgotten only before the core is asked.
  W3  a commit that a thousand wait for wakes them in portions. Between two portions the loop does
      other work: those who commit do not wait for those who follow.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from coordinator.core.change_streams.steps import ChangeStep, SubscriptionId
from coordinator.core.messages.requests import Message, MoveSubscription, Unsubscribe
from storage.types import Timestamp

WOKEN_AT_ONCE: Final = 8
"""Larger: others wait longer, some 0.1 ms for each. Smaller: more turns of the loop."""


class SubscriptionWakers:
    """The subscriptions of one driver, by what wakes them."""

    def __init__(self) -> None:
        self._streams: dict[SubscriptionId, ChangeStream] = {}
        self._line: deque[SubscriptionId] = deque()

    def attach(self, subscription: SubscriptionId, stream: "ChangeStream") -> None:
        """A subscription begins."""
        self._streams[subscription] = stream

    def detach(self, subscription: SubscriptionId) -> None:
        """It is over; nothing happens if that is known."""
        self._streams.pop(subscription, None)

    def wake(self, subscriptions: Iterable[SubscriptionId]) -> None:
        """There is something for these to take (W3)."""
        waits = bool(self._line)
        self._line.extend(subscriptions)
        if not waits:
            self._wake_some()

    def _wake_some(self) -> None:
        for _ in range(min(WOKEN_AT_ONCE, len(self._line))):
            stream = self._streams.get(self._line.popleft())
            if stream is not None:
                stream.wake()
        if self._line:
            asyncio.get_running_loop().call_soon(self._wake_some)

    def stop(self, subscriptions: Iterable[SubscriptionId]) -> None:
        """These are over, whatever they do at this moment."""
        for subscription in subscriptions:
            stream = self._streams.get(subscription)
            if stream is not None:
                stream.stop()

    def wake_all(self) -> None:
        """The driver ends: whoever waits asks once more, and hears that."""
        for stream in self._streams.values():
            stream.wake()


class ChangeStream:
    """See the module. Whoever has one closes it."""

    def __init__(
        self,
        subscription: SubscriptionId,
        wakers: SubscriptionWakers,
        take: Callable[[SubscriptionId], ChangeStep],
        tell: Callable[[Message], None],
    ) -> None:
        self._subscription = subscription
        self._wakers = wakers
        self._take = take
        self._tell = tell
        self._event = asyncio.Event()
        self.on_stop: Callable[[], None] | None = None
        """Called when the subscription is over while rows are being sent; not in a step."""
        wakers.attach(subscription, self)

    def wake(self) -> None:
        """There is something to take."""
        self._event.set()

    def stop(self) -> None:
        """It is over: `take` says why."""
        self._event.set()
        if self.on_stop is not None:
            asyncio.get_running_loop().call_soon(self.on_stop)

    def take(self) -> ChangeStep:
        """What comes next, perhaps nothing. Raises 58030, 57P01."""
        self._event.clear()
        return self._take(self._subscription)

    async def wait(self) -> None:
        """Until there is something to take; after `take` has given nothing."""
        await self._event.wait()

    def move(self, ts: Timestamp) -> None:
        """Everything up to `ts` was told."""
        self._tell(MoveSubscription(self._subscription, ts))

    def close(self) -> None:
        """Nothing more is wanted; may be called twice."""
        self.on_stop = None
        self._wakers.detach(self._subscription)
        self._tell(Unsubscribe(self._subscription))
