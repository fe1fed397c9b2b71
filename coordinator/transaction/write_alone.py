"""A write that is its whole transaction, from its request to its fate.

    ask ─▶ coordination ─▶ reply ─┬─▶ `settled` is called: who has asked waits for nothing
                                  └─▶ `settle` returns: a task waits

INVARIANTS
  A1  its transaction is committing from `ask` to `conclude`, or until the waiting task is
      cancelled.
  A2  one of the two hears of the reply: a task that waits, or else `settled`.
"""

import asyncio
from collections.abc import Callable

from coordinator.core.messages.replies import Committed, ReplyValue
from coordinator.core.messages.requests import Insertion
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.transaction.transaction import SessionTransaction


class WriteAlone:
    """See the module."""

    __slots__ = (
        "_reply",
        "_settled",
        "_transaction",
        "_waiter",
        "_write",
        "is_asked",
        "is_settled",
    )

    def __init__(self, transaction: SessionTransaction, write: Insertion | WriteByKey) -> None:
        self._transaction = transaction
        self._write = write
        self._reply: ReplyValue | None = None
        self._settled: Callable[[], None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.is_asked = self.is_settled = False

    @property
    def has_committed(self) -> bool:
        """Whether `conclude` will say so."""
        return isinstance(self._reply, Committed)

    def ask(self, settled: Callable[[], None] | None = None) -> None:
        """Ask for it. `settled`: called when its fate is known, perhaps at once."""
        self.is_asked, self._settled = True, settled
        self._transaction.begin_write(self._write, self._heard)

    def _heard(self, reply: ReplyValue | None) -> None:
        self._reply, self.is_settled = reply, True
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif self._settled is not None:
            self._settled()

    async def settle(self) -> None:
        """Wait until its fate is known."""
        if not self.is_asked:
            self.ask()
        if self.is_settled:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """The session ends, and hears no more of it (A1)."""
        self._settled, self._transaction.committing = None, False

    def conclude(self) -> Committed:
        """What has become of it, once. Raises RequestRefused, and LockBlocks."""
        return self._transaction.end_write(self._reply)


async def run_write_alone(
    transaction: SessionTransaction, write: Insertion | WriteByKey
) -> Committed:
    """Run a write as the whole transaction and commit it. Raises RequestRefused, and LockBlocks."""
    asked = WriteAlone(transaction, write)
    await asked.settle()
    return asked.conclude()
