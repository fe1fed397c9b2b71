"""What every Stash promises (S1-S4, S6), on every implementation."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from storage.errors import Determinate, Fenced, RequireFailed
from storage.stash import FORMAT, Delete, Put, Require, Stash, Write
from tests.conformance.stash_places import (
    FaultyPlace,
    MemoryPlace,
    Place,
    PostgresPlace,
    PromptSqlitePlace,
    SharedSqlitePlace,
    SqlitePlace,
)
from tests.support.servers import fresh_database, postgres


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


@pytest.fixture(params=["memory", "faulty", "sqlite", "sqlite prompt", "sqlite shared", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    places: dict[str, Callable[[], Place]] = {
        "memory": MemoryPlace,
        "faulty": FaultyPlace,
        "sqlite": lambda: SqlitePlace(tmp_path),
        "sqlite prompt": lambda: PromptSqlitePlace(tmp_path),
        "sqlite shared": lambda: SharedSqlitePlace(tmp_path),
        "postgres": lambda: PostgresPlace(fresh_database(request.getfixturevalue("server"))),
    }
    return places[request.param]()


def tell(place: Place, story: Callable[[Stash], Awaitable[None]]) -> None:
    async def whole() -> None:
        stash = await place.open()
        try:
            await story(stash)
        finally:
            await stash.close()

    asyncio.run(whole())


async def put(stash: Stash, epoch: int, **values: bytes) -> None:
    await stash.transact(epoch, [Put("c", key, value) for key, value in values.items()])


def test_a_fresh_stash_is_empty(place: Place) -> None:
    async def story(stash: Stash) -> None:
        assert await stash.scan("c") == {}
        assert await stash.read("c", "k") is None
        assert await stash.fence() == 1

    tell(place, story)


def test_what_is_written_is_read(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        await stash.transact(epoch, [Put("c", "a", b"1"), Put("d", "a", b"2"), Put("c", "b", b"")])
        assert await stash.scan("c") == {"a": b"1", "b": b""}
        assert await stash.read("d", "a") == b"2"
        assert await stash.read("c", "b") == b""
        await stash.transact(epoch, [Put("c", "a", b"3"), Delete("c", "b"), Delete("c", "never")])
        assert await stash.scan("c") == {"a": b"3"}

    tell(place, story)


def test_an_empty_transaction_still_checks(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        await stash.transact(epoch, [])
        with pytest.raises(RequireFailed):
            await stash.transact(epoch, [], requires=[Require("c", "a", b"1")])
        await stash.fence()
        with pytest.raises(Fenced):
            await stash.transact(epoch, [])

    tell(place, story)


@pytest.mark.parametrize(
    ("writes", "left"),
    [
        ([Put("c", "a", b"1"), Put("c", "a", b"2")], {"a": b"2"}),
        ([Put("c", "a", b"1"), Delete("c", "a")], {}),
        ([Delete("c", "a"), Put("c", "a", b"1")], {"a": b"1"}),
    ],
)
def test_the_last_write_of_a_key_counts(
    place: Place, writes: list[Write], left: dict[str, bytes]
) -> None:
    async def story(stash: Stash) -> None:
        await stash.transact(await stash.fence(), writes)
        assert await stash.scan("c") == left

    tell(place, story)


def test_a_scan_is_in_the_order_of_code_points(place: Place) -> None:
    keys = ["", "0", "00", "A", "a", "a/", "a/b", "a0", "z", "é", "中", "\uffff", "\U0001f600"]

    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        for key in [*keys[::2], *keys[1::2]]:
            await stash.transact(epoch, [Put("c", key, key.encode())])
        assert list(await stash.scan("c")) == keys
        assert await stash.scan("c") == {key: key.encode() for key in keys}

    tell(place, story)


def test_a_scan_is_a_snapshot(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, a=b"1")
        before = await stash.scan("c")
        await put(stash, epoch, a=b"2", b=b"2")
        assert before == {"a": b"1"}

    tell(place, story)


@pytest.mark.parametrize(
    ("require", "holds"),
    [
        (Require("c", "a", b"1"), True),
        (Require("c", "a", b"2"), False),
        (Require("c", "a", b""), False),
        (Require("c", "a", None), False),
        (Require("c", "empty", b""), True),
        (Require("c", "empty", None), False),
        (Require("c", "absent", None), True),
        (Require("c", "absent", b""), False),
        (Require("d", "a", None), True),
    ],
)
def test_a_requirement_decides_about_the_whole_transaction(
    place: Place, require: Require, holds: bool
) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, a=b"1", empty=b"")
        before = await stash.scan("c")
        writes = [Put("c", "a", b"9"), Delete("c", "empty"), Put("c", "new", b"9")]
        also = Require("c", "never", None)
        if holds:
            await stash.transact(epoch, writes, requires=[also, require])
            assert await stash.scan("c") == {"a": b"9", "new": b"9"}
        else:
            with pytest.raises(RequireFailed):
                await stash.transact(epoch, writes, requires=[also, require])
            assert await stash.scan("c") == before

    tell(place, story)


def test_requirements_are_checked_before_the_writes_of_their_transaction(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        put_a = Put("c", "a", b"1")
        with pytest.raises(RequireFailed):
            await stash.transact(epoch, [put_a], requires=[Require("c", "a", b"1")])
        await stash.transact(epoch, [put_a], requires=[Require("c", "a", None)])

    tell(place, story)


def test_older_epochs_are_fenced_and_write_nothing(place: Place) -> None:
    async def story(stash: Stash) -> None:
        first = await stash.fence()
        await put(stash, first, a=b"1")
        second = await stash.fence()
        assert second == first + 1
        with pytest.raises(Fenced):
            await put(stash, first, a=b"2", b=b"2")
        # The epoch is looked at before the requirements: a deposed caller must learn that it is.
        with pytest.raises(Fenced):
            await stash.transact(first, [], requires=[Require("c", "a", b"9")])
        assert await stash.scan("c") == {"a": b"1"}
        await put(stash, second, a=b"3")
        assert await stash.read("c", "a") == b"3"

    tell(place, story)


def test_an_epoch_that_was_never_given_is_fenced(place: Place) -> None:
    async def story(stash: Stash) -> None:
        await stash.fence()
        with pytest.raises(Fenced):
            await put(stash, 7, a=b"1")

    tell(place, story)


@pytest.fixture(params=["memory", "sqlite shared", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Places that several coordinators may use at once."""
    places: dict[str, Callable[[], Place]] = {
        "memory": MemoryPlace,
        "sqlite prompt": lambda: PromptSqlitePlace(tmp_path),
        "sqlite shared": lambda: SharedSqlitePlace(tmp_path),
        "postgres": lambda: PostgresPlace(fresh_database(request.getfixturevalue("server"))),
    }
    return places[request.param]()


