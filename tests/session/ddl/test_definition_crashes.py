"""DDL and rows in one transaction, and a crash at every write to the outside: all or nothing.

    set up ─▶ [swap a table, with its rows; schema, timeline, read hold] ─▶ commit ─▶ flush, stop
                 │ the n-th write of stash or store is the last one, done or not
                 ▼
              recover from what is durable ─▶ the old state, or the new one; new if acknowledged

INVARIANTS
  C1  the process that recovers finds every catalog object and every row of one of the two states.
  C2  what was recovered goes on: the next DDL and the next rows commit.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compute.arrow import table_schema
from coordinator.core.messages.catalog_changes import (
    PutReadHold,
    PutSchema,
    PutTable,
    PutTimeline,
    RemoveTable,
)
from coordinator.core.messages.identities import ConnectionId, TransactionId
from coordinator.core.settings import CoreSettings
from coordinator.driver.timelines import Timelines
from coordinator.server.recovery import recover_timelines
from sql.catalog.catalog import Catalog, Column, ReadHold, Table, Timeline
from sql.errors import SqlError
from sql.types.sql_type import INT8
from storage.batch import ShardView, WriteBatch
from storage.clock import SystemClock
from storage.errors import Fatal
from storage.memory import MemoryObjectStore, MemoryStash
from storage.types import Timestamp
from tests.support.mortal import Life, MortalStash, MortalStore

OWNER = ConnectionId(1)
COLUMNS = (Column("value", INT8),)
SETTINGS = CoreSettings(cut_age_us=1)


@dataclass(frozen=True)
class State:
    """What a session can see: names and rows of tables, and the other objects."""

    rows: dict[str, list[int]]
    schemas: frozenset[str]
    timelines: frozenset[str]
    holds: frozenset[str]


OLD = State({"public.t": [1, 2]}, frozenset({"public"}), frozenset({"system"}), frozenset())
NEW = State(
    {"s.t": [1, 2, 3]},
    frozenset({"public", "s"}),
    frozenset({"system", "line"}),
    frozenset({"h"}),
)


def _rows(*values: int) -> WriteBatch:
    return WriteBatch(pa.Table.from_arrays([pa.array(values, pa.int64())], names=["value"]))


async def _new_table(timelines: Timelines, name: str) -> Table:
    oid, shard = await timelines.new_table_id()
    return Table(oid, "public", name, shard, COLUMNS)


async def _set_up(timelines: Timelines) -> None:
    txn = timelines.begin(OWNER)
    await timelines.snapshot(txn)
    table = await _new_table(timelines, "t")
    timelines.change_catalog(txn, [PutTable(table)])
    timelines.write(txn, table, _rows(1, 2))
    await timelines.commit(txn)


async def _swap(timelines: Timelines) -> None:
    txn = timelines.begin(OWNER)
    snapshot = await timelines.snapshot(txn)
    old = snapshot.catalog.tables["public", "t"]
    fresh = await _new_table(timelines, "fresh")
    timelines.change_catalog(txn, [PutTable(fresh), PutSchema("s")])
    timelines.write(txn, fresh, _rows(1, 2))
    away = replace(old, name="old", version=1)
    moved = replace(fresh, schema="s", name="t", version=1)
    timelines.change_catalog(txn, [PutTable(away), PutTable(moved), RemoveTable(away)])
    timelines.write(txn, moved, _rows(3))
    timelines.change_catalog(txn, [PutTimeline(Timeline("line", manual=True))])
    hold = ReadHold("h", "system", await timelines.hold(txn, "system"))
    timelines.change_catalog(txn, [PutReadHold(hold)])
    await timelines.commit(txn)


async def _state(timelines: Timelines, store: MemoryObjectStore) -> State:
    txn = timelines.begin(OWNER)
    snapshot = await timelines.snapshot(txn)
    catalog: Catalog = snapshot.catalog
    rows = {
        table.qualified: await _read(timelines, store, txn, snapshot.ts, table)
        for table in catalog.tables.values()
    }
    timelines.abort(txn)
    return State(rows, catalog.schemas, frozenset(catalog.timelines), frozenset(catalog.read_holds))


async def _read(
    timelines: Timelines, store: MemoryObjectStore, txn: TransactionId, ts: Timestamp, table: Table
) -> list[int]:
    (view,) = await timelines.scan(txn, ts, [table])
    return sorted(_values(view, store))


def _values(view: ShardView, store: MemoryObjectStore) -> list[int]:
    found: list[int] = []
    for part in view.files:
        content = io.BytesIO(store.peek(f"{view.shard}/{part.file.name}"))
        found += _present(pq.read_table(content)[: part.row_limit], part.deleted)
    for piece in view.inline:
        found += _present(piece.rows, piece.deleted)
    return found


def _present(rows: pa.Table, deleted: Container[int]) -> list[int]:
    values: list[int] = rows.column(0).to_numpy().tolist()
    return [value for row, value in enumerate(values) if row not in deleted]


async def _open(stash: MemoryStash, store: MemoryObjectStore) -> Timelines:
    return await recover_timelines(
        stash, store, SystemClock(), SETTINGS, lambda table: table_schema(table.columns)
    )


async def _lived(timelines: Timelines, work: Callable[[Timelines], Awaitable[None]]) -> bool:
    """Whether the work was acknowledged; then the process stops in order, or dies with it."""
    acknowledged = False
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_until_dead(timelines))
        for _ in range(4):
            await asyncio.sleep(0)  # until all drivers run
        try:
            await work(timelines)
            acknowledged = True
            await timelines.stop()
        except (SqlError, asyncio.CancelledError):
            pass  # who waits for an answer of the dead is cancelled, or told
    return acknowledged


async def _until_dead(timelines: Timelines) -> None:
    try:
        await timelines.run()
    except* Fatal:
        pass


async def _crashed(write: int, *, done: bool) -> bool:
    """One life that ends at a write; False if it had ended by itself before."""
    life = Life()
    stash, store = MortalStash(life), MortalStore(life)
    assert await _lived(await _open(stash, store), _set_up)
    timelines = await _open(stash, store)
    life.end_at(write, done=done)
    before = life.writes
    acknowledged = await _lived(timelines, _swap)
    reached = life.writes - before >= write
    life.go_on()
    survivor = store.crash()
    again = await _open(stash, survivor)

    async def look(timelines: Timelines) -> None:
        state = await _state(timelines, survivor)
        assert state in (OLD, NEW)
        assert state == NEW or not acknowledged
        if state == OLD:
            await _swap(timelines)
            assert await _state(timelines, survivor) == NEW

    assert await _lived(again, look)
    return reached


@pytest.mark.parametrize("done", [False, True])
def test_all_or_nothing_at_every_write(*, done: bool) -> None:
    write = 1
    while asyncio.run(_crashed(write, done=done)):
        write += 1
    assert write > 5, "the transaction and the flush behind it write more than that"
