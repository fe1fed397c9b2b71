"""Replies that a session hears of as it does of commits that were begun where its bytes came."""

import asyncio

from coordinator.core.messages.replies import Committed, ReplyValue
from coordinator.driver.coordination import reply_in_kind
from coordinator.driver.open_requests import OnReply
from sql.catalog.catalog import SYSTEM_TIMELINE


class HeardReplies:
    """Those of a transaction; `count`: how many have come."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> tuple[OnReply, "asyncio.Future[ReplyValue | None]"]:
        """Who is to be told of the next one, and what it will be."""
        heard: asyncio.Future[ReplyValue | None] = asyncio.get_running_loop().create_future()

        def hear(reply: ReplyValue | None) -> None:
            self.count += 1
            if not heard.done():
                heard.set_result(reply)

        return hear, heard


def committed(reply: ReplyValue | None) -> Committed:
    """What a commit was answered. Raises what else it was."""
    return reply_in_kind(reply, Committed, SYSTEM_TIMELINE.name)
