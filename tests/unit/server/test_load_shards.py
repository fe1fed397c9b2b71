"""How logs are read at a start: near ones one after the other, far ones several at a time."""

import asyncio
from typing import TypeVar

import pyarrow as pa
import pytest

from coordinator.server import load_shards
from coordinator.server.load_shards import LOADS_AT_ONCE, READ_TOGETHER, ShardLoader, ShardToLoad
from sql.catalog.catalog import Table
from storage.errors import Determinate
from storage.memory import MemoryObjectStore
from storage.object_store import Reading
from storage.shard import Fence, ShardState
from storage.types import ShardId, Timestamp

Result = TypeVar("Result")

SCHEMA = pa.schema([("a", pa.int64())])


class CountingStore(MemoryObjectStore):
    """Counts who reads at once; refuses to list `bad` so many times."""

    def __init__(self, bad: str = "", refusals: int = 0) -> None:
        super().__init__()
        self.bad, self.refusals = bad, refusals
        self.reading = self.most = self.times = 0

    async def read_together(self, reading: Reading[Result]) -> Result:
        self.times += 1
        self.reading += 1
        self.most = max(self.most, self.reading)
        await asyncio.sleep(0)
        try:
            return await super().read_together(reading)
        finally:
            self.reading -= 1

    async def list(self, prefix: str) -> list[str]:
        if self.bad and prefix.startswith(self.bad) and self.refusals:
            self.refusals -= 1
            raise Determinate(f"{prefix}: Input/output error")
        return [*await super().list(prefix)]


def wanted(count: int) -> list[ShardToLoad]:
    tables = [Table(n, "public", f"t{n}", f"s{n:03}", ()) for n in range(count)]
    return [ShardToLoad(table, SCHEMA, Timestamp(5), Timestamp(0), None) for table in tables]


def load(store: MemoryObjectStore, shards: list[ShardToLoad]) -> dict[ShardId, ShardState]:
    async def leading() -> None:
        pass

    return asyncio.run(ShardLoader(store, leading).load(shards, warehouse_is_there=True))


@pytest.mark.parametrize(("seconds", "at_once"), [(3_600.0, 1), (-1.0, LOADS_AT_ONCE)])
def test_logs_that_are_far_away_are_read_several_at_a_time(
    seconds: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_shards, "FAR_S", seconds)
    store, shards = CountingStore(), wanted(8 * READ_TOGETHER + 1)
    states = load(store, shards)
    assert [*states] == [one.shard for one in shards]
    assert {state.created for state in states.values()} == {5}
    assert (store.most, store.times) == (at_once, 9)


@pytest.mark.parametrize(("refusals", "fence"), [(2, None), (3, Fence.UNREADABLE)])
def test_a_log_that_cannot_be_read_is_asked_for_again_and_no_other(
    refusals: int, fence: Fence | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_shards, "ATTEMPT_PAUSE_S", 0)
    store = CountingStore("s007", refusals)
    states = load(store, wanted(20))
    assert [state.fence for state in states.values()] == [*[None] * 7, fence, *[None] * 12]
    assert store.times == 3


class ClosedStore(MemoryObjectStore):
    """Its root cannot be opened so many times, before any log is asked for."""

    refusals = 0

    async def read_together(self, reading: Reading[Result]) -> Result:
        if self.refusals:
            self.refusals -= 1
            raise Determinate(".: Input/output error")
        return await super().read_together(reading)


@pytest.mark.parametrize(("refusals", "fence"), [(2, None), (3, Fence.UNREADABLE)])
def test_a_storage_that_cannot_be_opened_is_asked_again(
    refusals: int, fence: Fence | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_shards, "ATTEMPT_PAUSE_S", 0)
    store = ClosedStore()
    store.refusals = refusals
    states = load(store, wanted(3))
    assert [state.fence for state in states.values()] == [fence] * 3
    assert store.refusals == 0
