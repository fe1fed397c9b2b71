"""A part of a stash under its own name, for a timeline other than `system`.

The collection `batches` of the part `line` is `line/batches` of the whole stash. Epoch and order
are the whole stash's, so fencing one fences all (S2, S3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from storage.stash import Require, Stash, Write
from storage.types import Epoch


class StashPart:
    """See the module; a Stash."""

    def __init__(self, whole: Stash, name: str) -> None:
        assert name, "a part has a name"
        self._whole = whole
        self._name = name

    async def fence(self) -> Epoch:
        """See Stash; fences the whole."""
        return await self._whole.fence()

    async def read_format(self) -> int:
        """See Stash; of the whole."""
        return await self._whole.read_format()

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        """See Stash; the format is the whole's."""
        await self._whole.upgrade(epoch, [self._moved(write) for write in writes])

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        """See Stash."""
        await self._whole.transact(
            epoch,
            [self._moved(write) for write in writes],
            requires=[replace(need, collection=self._place(need.collection)) for need in requires],
        )

    @property
    def exclusive(self) -> bool:
        """See Stash."""
        return self._whole.exclusive

    async def confirm(self, epoch: Epoch) -> None:
        """See Stash."""
        await self._whole.confirm(epoch)

    async def scan(self, collection: str) -> Mapping[str, bytes]:
        """See Stash."""
        return await self._whole.scan(self._place(collection))

    async def read(self, collection: str, key: str) -> bytes | None:
        """See Stash."""
        return await self._whole.read(self._place(collection), key)

    async def close(self) -> None:
        """Does nothing: who opened the whole closes it."""

    def _moved(self, write: Write) -> Write:
        return replace(write, collection=self._place(write.collection))

    def _place(self, collection: str) -> str:
        return f"{self._name}/{collection}"
