"""Requests of sessions that wait for the core's reply.

    request ─▶ step ─▶ effects, Reply among them ─┬─▶ future: a task awaits it
                                                  └─▶ told, once all effects are performed

INVARIANTS
  Q1  a request is answered once, or cancelled with all that are left when the driver ends.
  Q2  nobody is told within a step or between its effects: who is told may ask the next thing.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from coordinator.core.messages.identities import RequestId
from coordinator.core.messages.replies import ReplyValue

OnReply: TypeAlias = Callable[[ReplyValue | None], None]
"""Told of the reply; None: there will be none, as the driver has ended. It raises nothing."""


class OpenRequests:
    """See the module."""

    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[RequestId, asyncio.Future[ReplyValue] | OnReply] = {}
        self._replies: deque[tuple[OnReply, ReplyValue]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def awaited(self) -> tuple[RequestId, "asyncio.Future[ReplyValue]"]:
        """A new request, and its reply."""
        future: asyncio.Future[ReplyValue] = asyncio.get_running_loop().create_future()
        return self.heard_by(future), future

    def heard_by(self, waiter: "OnReply | asyncio.Future[ReplyValue]") -> RequestId:
        """A new request, and who hears of its reply."""
        self._last += 1
        request = RequestId(self._last)
        self._waiting[request] = waiter
        return request

    def forget(self, request: RequestId) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(request, None)

    def answer(self, request: RequestId, value: ReplyValue) -> None:
        """The core has replied (Q1)."""
        waiter = self._waiting.pop(request, None)
        if waiter is None:
            return
        if not isinstance(waiter, asyncio.Future):
            self._replies.append((waiter, value))
        elif not waiter.done():
            waiter.set_result(value)

    def tell(self) -> None:
        """Every effect of the step is performed (Q2)."""
        while self._replies:
            told, value = self._replies.popleft()
            told(value)

    def close(self) -> None:
        """There are no replies any more (Q1)."""
        left, self._waiting = self._waiting, {}
        for waiter in left.values():
            if isinstance(waiter, asyncio.Future):
                waiter.cancel()
            else:
                waiter(None)
