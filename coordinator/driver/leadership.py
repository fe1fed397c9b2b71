"""Confirm that this coordinator still leads before it answers reads, and says who holds a lock.

    reads that wait ─┬─ A ─┬─▶ question 1 ─────▶ answer: A, B
                     └─ B ─┘        C, D wait ─▶ question 2 ─────▶ answer: C, D

INVARIANTS
  F1  a read is answered only by a question that went out after the read was asked. An answer to an
      older question proves nothing: a new leader may have acknowledged writes between the two.
  F2  one question is under way at a time; it answers all reads that waited when it went out.
  F3  Fenced fails all waiting reads and ends the driver; another failure fails only the reads that
      its question stood for.
  F4  without reads the coordinator asks from time to time, so that it ends soon after it was
      deposed.

It costs nothing where the stash keeps all others out (SQLite under its lock). A read-only
transaction needs one confirmation, after its snapshot: it is serialized at that moment. A writing
transaction is confirmed by its commit as well, which carries the epoch.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from storage.errors import Determinate, Fenced, StorageError
from storage.stash import Stash
from storage.types import Epoch

Spawn: TypeAlias = Callable[[Coroutine[object, object, None]], None]

WATCH_TICKS: Final = 10
"""Ticks of the driver between two questions of its own (F4). Larger: a deposed coordinator that
nobody uses lives longer; smaller: more questions of an idle one."""


class Leadership:
    """See the module. `spawn` runs a task whose failure ends the driver (F3)."""

    def __init__(self, stash: Stash, epoch: Epoch, spawn: Spawn) -> None:
        self._stash = stash
        self._epoch = epoch
        self._spawn = spawn
        self._waiting: list[asyncio.Future[None]] = []
        self._asking = False
        self._ticks = 0

    @property
    def is_certain(self) -> bool:
        """Whether nobody else can lead, so that there is nothing to ask."""
        return self._stash.exclusive

    async def confirm(self) -> None:
        """Return if this epoch was the newest at some moment after the call (F1).

        Raises Fenced, or Determinate: then nothing is known.
        """
        if self.is_certain:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._ask_now()
        await waiter

    def tick(self) -> None:
        """Ask now and then, though nobody waits (F4)."""
        self._ticks += 1
        if self._ticks % WATCH_TICKS == 0 and not self._stash.exclusive:
            self._ask_now()

    def _ask_now(self) -> None:
        if not self._asking:
            self._asking = True
            self._spawn(self._ask())

    async def _ask(self) -> None:
        """Ask until nobody waits any more (F2)."""
        asked: list[asyncio.Future[None]] = []
        try:
            while True:
                asked, self._waiting = self._waiting, []
                try:
                    await self._stash.confirm(self._epoch)
                except Fenced:
                    raise
                except StorageError as error:
                    _fail(asked, Determinate, str(error))
                else:
                    _succeed(asked)
                if not self._waiting:
                    return
        except Fenced as error:
            _fail([*asked, *self._waiting], Fenced, str(error))
            raise
        except BaseException:
            # The driver ends: nobody will ask for those who wait.
            for waiter in (*asked, *self._waiting):
                waiter.cancel()
            raise
        finally:
            self._asking = False


def _succeed(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _fail(waiters: list[asyncio.Future[None]], kind: type[StorageError], text: str) -> None:
    for waiter in waiters:
        if not waiter.done():
            # One for each: an exception collects the traces of those who raise it.
            waiter.set_exception(kind(text))
