"""Commits that are asked for where the bytes of a client come, from the request to their fate.

    ask ─▶ coordination ─▶ reply ─┬─▶ `settled` is called: who has asked waits for nothing
                                  └─▶ `settle` returns: a task waits

A write that is its whole transaction (`WriteAlone`), or all that a block has done (`BlockCommit`).

INVARIANTS
  A1  its transaction is committing from `ask` to `conclude`, or until the waiting task is
      cancelled.
  A2  one of the two hears of the reply: a task that waits, or else `settled`.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable

from coordinator.core.messages.replies import Committed, ReplyValue
from coordinator.core.messages.requests import Insertion
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.transaction.transaction import SessionTransaction


class BegunCommit:
    """See the module."""

    __slots__ = ("_reply", "_settled", "_transaction", "_waiter", "is_asked", "is_settled")

    def __init__(self, transaction: SessionTransaction) -> None:
        self._transaction = transaction
        self._reply: ReplyValue | None = None
        self._settled: Callable[[], None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.is_asked = self.is_settled = False

    @property
    def has_committed(self) -> bool:
        """Whether `conclude` will say so."""
        return isinstance(self._reply, Committed)

    def ask(self, settled: Callable[[], None] | None = None) -> bool:
        """Ask for it. `settled`: called when its fate is known, perhaps at once. False: nothing has
        happened, and it has to be committed otherwise. Raises 57P01.
        """
        self._settled = settled
        self.is_asked = self._begin()
        return self.is_asked

    @abstractmethod
    def _begin(self) -> bool: ...

    @abstractmethod
    def conclude(self) -> Committed:
        """What has become of it, once. Raises RequestRefused, and LockBlocks."""

    def _heard(self, reply: ReplyValue | None) -> None:
        self._reply, self.is_settled = reply, True
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif self._settled is not None:
            self._settled()

    async def settle(self) -> None:
        """Wait until the fate of what was asked for is known."""
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


class WriteAlone(BegunCommit):
    """A write that is its whole transaction."""

    __slots__ = ("_write",)

    def __init__(self, transaction: SessionTransaction, write: Insertion | WriteByKey) -> None:
        super().__init__(transaction)
        self._write = write

    def _begin(self) -> bool:
        self._transaction.begin_write(self._write, self._heard)
        return True

    def conclude(self) -> Committed:
        """See BegunCommit."""
        return self._transaction.end_write(self._reply)


class BlockCommit(BegunCommit):
    """The COMMIT of a block."""

    __slots__ = ()

    def _begin(self) -> bool:
        return self._transaction.begin_commit(self._heard)

    def conclude(self) -> Committed:
        """See BegunCommit. Whatever it raises, the transaction has ended."""
        return self._transaction.end_commit(self._reply)


async def run_write_alone(
    transaction: SessionTransaction, write: Insertion | WriteByKey
) -> Committed:
    """Run a write as the whole transaction and commit it. Raises RequestRefused, and LockBlocks."""
    asked = WriteAlone(transaction, write)
    asked.ask()
    await asked.settle()
    return asked.conclude()
