"""A stash of format 1 is brought to the present one: all of it, or nothing."""

import asyncio
import struct
from collections.abc import Coroutine, Sequence
from typing import TypeVar

import pyarrow as pa
import pytest

from storage.batch import WriteBatch
from storage.commit import Commit
from storage.errors import Corrupt, Fenced, Indeterminate, NewerFormat
from storage.memory import MemoryStash
from storage.stash import FORMAT, Delete, Put, Write
from storage.stash_part import StashPart
from storage.txns import Recovered, TxnsShard
from storage.types import Epoch, ShardId, Timestamp, Token
from storage.upgrade import upgrade
from tests.support.former_stash import as_before, contents

Result = TypeVar("Result")
PLACES = ("", "line#7")


def run(work: Coroutine[object, object, Result]) -> Result:
    return asyncio.run(work)


def batch_of(*ids: int) -> WriteBatch:
    return WriteBatch(pa.table({"id": pa.array(ids, pa.int64())}))


async def served(stash: MemoryStash, place: str) -> TxnsShard:
    part = StashPart(stash, place) if place else stash
    txns = TxnsShard(part, stash.epoch)
    await txns.load()
    return txns


async def written() -> MemoryStash:
    """Two timelines with commits, some of them tidied in part, one of no rows, one forgotten."""
    stash = MemoryStash()
    await stash.fence()
    t, u = ShardId("t"), ShardId("u")
    for place in PLACES:
        txns = await served(stash, place)
        records = (Put("catalog", "k", b"record"),) if not place else ()
        await txns.commit_at(
            Commit(Timestamp(5), Token("a"), {t: batch_of(1), u: batch_of(2)}, (t, u))
        )
        await txns.commit_at(Commit(Timestamp(6), Token("b"), {}, records=records))
        await txns.commit_at(Commit(Timestamp(7), Token("c"), {t: batch_of(3)}))
        await txns.commit_at(Commit(Timestamp(9), Token("d"), {u: batch_of(4)}))
        await txns.tidy(Timestamp(4), {t: Timestamp(7)})
    return stash


async def loaded(stash: MemoryStash) -> list[Recovered]:
    return [
        await TxnsShard(StashPart(stash, place) if place else stash, Epoch(0)).load()
        for place in PLACES
    ]


def told(found: Sequence[Recovered]) -> list[object]:
    return [
        (
            one.upper,
            one.applied,
            one.shards,
            one.flushed,
            [(ts, shard, batch.inserts) for ts, shard, batch in one.batches],
        )
        for one in found
    ]


def test_nothing_is_lost_and_timestamps_stay_closed() -> None:
    async def story() -> None:
        stash = await written()
        before = as_before(stash)
        assert await before.read_format() == 1
        assert await before.scan("batches") != {}
        # `meridian check` reads it as it is.
        assert told(await loaded(before)) == told(await loaded(stash))
        epoch = await before.fence()
        assert await upgrade(before, epoch, PLACES)
        assert await before.read_format() == FORMAT
        for collection in ("batches", "tokens", "line#7/batches", "line#7/tokens"):
            assert await before.scan(collection) == {}
        assert told(await loaded(before)) == told(await loaded(stash))
        assert [one.upper for one in await loaded(before)] == [10, 10]
        # The next one goes on, and there is nothing to do a second time.
        txns = TxnsShard(before, epoch)
        await txns.load()
        assert await txns.find(Token("d")) == 9
        await txns.commit_at(Commit(Timestamp(10), Token("e"), {ShardId("t"): batch_of(5)}))
        assert not await upgrade(before, epoch, PLACES)

    run(story())


def test_format_2_changes_nothing_but_its_number() -> None:
    async def story() -> None:
        stash = await written()
        before = MemoryStash(stored_format=2)
        vars(before).update({**vars(stash), "_format": 2})
        kept = contents(before)
        assert await upgrade(before, await before.fence(), PLACES)
        assert await before.read_format() == FORMAT
        assert contents(before) == kept
        assert told(await loaded(before)) == told(await loaded(stash))

    run(story())


class Dying(MemoryStash):
    """Its process ends with the upgrade, before or after it is durable."""

    def __init__(self, *, done: bool) -> None:
        super().__init__(stored_format=1)
        self.done = done

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        if self.done:
            await super().upgrade(epoch, writes)
        raise Indeterminate("the process is gone")


@pytest.mark.parametrize("done", [False, True])
def test_a_crash_leaves_all_of_it_or_nothing(*, done: bool) -> None:
    async def story() -> None:
        stash = await written()
        dying = Dying(done=done)
        vars(dying).update({**vars(as_before(stash)), "done": done})
        before = contents(dying)
        epoch = await dying.fence()
        with pytest.raises(Indeterminate):
            await upgrade(dying, epoch, PLACES)
        assert (contents(dying) == before) is not done
        reborn = dying.crash()
        assert await reborn.read_format() == (FORMAT if done else 1)
        assert told(await loaded(reborn)) == told(await loaded(stash))
        assert await upgrade(reborn, await reborn.fence(), PLACES) is not done
        assert told(await loaded(reborn)) == told(await loaded(stash))

    run(story())


def test_who_was_deposed_upgrades_nothing() -> None:
    async def story() -> None:
        stash = as_before(await written())
        old = await stash.fence()
        await stash.fence()
        before = contents(stash)
        with pytest.raises(Fenced):
            await upgrade(stash, old, PLACES)
        assert contents(stash) == before
        assert await stash.read_format() == 1

    run(story())


def test_a_format_that_is_not_known_is_not_taken_over() -> None:
    async def story() -> None:
        stash = MemoryStash(stored_format=FORMAT + 1)
        with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}"):
            await stash.fence()
        assert stash.epoch == 0

    run(story())


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (Delete("batches", f"{5:020d}/t"), "has 1 batches instead of 2"),
        (Delete("tokens", "a"), "belong to no commit"),
        (Put("batches", "nonsense", b""), "is not a batch"),
        (Put("txns", "upper", struct.pack(">q", 5)), "not below upper 5"),
        (Put("tokens", "a", b"short"), "not an outcome"),
    ],
)
def test_damage_is_found_and_left_as_it_is(damage: Write, reason: str) -> None:
    async def story() -> None:
        stash = as_before(await written())
        epoch = await stash.fence()
        await stash.transact(epoch, [damage])
        before = contents(stash)
        with pytest.raises(Corrupt, match=reason):
            await loaded(stash)
        with pytest.raises(Corrupt, match=reason):
            await upgrade(stash, epoch, PLACES)
        assert contents(stash) == before

    run(story())
