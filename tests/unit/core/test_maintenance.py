"""Compaction, vacuum and forgetting by a driver over memory twins: answers and what is left."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.core.messages.catalog_changes import PutTable, RemoveTable
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.settings import CoreSettings
from coordinator.driver.coordination import RequestRefused
from coordinator.driver.driver import Driver
from coordinator.server.recovery import recover_timelines
from sql.catalog.catalog import Column, Table
from sql.types.sql_type import INT8
from storage.batch import ShardView, WriteBatch
from storage.delta.compaction_plan import CompactionLimits
from storage.delta.layout import commit_path
from storage.memory import MemoryObjectStore, MemoryStash
from storage.outstanding import COMMITS, decode_stored_commits
from storage.types import ShardId, Source, Timestamp
from tests.resilience.sim.loop import run as on_virtual_time

OWNER = ConnectionId(1)
COLUMNS = (Column("value", INT8),)
FOREIGN = b'{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n'
SETTINGS = CoreSettings(
    history_us=1_000_000,
    cut_age_us=10_000,
    vacuum_age_us=200_000,
    compaction=CompactionLimits(files_min=100),
)


class LoopClock:
    """The loop's virtual time."""

    def now(self) -> Timestamp:
        return Timestamp(1_700_000_000_000_000 + int(asyncio.get_running_loop().time() * 1e6))


class World:
    """A server that can be started again over what was durable."""

    def __init__(self) -> None:
        self.stash = MemoryStash()
        self.store = MemoryObjectStore()

    @contextlib.asynccontextmanager
    async def server(self, settings: CoreSettings = SETTINGS) -> AsyncIterator[Driver]:
        self.stash, self.store = self.stash.crash(), self.store.crash()
        timelines = await recover_timelines(
            self.stash,
            self.store,
            LoopClock(),
            settings,
            lambda table: table_schema(table.columns),
            run_blocking=at_once,
        )
        driver = timelines.system
        running = asyncio.ensure_future(driver.run())  # noqa: TID251 - ended below
        await asyncio.sleep(0)
        try:
            yield driver
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    async def names(self, table: Table) -> list[str]:
        return [*await self.store.list(table.shard)]

    async def files(self, table: Table) -> list[str]:
        return [name for name in await self.names(table) if "_delta_log" not in name]

    def values(self, view: ShardView) -> list[int]:
        found: list[int] = []
        for part in view.files:
            content = BytesIO(self.store.peek(f"{view.shard}/{part.file.name}"))
            rows = pq.read_table(content)["value"].to_pylist()[: part.row_limit]
            found += [value for index, value in enumerate(rows) if index not in part.deleted]
        for inline in view.inline:
            rows = inline.rows["value"].to_pylist()
            found += [value for index, value in enumerate(rows) if index not in inline.deleted]
        return sorted(found)

    async def keys(self, collection: str) -> list[str]:
        return [*await self.stash.scan(collection)]

    async def commits(self) -> list[set[ShardId]]:
        """The tables of each commit that is still in the txns shard."""
        return [
            {*commit.batches} for commit in decode_stored_commits(await self.stash.scan(COMMITS))
        ]


async def at_once(work: Callable[[], object]) -> object:
    return work()


async def create(driver: Driver, name: str) -> Table:
    txn = driver.begin(OWNER)
    await driver.snapshot(txn)
    oid, shard = await driver.new_table_id()
    table = Table(oid, "public", name, shard, COLUMNS)
    driver.change_catalog(txn, [PutTable(table)])
    await driver.commit(txn)
    return table


async def drop(driver: Driver, table: Table) -> None:
    txn = driver.begin(OWNER)
    await driver.snapshot(txn)
    driver.change_catalog(txn, [RemoveTable(table)])
    await driver.commit(txn)


def rows(*values: int) -> WriteBatch:
    return WriteBatch(pa.table({"value": pa.array(values, pa.int64())}))


async def insert(driver: Driver, table: Table, *values: int) -> Timestamp:
    txn = driver.begin(OWNER)
    driver.write(txn, table, rows(*values))
    return await driver.commit(txn)