def test_leadership_is_confirmed_until_somebody_takes_over(shared: Place) -> None:
    async def story(first: Stash) -> None:
        assert not first.exclusive
        old = await first.fence()
        await first.confirm(old)
        second = await shared.second(first)
        try:
            await first.confirm(old)
            new = await second.fence()
            with pytest.raises(Fenced):
                await first.confirm(old)
            await second.confirm(new)
        finally:
            if second is not first:
                await second.close()

    tell(shared, story)


def test_two_coordinators_on_one_stash(shared: Place) -> None:
    place = shared

    async def story(first: Stash) -> None:
        old = await first.fence()
        await put(first, old, a=b"1")
        second = await place.second(first)
        try:
            new = await second.fence()
            assert new == old + 1
            with pytest.raises(Fenced):
                await put(first, old, a=b"2")
            await put(second, new, a=b"3")
            assert await first.read("c", "a") == b"3"
        finally:
            if second is not first:
                await second.close()

    tell(place, story)


def test_who_loses_the_race_to_write_is_fenced(shared: Place) -> None:
    """Transactions of the old leader overlap with the take-over: each is whole, before or never."""

    async def story(first: Stash) -> None:
        old = await first.fence()
        second = await shared.second(first)
        try:
            done, new = await asyncio.gather(
                asyncio.gather(
                    *(put(first, old, **{f"k{n:02d}": b"1", "last": b"%d" % n}) for n in range(30)),
                    return_exceptions=True,
                ),
                second.fence(),
            )
            written = [number for number, outcome in enumerate(done) if outcome is None]
            assert written == list(range(len(written)))
            assert all(isinstance(outcome, Fenced) for outcome in done[len(written) :])
            names = [f"k{number:02d}" for number in written]
            assert [key for key in await second.scan("c") if key != "last"] == names
            await put(second, new, last=b"new")
            assert await first.read("c", "last") == b"new"
        finally:
            if second is not first:
                await second.close()

    tell(shared, story)


def test_overlapping_transactions_take_effect_in_order(place: Place) -> None:
    """Each requires what the one before wrote: out of order, one of them would fail (S3)."""

    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        finished: list[int] = []

        async def step(number: int) -> None:
            before = str(number).encode() if number else None
            require = Require("c", "n", before)
            write = Put("c", "n", str(number + 1).encode())
            await stash.transact(epoch, [write], requires=[require])
            finished.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(step(number))
        assert await stash.read("c", "n") == b"100"
        assert finished == list(range(100))

    tell(place, story)


