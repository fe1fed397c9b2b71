"""An object store that loses requests and replies, and what must hold of the log in it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from storage.delta.actions import CommitInfo
from storage.delta.layout import commit_path, log_directory, parse_log_path
from storage.delta.log import decode_commit
from storage.errors import Indeterminate
from storage.memory import MemoryObjectStore
from storage.object_store import Reading
from tests.unit.storage.delta.model import SHARD

Result = TypeVar("Result")

TORN = b"PAR1 torn"
"""A checkpoint that nobody can read, as tests leave it."""


@dataclass
class FaultyStore:
    """Loses requests (`before`) and replies (`after`) of `create`, as the coins say."""

    inner: MemoryObjectStore
    coins: list[str | None] = field(default_factory=list)

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        coin = self.coins.pop(0) if self.coins else None
        if coin != "before":
            await self.inner.create(name, content, modified_ms=modified_ms)
        if coin is not None:
            raise Indeterminate(f"lost {coin} {name}")

    async def read_together(self, reading: Reading[Result]) -> Result:
        return await reading(self)

    async def read(self, name: str) -> bytes:
        return await self.inner.read(name)

    async def list(self, prefix: str) -> Sequence[str]:
        return await self.inner.list(prefix)

    async def delete(self, name: str) -> None:
        await self.inner.delete(name)

    async def sync(self, names: Sequence[str], *, modified_ms: int | None = None) -> None:
        await self.inner.sync(names, modified_ms=modified_ms)

    def local_path(self, name: str) -> Path:
        return self.inner.local_path(name)


def check_log_times(store: MemoryObjectStore) -> None:
    """C5 of `cuts.py`, K4: every version has its own time, and so has its checkpoint."""
    for name in asyncio.run(store.list(log_directory(SHARD))):
        parsed = parse_log_path(name)
        torn = store.peek(name) == TORN
        if parsed is not None and parsed[1] in {"json", "checkpoint.parquet"} and not torn:
            info = decode_commit(store.peek(commit_path(SHARD, parsed[0])))[0]
            assert isinstance(info, CommitInfo)
            assert store.modified_ms(name) == info.in_commit_timestamp, name
