"""One timestamp over several tables, read by others: money moved between them never goes missing.

transfers between three tables, cuts, compactions ──▶ logs
any t ──▶ the version of each table at t ──▶ the sum is what it always was
"""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.core.messages.catalog_changes import PutTable
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.settings import CoreSettings
from coordinator.driver.coordination import RequestRefused
from coordinator.driver.driver import Driver
from coordinator.server.recovery import recover_timelines
from sql.catalog.catalog import Column, Table
from sql.types.sql_type import INT8
from storage.batch import ShardView, WriteBatch
from storage.clock import SystemClock
from storage.delta.compaction_plan import CompactionLimits
from storage.local_store import LocalObjectStore
from storage.memory import MemoryStash
from storage.types import Source
from tests.support.foreign_readers import DeltaRs, ForeignReader, delta_spark_reader

T = TypeVar("T")
TABLES = 3
BALANCE = 1_000
CLIENTS = 4
TRANSFERS = 40
SETTINGS = CoreSettings(cut_age_us=50_000, compaction=CompactionLimits(files_min=4))
COLUMNS = (Column("balance", INT8),)


@dataclass(frozen=True)
class Bank:
    """Where the tables lie, and the versions of each with their in-commit timestamps."""

    paths: dict[str, Path]
    versions: dict[str, list[int]]

    def moments(self) -> list[int]:
        """Milliseconds at and between the cuts at which all tables exist."""
        first = max(times[0] for times in self.versions.values())
        cuts = sorted({ms for times in self.versions.values() for ms in times if ms >= first})
        between = [(a + b) // 2 for a, b in pairwise(cuts)]
        return sorted({*cuts, *between})

    def at(self, ms: int) -> dict[str, int]:
        """The version of each table at a time, as the Delta protocol says."""
        return {
            name: max(number for number, at in enumerate(times) if at <= ms)
            for name, times in self.versions.items()
        }


async def at_once(work: Callable[[], T]) -> T:
    return work()


async def create(driver: Driver, name: str) -> Table:
    txn = driver.begin(ConnectionId(0))
    await driver.snapshot(txn)
    oid, shard = await driver.new_table_id()
    table = Table(oid, "public", name, shard, COLUMNS)
    driver.change_catalog(txn, [PutTable(table)])
    driver.write(txn, table, balance(BALANCE))
    await driver.commit(txn)
    return table


def balance(value: int, deletes: dict[Source, BitMap64] | None = None) -> WriteBatch:
    return WriteBatch(pa.table({"balance": pa.array([value], pa.int64())}), deletes=deletes or {})


def the_row(view: ShardView, store: LocalObjectStore) -> tuple[int, dict[Source, BitMap64]]:
    """The one row of a table, and its identity as a delete."""
    found: list[tuple[int, Source, int]] = []
    for part in view.files:
        rows = pq.read_table(store.local_path(f"{view.shard}/{part.file.name}"), partitioning=None)
        values = rows["balance"].to_pylist()[: part.row_limit]
        live = [i for i in range(len(values)) if i not in part.deleted]
        found += [(values[i], part.file.name, i) for i in live]
    for inline in view.inline:
        values = inline.rows["balance"].to_pylist()
        live = [i for i in range(len(values)) if i not in inline.deleted]
        found += [(values[i], inline.source, i) for i in live]
    ((value, source, index),) = found
    return value, {source: BitMap64([index])}


async def transfer(
    driver: Driver, store: LocalObjectStore, tables: list[Table], amount: int
) -> None:
    txn = driver.begin(ConnectionId(1))
    try:
        snapshot = await driver.snapshot(txn)
        views = await driver.scan(txn, snapshot.ts, tables)
        for view, table, change in zip(views, tables, (-amount, amount), strict=True):
            value, deletes = the_row(view, store)
            driver.write(txn, table, balance(value + change, deletes))
        await driver.commit(txn)
    except RequestRefused:
        driver.abort(txn)


async def under_load(warehouse: Path) -> None:
    store = LocalObjectStore.open(warehouse)
    timelines = await recover_timelines(
        MemoryStash(),
        store,
        SystemClock(),
        SETTINGS,
        lambda table: table_schema(table.columns),
        run_blocking=at_once,
    )
    driver = timelines.system
    rng = random.Random(7)

    async def client(tables: list[Table]) -> None:
        for _ in range(TRANSFERS):
            await transfer(driver, store, rng.sample(tables, 2), rng.randint(1, 50))
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(driver.run())
        await asyncio.sleep(0)
        tables = [await create(driver, f"t{number}") for number in range(TABLES)]
        async with asyncio.TaskGroup() as clients:
            for _ in range(CLIENTS):
                clients.create_task(client(tables))
        await driver.stop()
    store.close()


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    warehouse = tmp_path_factory.mktemp("bank")
    asyncio.run(under_load(warehouse))
    paths = {f"t{n}": path for n, path in enumerate(sorted(warehouse.glob("t*")))}
    versions: dict[str, list[int]] = {}
    for name, path in paths.items():
        logs = sorted((path / "_delta_log").glob("*.json"))
        infos = [json.loads(log.read_text().splitlines()[0])["commitInfo"] for log in logs]
        versions[name] = [info["inCommitTimestamp"] for info in infos]
    return Bank(paths, versions)


def test_every_moment_has_all_the_money(bank: Bank) -> None:
    assert len(bank.paths) == TABLES
    moments = bank.moments()
    assert len(moments) > 10
    adds = "".join(
        log.read_text() for p in bank.paths.values() for log in (p / "_delta_log").glob("*.json")
    )
    assert "meridian.moved" in adds, "the load had compactions"
    query = " UNION ALL ".join(f"SELECT balance FROM {name}" for name in bank.paths)
    seen = set()
    for ms in moments:
        rows = DeltaRs().query(query, bank.paths, bank.at(ms))
        assert len(rows) == TABLES
        assert sum(int(str(value)) for (value,) in rows) == TABLES * BALANCE, ms
        seen.add(tuple(rows))
    assert len(seen) > 5


@pytest.fixture(scope="module")
def spark() -> Iterator[ForeignReader]:
    with delta_spark_reader() as reader:
        yield reader


@pytest.mark.spark
@pytest.mark.slow
def test_delta_spark_sees_all_the_money_at_any_timestamp(bank: Bank, spark: ForeignReader) -> None:
    # Spark refuses a moment after the newest version of a table.
    newest = min(times[-1] for times in bank.versions.values())
    moments = [ms for ms in bank.moments() if ms <= newest]
    for ms in moments[:: max(1, len(moments) // 6)]:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)
        at = f"TIMESTAMP AS OF '{moment.strftime('%Y-%m-%d %H:%M:%S.%f')}'"
        tables = [f"SELECT balance FROM delta.`{path}` {at}" for path in bank.paths.values()]
        union = " UNION ALL ".join(tables)
        answer = spark.query(f"SELECT count(*), sum(balance) FROM ({union})", {})
        assert answer == [(TABLES, TABLES * BALANCE)], moment
