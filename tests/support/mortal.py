"""In-memory stash and store that crash at the n-th write."""

import copy
from collections.abc import Awaitable, Callable, Sequence

from storage.errors import Fatal
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Require, Write
from storage.types import Epoch


class Life:
    """How many writes a process still has, and whether the last one is done."""

    def __init__(self) -> None:
        self.writes = 0
        self._left: int | None = None
        self._last_is_done = False

    def end_at(self, write: int, *, done: bool) -> None:
        """Die at the write of this number from now on, with it or before it."""
        self._left, self._last_is_done = write, done

    @property
    def is_over(self) -> bool:
        """Whether it has died."""
        return self._left is not None and self._left <= 0

    def go_on(self) -> None:
        """Let others look at what is left."""
        self._left = None

    async def write(self, do: Callable[[], Awaitable[None]]) -> None:
        """Do it, or die. Raises Fatal."""
        self.writes += 1
        if self._left is None:
            return await do()
        self._left -= 1
        if self._left > 0 or (self._left == 0 and self._last_is_done):
            await do()
        if self._left <= 0:
            raise Fatal("the process is gone")
        return None


class MortalStash(MemoryStash):
    """A stash of such a process; `like`: with what another one has."""

    def __init__(self, life: Life, like: MemoryStash | None = None) -> None:
        super().__init__()
        if like is not None:
            vars(self).update(vars(copy.deepcopy(like)))
        self._life = life

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        write = super().transact
        await self._life.write(lambda: write(epoch, writes, requires=requires))

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        write = super().upgrade
        await self._life.write(lambda: write(epoch, writes))


class MortalStore(MemoryObjectStore):
    """An object store of such a process."""

    def __init__(self, life: Life, like: MemoryObjectStore | None = None) -> None:
        super().__init__()
        if like is not None:
            vars(self).update(vars(copy.deepcopy(like)))
        self._life = life

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        write = super().create
        await self._life.write(lambda: write(name, content, modified_ms=modified_ms))

    async def sync(self, names: Sequence[str], *, modified_ms: int | None = None) -> None:
        write = super().sync
        await self._life.write(lambda: write(names, modified_ms=modified_ms))

    async def delete(self, name: str) -> None:
        write = super().delete
        await self._life.write(lambda: write(name))
