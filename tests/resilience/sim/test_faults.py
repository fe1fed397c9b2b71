"""The wrappers fail where they are told to, and keep the order of stash calls (F1)."""

import asyncio

import pytest

from storage.errors import Determinate, Fatal, Indeterminate, NotFound
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Delete, Put
from tests.resilience.sim.faults import FaultyObjectStore, FaultyStash, Late, TwoStepStore


class Faults:
    """Raises each planned failure once, at its operation."""

    def __init__(self, **plan: Exception) -> None:
        self.seen: list[str] = []
        self._plan = {name.replace("_", " ", 1).replace("_", "."): e for name, e in plan.items()}

    async def __call__(self, operation: str) -> None:
        self.seen.append(operation)
        if operation in self._plan:
            raise self._plan.pop(operation)


def test_a_lost_request_and_a_lost_reply() -> None:
    async def story() -> None:
        inner = MemoryStash()
        faults = Faults(
            before_stash_transact=Indeterminate("request"),
            after_stash_transact=Indeterminate("reply"),
        )
        stash = FaultyStash(inner, faults)
        epoch = await stash.fence()
        with pytest.raises(Indeterminate, match="request"):
            await stash.transact(epoch, [Put("c", "a", b"1")])
        with pytest.raises(Indeterminate, match="reply"):
            await stash.transact(epoch, [Put("c", "b", b"1")])
        await stash.transact(epoch, [Put("c", "c", b"1")])
        assert list(await stash.scan("c")) == ["b", "c"]
        assert faults.seen[:3] == [
            "before stash.fence",
            "after stash.fence",
            "before stash.transact",
        ]

    asyncio.run(story())


def test_slow_stash_calls_keep_their_order() -> None:
    async def story() -> list[str]:
        gate = asyncio.Event()
        order: list[str] = []

        async def slow_first(operation: str) -> None:
            if operation == "before stash.transact" and not gate.is_set():
                await gate.wait()

        class Inner(MemoryStash):
            async def transact(self, *arguments: object, **options: object) -> None:
                order.append(str(arguments[0]))

        stash = FaultyStash(Inner(), slow_first)
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(stash.transact(number, []))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            assert order == []
            gate.set()
        return order

    assert asyncio.run(story()) == ["0", "1", "2", "3", "4"]


def test_a_failed_call_lets_the_next_one_through() -> None:
    async def story() -> None:
        stash = FaultyStash(MemoryStash(), Faults(before_stash_fence=Determinate("no")))
        with pytest.raises(Determinate):
            await stash.fence()
        assert await stash.fence() == 1

    asyncio.run(story())


def test_the_object_store_fails_where_it_is_told_to() -> None:
    async def story() -> None:
        inner = MemoryObjectStore()
        store = FaultyObjectStore(
            inner,
            Faults(
                before_store_create=Determinate("request"),
                after_store_create=Indeterminate("reply"),
            ),
        )
        with pytest.raises(Determinate, match="request"):
            await store.create("t/0", b"")
        with pytest.raises(NotFound):
            await store.read("t/0")
        with pytest.raises(Indeterminate, match="reply"):
            await store.create("t/0", b"")
        assert await store.read("t/0") == b""

    asyncio.run(story())


def test_a_late_request_arrives_after_reads_and_before_the_next_transaction() -> None:
    async def story() -> list[list[str]]:
        stash = FaultyStash(
            MemoryStash(), Faults(before_stash_transact=Late("on its way", seconds=0.01))
        )
        epoch = await stash.fence()
        seen: list[list[str]] = []
        with pytest.raises(Indeterminate):
            await stash.transact(epoch, [Put("c", "late", b"1")])
        seen.append(list(await stash.scan("c")))
        await stash.transact(epoch, [Put("c", "next", b"1"), Delete("c", "late")])
        seen.append(list(await stash.scan("c")))
        return seen

    assert asyncio.run(story()) == [[], ["next"]]


def test_an_object_is_there_before_it_is_durable() -> None:
    async def story() -> None:
        inner, linked = MemoryObjectStore(), set[str]()

        async def die(name: str) -> None:
            if name == "t/1":
                raise Fatal("no")

        store = TwoStepStore(inner, die, linked)
        with pytest.raises(Fatal):
            await store.create("t/1", b"1")
        assert await store.read("t/1") == b"1"
        with pytest.raises(NotFound):
            await inner.crash().read("t/1")
        # A directory that is synced for another name keeps this one, too.
        revived = TwoStepStore(MemoryObjectStore(), die, set())
        with pytest.raises(Fatal):
            await revived.create("t/1", b"1")
        await revived.create("t/2", b"2")
        assert await revived.list("t") == ["t/1", "t/2"]
        assert await revived._inner.crash().read("t/1") == b"1"

    asyncio.run(story())
