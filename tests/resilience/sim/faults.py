"""A stash and an object store that fail on demand, round any real one.

    caller ── before ──▶ inner call ── after ──▶ caller
                │ may wait, or raise: the request is lost, nothing happened
                                        └ may wait, or raise: it happened, the reply is lost

`fault` is awaited as `fault("before stash.transact")` and `fault("after stash.transact")`. What it
raises reaches the caller as it is: Determinate fits only before, Indeterminate fits both.

INVARIANTS
  F1  stash calls reach the inner stash in the order they were made, however long `before` takes.
  F2  the wrapper draws no randomness and keeps no clock: `fault` decides everything.
  F3  a request that was given up may arrive late, if `fault` raises Late: not after a later
      transaction of the same caller (S3), but after any read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from storage.errors import AlreadyExists, Indeterminate, NotFound, StorageError
from storage.memory import MemoryObjectStore
from storage.object_store import ObjectStore, Reading
from storage.stash import Ended, Require, Stash, Write
from storage.types import Epoch

Fault: TypeAlias = Callable[[str], Awaitable[None]]
Result = TypeVar("Result")


class Late(Indeterminate):
    """The request is on its way and arrives after `seconds`; the caller hears that it may."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


class FaultyStash:
    """A Stash whose calls fail as `fault` says (F1-F3)."""

    def __init__(self, inner: Stash, fault: Fault) -> None:
        self._inner = inner
        self._fault = fault
        self.epoch: Epoch | None = None
        """For observation: the one that the caller serves in."""
        self._turn = asyncio.Lock()
        self._late: list[Callable[[], Coroutine[object, None, object]]] = []

    async def fence(self) -> Epoch:
        self.epoch = await self._call("stash.fence", self._inner.fence)
        return self.epoch

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        await self._call(
            "stash.transact", lambda: self._inner.transact(epoch, writes, requires=requires)
        )

    async def read_format(self) -> int:
        return await self._call("stash.read_format", self._inner.read_format)

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        await self._call("stash.upgrade", lambda: self._inner.upgrade(epoch, writes))

    @property
    def exclusive(self) -> bool:
        return self._inner.exclusive

    async def confirm(self, epoch: Epoch) -> None:
        # Not in turn: it waits for no transaction (S5).
        await self._fault("before stash.confirm")
        await self._inner.confirm(epoch)
        await self._fault("after stash.confirm")

    async def scan(self, collection: str) -> Mapping[str, bytes]:
        return await self._call("stash.scan", lambda: self._inner.scan(collection))

    async def read(self, collection: str, key: str) -> bytes | None:
        return await self._call("stash.read", lambda: self._inner.read(collection, key))

    async def close(self) -> None:
        await self._call("stash.close", self._inner.close)

    async def _call(
        self, operation: str, inner: Callable[[], Coroutine[object, None, Result]]
    ) -> Result:
        # asyncio.Lock serves waiters first come, first served (F1).
        async with self._turn:
            try:
                await self._fault(f"before {operation}")
            except Late as late:
                self._late.append(inner)
                asyncio.get_running_loop().call_later(late.seconds, self._arrive)
                raise
            if operation == "stash.transact":
                self._arrive()
            result = await inner()
        await self._fault(f"after {operation}")
        return result

    def _arrive(self) -> None:
        """Late requests reach the inner stash, which must not wait (F3)."""
        late, self._late = self._late, []
        for inner in late:
            try:
                inner().send(None)
            except (StopIteration, StorageError):
                continue
            raise AssertionError("M2: a memory stash waits for nothing")


class PromptFaultyStash(FaultyStash):
    """The same, as a stash that takes transactions over at once (PromptStash)."""

    def __init__(self, inner: Stash, fault: Fault) -> None:
        super().__init__(inner, fault)
        self._handed_over: set[asyncio.Task[None]] = set()

    def hand_over(
        self, epoch: Epoch, writes: Sequence[Write], requires: Sequence[Require], ended: Ended
    ) -> None:
        async def work() -> None:
            failure: Exception | None = None
            try:
                await self.transact(epoch, writes, requires=requires)
            except StorageError as error:
                failure = error
            ended(failure)

        # A task of the process that hands it over: it is killed and paused with it.
        task = asyncio.get_running_loop().create_task(work())
        self._handed_over.add(task)
        task.add_done_callback(self._handed_over.discard)


class TwoStepStore:
    """A local store: an object is there before it is durable, and a crash may come between (D1).

    `between` is awaited with the object's name after it appeared and before it is durable. Its
    content is durable by then, its name is not; syncing a directory keeps all names in it. `linked`
    are the names that are not durable yet: all coordinators on one disk share it.
    """

    def __init__(self, inner: MemoryObjectStore, between: Fault, linked: set[str]) -> None:
        self._inner = inner
        self._between = between
        self._linked = linked

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        try:
            await self._inner.read(name)
        except NotFound:
            self._inner.write_unsynced(name, content)
        else:
            raise AlreadyExists(name)
        self._linked.add(name)
        await self._between(name)
        await self.sync([name], modified_ms=modified_ms)

    async def read_together(self, reading: Reading[Result]) -> Result:
        return await reading(self)

    async def read(self, name: str) -> bytes:
        return await self._inner.read(name)

    async def list(self, prefix: str) -> Sequence[str]:
        return await self._inner.list(prefix)

    async def delete(self, name: str) -> None:
        await self._inner.delete(name)
        self._linked.discard(name)

    async def sync(self, names: Sequence[str], *, modified_ms: int | None = None) -> None:
        await self._inner.sync(names, modified_ms=modified_ms)
        directories = {name.rpartition("/")[0] for name in names}
        kept = {name for name in self._linked if name.rpartition("/")[0] in directories}
        await self._inner.sync(sorted(kept))
        self._linked -= kept

    def local_path(self, name: str) -> Path:
        return self._inner.local_path(name)


class FaultyObjectStore:
    """An ObjectStore whose calls fail as `fault` says (F2); its calls may overtake each other."""

    def __init__(self, inner: ObjectStore, fault: Fault) -> None:
        self._inner = inner
        self._fault = fault

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        await self._call(
            "store.create", lambda: self._inner.create(name, content, modified_ms=modified_ms)
        )

    async def read_together(self, reading: Reading[Result]) -> Result:
        return await reading(self)

    async def read(self, name: str) -> bytes:
        return await self._call("store.read", lambda: self._inner.read(name))

    async def list(self, prefix: str) -> Sequence[str]:
        return await self._call("store.list", lambda: self._inner.list(prefix))

    async def delete(self, name: str) -> None:
        await self._call("store.delete", lambda: self._inner.delete(name))

    async def sync(self, names: Sequence[str], *, modified_ms: int | None = None) -> None:
        await self._call("store.sync", lambda: self._inner.sync(names, modified_ms=modified_ms))

    def local_path(self, name: str) -> Path:
        return self._inner.local_path(name)

    async def _call(self, operation: str, inner: Callable[[], Awaitable[Result]]) -> Result:
        await self._fault(f"before {operation}")
        result = await inner()
        await self._fault(f"after {operation}")
        return result