async def read(
    world: World, driver: Driver, table: Table, ts: Timestamp | None = None
) -> list[int]:
    txn = driver.begin(OWNER)
    try:
        snapshot = await driver.snapshot(txn, as_of=ts)
        (view,) = await driver.scan(txn, snapshot.ts, [table])
        return world.values(view)
    finally:
        driver.abort(txn)


async def flushed(driver: Driver, *tables: Table) -> None:
    """Until Delta has everything."""
    await asyncio.sleep(0.2)
    assert not any(driver.core.shards[ShardId(t.shard)].dirty for t in tables)


def story(work: Callable[[World], Awaitable[None]]) -> None:
    async def told() -> None:
        await work(World())

    on_virtual_time(told())


def test_many_small_files_become_few_and_every_answer_stays() -> None:
    async def told(world: World) -> None:
        settings = CoreSettings(cut_age_us=10_000, compaction=CompactionLimits(files_min=3))
        async with world.server(settings) as driver:
            table = await create(driver, "t")
            answers = {}
            for value in range(9):
                ts = await insert(driver, table, value, value + 100)
                answers[ts] = await read(world, driver, table)
                await flushed(driver, table)
            await asyncio.sleep(0.5)
            files = driver.core.shards[ShardId(table.shard)].versions[-1].files
            assert len(files) < 4
            assert any(live.moved for live in files.live_files())
            for ts, told_then in answers.items():
                assert await read(world, driver, table, ts) == told_then
        async with world.server(settings) as driver:
            for ts, told_then in answers.items():
                assert await read(world, driver, table, ts) == told_then

    story(told)


def test_a_transaction_that_read_before_a_compaction_deletes_the_right_row() -> None:
    async def told(world: World) -> None:
        async with world.server() as driver:
            table = await create(driver, "t")
            for value in (1, 2):
                await insert(driver, table, value, value + 10)
                await flushed(driver, table)
            txn = driver.begin(OWNER)
            snapshot = await driver.snapshot(txn)
            (view,) = await driver.scan(txn, snapshot.ts, [table])
            second = view.files[1].file.name
            await driver.optimize([table])
            files = driver.core.shards[ShardId(table.shard)].versions[-1].files
            assert [Source(name) for name in files] != [second]
            assert len(files) == 1
            driver.write(txn, table, WriteBatch(deletes={second: BitMap64([0])}))
            (own,) = await driver.scan(txn, snapshot.ts, [table])
            assert world.values(own) == [1, 11, 12]
            await driver.commit(txn)
            assert await read(world, driver, table) == [1, 11, 12]
        async with world.server() as driver:
            assert await read(world, driver, table) == [1, 11, 12]
            await flushed(driver, table)
            assert await read(world, driver, table) == [1, 11, 12]

    story(told)


def test_optimize_ends_while_others_go_on_writing() -> None:
    async def told(world: World) -> None:
        async with world.server() as driver:
            table = await create(driver, "t")
            for value in range(3):
                await insert(driver, table, value)
                await flushed(driver, table)

            stop = asyncio.Event()

            async def writer() -> None:
                while not stop.is_set():
                    await insert(driver, table, 9)

            async with asyncio.TaskGroup() as tasks:
                for _ in range(4):
                    tasks.create_task(writer())
                await asyncio.wait_for(driver.optimize([table]), 60)
                stop.set()
            files = driver.core.shards[ShardId(table.shard)].versions[-1].files
            assert any(live.moved for live in files.live_files())
            assert (await read(world, driver, table))[:3] == [0, 1, 2]

    story(told)


def test_vacuum_waits_for_history_and_for_holds() -> None:
    async def told(world: World) -> None:
        async with world.server() as driver:
            table = await create(driver, "t")
            for value in range(4):
                await insert(driver, table, value)
                await flushed(driver, table)
            reader = driver.begin(OWNER)
            held = (await driver.snapshot(reader)).ts
            (view,) = await driver.scan(reader, held, [table])
            await driver.optimize([table])
            before = await world.files(table)
            await asyncio.sleep(2)
            await insert(driver, table, 9)
            await driver.vacuum([table])
            assert {*before} <= {*(await world.files(table))}
            assert world.values(view) == [0, 1, 2, 3]
            driver.abort(reader)
            await insert(driver, table, 10)
            await flushed(driver, table)
            await driver.vacuum(None)
            assert len({*before} & {*(await world.files(table))}) == 1
            assert await read(world, driver, table) == [0, 1, 2, 3, 9, 10]
        async with world.server() as driver:
            assert await read(world, driver, table) == [0, 1, 2, 3, 9, 10]

    story(told)


