"""What every ObjectStore promises (W1-W4), on every implementation."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from storage.errors import AlreadyExists, Determinate, NotFound
from storage.local_store import LocalObjectStore
from storage.memory import MemoryObjectStore
from storage.object_store import ObjectReader, ObjectStore
from tests.resilience.sim.faults import FaultyObjectStore


class Place(Protocol):
    """Where a store lives, and how an engine writes to it."""

    def open(self) -> ObjectStore: ...

    def reopen(self) -> ObjectStore:
        """What the next process finds; everything unsynced is lost if the place can lose it."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """As an engine does: at once, not durable."""
        ...

    def close(self) -> None: ...


class MemoryPlace:
    def __init__(self) -> None:
        self._store = MemoryObjectStore()

    def open(self) -> ObjectStore:
        return self._store

    def reopen(self) -> ObjectStore:
        self._store = self._store.crash()
        return self.open()

    def write(self, name: str, content: bytes) -> None:
        self._store.write_unsynced(name, content)

    def close(self) -> None:
        pass


class FaultyPlace(MemoryPlace):
    def open(self) -> ObjectStore:
        async def no_fault(operation: str) -> None:
            await asyncio.sleep(0)

        return FaultyObjectStore(self._store, no_fault)


class LocalPlace:
    store: type[LocalObjectStore] = LocalObjectStore

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stores: list[LocalObjectStore] = []

    def open(self) -> ObjectStore:
        self._stores.append(self.store.open(self._root))
        return self._stores[-1]

    def reopen(self) -> ObjectStore:
        return self.open()

    def write(self, name: str, content: bytes) -> None:
        path = self._stores[-1].local_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def close(self) -> None:
        for store in self._stores:
            store.close()


class TogetherStore(LocalObjectStore):
    """Lists and reads through `read_together` (W5)."""

    async def read(self, name: str) -> bytes:
        return await self.read_together(lambda reader: reader.read(name))

    async def list(self, prefix: str) -> Sequence[str]:
        return await self.read_together(lambda reader: reader.list(prefix))


class TogetherPlace(LocalPlace):
    store = TogetherStore


@pytest.fixture(params=["memory", "faulty", "local", "together"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    places: dict[str, Callable[[], Place]] = {
        "memory": MemoryPlace,
        "faulty": FaultyPlace,
        "local": lambda: LocalPlace(tmp_path / "warehouse"),
        "together": lambda: TogetherPlace(tmp_path / "warehouse"),
    }
    return places[request.param]()


def tell(place: Place, story: Callable[[ObjectStore], Awaitable[None]]) -> None:
    try:
        asyncio.run(story(place.open()))
    finally:
        place.close()


def test_an_object_is_what_was_created(place: Place) -> None:
    async def story(store: ObjectStore) -> None:
        await store.create("t1/_delta_log/0.json", b"{}")
        await store.create("t1/empty", b"")
        await store.create("top", bytes(3_000_000))
        assert await store.read("t1/_delta_log/0.json") == b"{}"
        assert await store.read("t1/empty") == b""
        assert await store.read("top") == bytes(3_000_000)

    tell(place, story)


def test_an_object_may_come_with_a_time_of_its_own(place: Place) -> None:
    """W4: readers ask the file system; `test_local_store.py` looks at the times themselves."""

    async def story(store: ObjectStore) -> None:
        await store.create("t/0", b"x", modified_ms=1_700_000_000_001)
        with pytest.raises(AlreadyExists):
            await store.create("t/0", b"y", modified_ms=1)
        await store.sync(["t/0"], modified_ms=1_700_000_000_002)
        assert await place.reopen().read("t/0") == b"x"

    tell(place, story)


def test_an_object_is_created_once(place: Place) -> None:
    async def story(store: ObjectStore) -> None:
        await store.create("t/0", b"first")
        with pytest.raises(AlreadyExists):
            await store.create("t/0", b"second")
        assert await store.read("t/0") == b"first"
        place.write("t/1", b"by an engine")
        with pytest.raises(AlreadyExists):
            await store.create("t/1", b"second")
        assert await store.read("t/1") == b"by an engine"

    tell(place, story)


def test_one_of_many_creators_wins(place: Place) -> None:
    async def story(store: ObjectStore) -> None:
        results = await asyncio.gather(
            *(store.create("deep/er/0", str(number).encode()) for number in range(20)),
            return_exceptions=True,
        )
        winners = [number for number, result in enumerate(results) if result is None]
        assert len(winners) == 1
        assert all(isinstance(result, AlreadyExists) for result in results if result is not None)
        assert await store.read("deep/er/0") == str(winners[0]).encode()
        assert await store.list("") == ["deep/er/0"]

    tell(place, story)


def test_what_is_not_there(place: Place) -> None:
    async def story(store: ObjectStore) -> None:
        await store.create("t/0", b"")
        for name in ("t/1", "u/0", "t"):
            if name != "t":
                with pytest.raises(NotFound):
                    await store.read(name)
                await store.delete(name)
            with pytest.raises(Determinate):
                await store.read(name)
        with pytest.raises(NotFound):
            await store.sync(["t/0", "t/1"])
        assert await store.list("u") == []
        assert await store.list("t/u") == []

    tell(place, story)


def test_a_list_is_sorted_and_below_the_prefix(place: Place) -> None:
    names = ["a", "t/0", "t/a/0", "t/a/1", "t/a0", "t/b", "t-2/0", "t/.part.crc"]

    async def story(store: ObjectStore) -> None:
        for name in names:
            await store.create(name, b"")
        assert await store.list("") == sorted(names)
        assert await store.list("t") == ["t/.part.crc", "t/0", "t/a/0", "t/a/1", "t/a0", "t/b"]
        assert await store.list("t/a") == ["t/a/0", "t/a/1"]

    tell(place, story)


def test_a_deleted_object_is_gone_and_its_name_free(place: Place) -> None:
    async def story(store: ObjectStore) -> None:
        await store.create("t/0", b"1")
        await store.delete("t/0")
        await store.delete("t/0")
        with pytest.raises(NotFound):
            await store.read("t/0")
        assert await store.list("") == []
        await store.create("t/0", b"2")
        assert await place.reopen().read("t/0") == b"2"

    tell(place, story)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "..",
        "../x",
        "t/../../x",
        "t/..",
        "t//0",
        "t/",
        ".",
        "t/./0",
        "t\0/0",
        ".tmp",
        ".tmp/1",
    ],
)
def test_a_name_never_leaves_the_root(place: Place, name: str) -> None:
    async def story(store: ObjectStore) -> None:
        refused = (
            lambda: store.create(name, b""),
            lambda: store.read(name),
            lambda: store.delete(name),
            lambda: store.sync([name]),
        )
        for call in refused:
            with pytest.raises(Determinate) as raised:
                await call()
            assert type(raised.value) is Determinate
        if name:
            with pytest.raises(Determinate):
                await store.list(name)

    tell(place, story)


def test_everything_created_is_there_for_the_next_process(place: Place) -> None:
    async def story(store: ObjectStore) -> None:
        names = [f"t{number % 3}/d{number % 5}/{number}" for number in range(60)]
        await asyncio.gather(*(store.create(name, name.encode()) for name in names))
        await store.delete(names[7])
        again = place.reopen()
        assert await again.list("") == sorted(set(names) - {names[7]})
        assert await again.read(names[8]) == names[8].encode()

    tell(place, story)


def test_what_an_engine_wrote_counts_after_sync(place: Place) -> None:
    async def story(store: ObjectStore) -> None:
        place.write("t/part-0", b"rows")
        assert await store.read("t/part-0") == b"rows"
        assert await store.list("t") == ["t/part-0"]
        place.write("u/new/dir/part-1", b"more rows")
        await store.sync(["t/part-0", "u/new/dir/part-1"])
        await store.sync([])
        await store.sync(["t/part-0"])
        again = place.reopen()
        assert await again.read("t/part-0") == b"rows"
        assert await again.list("u") == ["u/new/dir/part-1"]

    tell(place, story)


def test_many_objects_are_read_together(place: Place) -> None:
    """W5: directories one after the other, large objects and none."""
    contents = {
        **{f"t{number}/log/{part}": bytes([part]) for number in range(3) for part in range(3)},
        "t0/large": bytes(range(256)) * 1_000,
        "top": b"",
    }

    async def everything(reader: ObjectReader) -> Mapping[str, bytes]:
        names = [name for below in ("t0", "t1", "t2") for name in await reader.list(below)]
        return {name: await reader.read(name) for name in [*names, "top"]}

    async def missing(reader: ObjectReader) -> bytes:
        assert await reader.list("t9") == []
        return await reader.read("t0/log/9")

    async def story(store: ObjectStore) -> None:
        for name, content in contents.items():
            await store.create(name, content)
        assert await store.read_together(everything) == contents
        with pytest.raises(NotFound, match="t0/log/9"):
            await store.read_together(missing)

    tell(place, story)


def test_a_crash_may_lose_or_tear_what_was_not_synced() -> None:
    """Only the twin can lose things on demand."""
    store = MemoryObjectStore()

    async def story() -> None:
        await store.create("t/0", b"durable")
        for name in ("t/lost", "t/torn", "t/whole"):
            store.write_unsynced(name, b"12345678")
        left = {"t/lost": None, "t/torn": b"123", "t/whole": b"12345678"}
        first = store.crash(lambda name, content: left[name])
        assert await first.list("t") == ["t/0", "t/torn", "t/whole"]
        assert await first.read("t/torn") == b"123"
        await first.sync(["t/whole"])
        second = first.crash()
        assert await second.list("t") == ["t/0", "t/whole"]

    asyncio.run(story())
