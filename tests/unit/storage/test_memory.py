"""What only the in-memory twins have: they can die."""

import asyncio

import pytest

from storage.errors import Indeterminate
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Put


def test_after_a_crash_the_old_stash_is_dead_and_touches_nothing() -> None:
    async def story() -> None:
        dead = MemoryStash()
        epoch = await dead.fence()
        await dead.transact(epoch, [Put("c", "k", b"1")])
        reborn = dead.crash()
        for call in (
            lambda: dead.transact(epoch, [Put("c", "k", b"2")]),
            lambda: dead.scan("c"),
            lambda: dead.read("c", "k"),
            dead.fence,
        ):
            with pytest.raises(Indeterminate):
                await call()
        # A dying process may still close what it holds.
        await dead.close()
        await reborn.transact(epoch, [Put("c", "new", b"3")])
        assert await reborn.scan("c") == {"k": b"1", "new": b"3"}

    asyncio.run(story())


def test_after_a_crash_the_old_store_is_dead_and_touches_nothing() -> None:
    async def story() -> None:
        dead = MemoryObjectStore()
        await dead.create("t/0", b"1")
        reborn = dead.crash()
        for call in (
            lambda: dead.create("t/1", b""),
            lambda: dead.read("t/0"),
            lambda: dead.list(""),
            lambda: dead.delete("t/0"),
            lambda: dead.sync(["t/0"]),
        ):
            with pytest.raises(Indeterminate):
                await call()
        with pytest.raises(Indeterminate):
            dead.write_unsynced("t/2", b"")
        assert await reborn.list("") == ["t/0"]

    asyncio.run(story())


def test_the_memory_store_has_no_paths() -> None:
    with pytest.raises(AssertionError, match="no path"):
        MemoryObjectStore().local_path("t/0")


def test_an_engine_overwrites_nothing_durable() -> None:
    store = MemoryObjectStore()
    asyncio.run(store.create("t/0", b"1"))
    with pytest.raises(AssertionError, match="never written twice"):
        store.write_unsynced("t/0", b"2")