def test_a_failed_transaction_does_not_disturb_its_neighbours(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        results = await asyncio.gather(
            put(stash, epoch, a=b"1"),
            stash.transact(epoch, [Put("c", "b", b"1")], requires=[Require("c", "a", None)]),
            put(stash, epoch, d=b"1"),
            put(stash, epoch - 1, e=b"1"),
            put(stash, epoch, f=b"1"),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [
            type(None),
            RequireFailed,
            type(None),
            Fenced,
            type(None),
        ]
        assert list(await stash.scan("c")) == ["a", "d", "f"]

    tell(place, story)


def test_big_values_and_thousands_of_keys(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        big = bytes(range(256)) * 4096 * 5
        many = {f"{number:06d}": str(number).encode() for number in range(5_000)}
        await stash.transact(epoch, [Put("big", "v", big), *puts("many", many)])
        assert await stash.read("big", "v") == big
        assert await stash.scan("many") == many
        odd = [Delete("many", key) for key in many if int(key) % 2]
        await stash.transact(epoch, [*odd, Delete("big", "v")])
        assert list(await stash.scan("many")) == [key for key in many if int(key) % 2 == 0]
        assert await stash.read("big", "v") is None

    tell(place, story)


def puts(collection: str, values: dict[str, bytes]) -> list[Write]:
    return [Put(collection, key, value) for key, value in values.items()]


def test_many_requirements(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        values = {f"k{number}": str(number).encode() for number in range(300)}
        await stash.transact(epoch, puts("c", values))
        requires = [Require("c", key, value) for key, value in values.items()]
        await stash.transact(epoch, [Put("c", "done", b"1")], requires=requires)
        with pytest.raises(RequireFailed, match="k299x"):
            await stash.transact(epoch, [], requires=[*requires, Require("c", "k299x", b"")])
        assert await stash.read("c", "done") == b"1"

    tell(place, story)


def test_everything_is_there_after_close_and_open(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        await put(stash, epoch, a=b"1", b=b"2")
        await stash.transact(epoch, [Delete("c", "b")])
        again = await place.reopen(stash)
        try:
            assert await again.scan("c") == {"a": b"1"}
            # The epoch is as durable as the data.
            assert await again.fence() == epoch + 1
        finally:
            await again.close()

    tell(place, story)


def test_everything_acknowledged_is_there_after_a_crash(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        for number in range(50):
            await put(stash, epoch, **{f"k{number:02d}": b"x" * number * 100})
        again = await place.crash(stash)
        try:
            assert len(await again.scan("c")) == 50
            assert await again.read("c", "k49") == b"x" * 4900
            assert await again.fence() == epoch + 1
            with pytest.raises(Fenced):
                await put(again, epoch, a=b"1")
        finally:
            await again.close()

    tell(place, story)


def test_a_closed_stash_refuses(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        await stash.close()
        with pytest.raises(Determinate):
            await put(stash, epoch, a=b"1")
        with pytest.raises(Determinate):
            await stash.scan("c")
        await stash.close()

    tell(place, story)


def test_close_finishes_what_was_handed_over(place: Place) -> None:
    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(put(stash, epoch, **{f"k{number}": b"1"})) for number in range(20)
            ]
            await asyncio.sleep(0)
            again = await place.reopen(stash)
        try:
            assert all(task.done() for task in tasks)
            assert len(await again.scan("c")) == 20
        finally:
            await again.close()

    tell(place, story)


def test_a_cancelled_caller_stops_nothing(place: Place) -> None:
    """Cancelled after the hand-over: it may or may not happen, and the stash goes on (S4)."""

    async def story(stash: Stash) -> None:
        epoch = await stash.fence()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(put(stash, epoch, a=b"1", b=b"1"))
            await asyncio.sleep(0)
            task.cancel()
        await put(stash, epoch, z=b"1")
        assert list(await stash.scan("c")) in (["a", "b", "z"], ["z"])

    tell(place, story)


def test_an_upgrade_is_a_transaction_and_leaves_the_present_format(place: Place) -> None:
    async def story(stash: Stash) -> None:
        assert await stash.read_format() == FORMAT
        old = await stash.fence()
        await put(stash, old, a=b"1")
        epoch = await stash.fence()
        with pytest.raises(Fenced):
            await stash.upgrade(old, [Delete("c", "a")])
        await stash.upgrade(epoch, [Delete("c", "a"), Put("c", "b", b"2")])
        again = await place.crash(stash)
        try:
            assert await again.scan("c") == {"b": b"2"}
            assert await again.read_format() == FORMAT
        finally:
            await again.close()

    tell(place, story)


@pytest.mark.parametrize("value", [b"", b"x" * 600, b"x" * 50_000])
def test_one_row_under_one_requirement(place: Place, value: bytes) -> None:
    """Stashes may have a shorter way for it; it promises the same."""

    async def story(stash: Stash) -> None:
        old = await stash.fence()
        absent, there = Require("c", "mark", None), Require("c", "mark", b"1")
        await stash.transact(old, [Put("c", "a", value)], requires=[absent])
        assert await stash.scan("c") == {"a": value}
        with pytest.raises(RequireFailed):
            await stash.transact(old, [Put("c", "b", value)], requires=[there])
        await put(stash, old, mark=b"1")
        with pytest.raises(RequireFailed):
            await stash.transact(old, [Put("c", "b", value)], requires=[absent])
        await stash.transact(old, [Put("c", "a", b"again")], requires=[there])
        epoch = await stash.fence()
        for requires in ([there], [absent]):
            with pytest.raises(Fenced):
                await stash.transact(old, [Put("c", "b", value)], requires=requires)
        await stash.transact(epoch, [Put("c", "mark", b"2")], requires=[there])
        again = await place.crash(stash)
        try:
            assert await again.scan("c") == {"a": b"again", "mark": b"2"}
        finally:
            await again.close()

    tell(place, story)