def test_a_dropped_table_is_forgotten_when_since_has_passed() -> None:
    async def told(world: World) -> None:
        async with world.server() as driver:
            kept, gone = await create(driver, "kept"), await create(driver, "gone")
            ts = await insert(driver, gone, 1)
            await insert(driver, kept, 2)
            await flushed(driver, kept, gone)
            stranger = f"{gone.shard}/part-00000-theirs.parquet"
            await world.store.create(stranger, b"x")
            await drop(driver, gone)
            assert await read(world, driver, gone, ts) == [1]
            assert gone.shard in await world.keys("shards")
            await asyncio.sleep(3)
            assert await world.keys("shards") == [kept.shard]
            assert await world.keys("flushed") == [kept.shard]
            assert await world.keys("forgotten") == []
            assert len(await world.keys("catalog")) == 1
            assert await world.names(gone) == [stranger]
            with pytest.raises(RequestRefused, match="too old"):
                await read(world, driver, gone, ts)
        async with world.server() as driver:
            assert await read(world, driver, kept) == [2]
            assert (await driver.new_table_id())[0] == gone.oid + 1
            assert [*driver.core.shards] == [kept.shard]

    story(told)


def test_a_drop_is_finished_after_a_restart() -> None:
    async def told(world: World) -> None:
        async with world.server() as driver:
            gone = await create(driver, "gone")
            await insert(driver, gone, 1)
            await flushed(driver, gone)
            await drop(driver, gone)
        assert await world.names(gone) != []
        async with world.server():
            await asyncio.sleep(3)
            assert await world.names(gone) == []
            assert await world.keys("shards") == []

    story(told)


def test_a_table_created_and_dropped_at_once_leaves_nothing() -> None:
    async def told(world: World) -> None:
        async with world.server() as driver:
            txn = driver.begin(OWNER)
            await driver.snapshot(txn)
            oid, shard = await driver.new_table_id()
            table = Table(oid, "public", "t", shard, COLUMNS)
            driver.change_catalog(txn, [PutTable(table)])
            driver.write(txn, table, rows(1))
            driver.change_catalog(txn, [RemoveTable(table)])
            await driver.commit(txn)
            await asyncio.sleep(0.2)
            assert await world.store.list("") == []
            assert await world.keys("shards") == []
        async with world.server() as driver:
            await asyncio.sleep(0.2)
            assert [*driver.core.shards] == []
            assert await world.store.list("") == []

    story(told)


def test_a_fenced_table_holds_back_nothing_but_itself() -> None:
    async def told(world: World) -> None:
        async with world.server() as driver:
            ours, theirs = await create(driver, "ours"), await create(driver, "theirs")
            for value in range(3):
                await insert(driver, theirs, value)
                await flushed(driver, ours, theirs)
            files = await world.names(theirs)
            version = driver.core.shards[ShardId(theirs.shard)].versions[-1].number
            await world.store.create(commit_path(ShardId(theirs.shard), version + 1), FOREIGN)
            await insert(driver, theirs, 9)
            await asyncio.sleep(0.1)
            for value in range(5):
                await insert(driver, ours, value)
                await flushed(driver, ours)
            asked = driver.optimize([theirs]), driver.vacuum([theirs]), read(world, driver, theirs)
            for work in asked:
                with pytest.raises(RequestRefused, match="another writer"):
                    await work
            await driver.vacuum(None)
            await asyncio.sleep(1)
            assert {*files} < {*(await world.names(theirs))}
            assert await world.commits() == [{theirs.shard}]
        async with world.server() as driver:
            assert await read(world, driver, ours) == [0, 1, 2, 3, 4]
            assert await world.commits() == [{theirs.shard}]

    story(told)
