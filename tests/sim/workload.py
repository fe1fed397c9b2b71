"""Clients of the simulation: random transactions over sets, registers and lists kept in tables.

Every key is a table of its own: `s*` sets (one row per value), `r*` registers (at most one row),
`l*` lists
(rows with a position). Clients speak to the coordinator as sessions do: snapshot, scan, write,
commit.
A client records what it asked and what it was told; what a crash left open is unknown.
"""

import asyncio
import contextlib
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.coordination import RequestRefused
from coordinator.core.messages import ConnectionId, PutTable, TransactionId
from coordinator.driver import Driver
from sql.catalog import Catalog, Column, Table
from sql.types import INT8
from storage.batch import ShardView, WriteBatch
from storage.memory import MemoryObjectStore
from storage.types import Source, Timestamp
from tests.history.events import (
    Add,
    Append,
    Operation,
    Read,
    ReadList,
    ReadSet,
    Recorder,
    Write,
)
from tests.sim.world import Crashed, World

DEFINITE = ("40001", "58030")
"""What the server may refuse with here; both say that it certainly did not happen."""

COLUMNS = (Column("position", INT8), Column("value", INT8))
SCHEMA = table_schema(COLUMNS)


@dataclass(frozen=True, slots=True)
class Row:
    """A live row with its identity."""

    source: Source
    index: int
    position: int
    value: int


def rows_of(view: ShardView, store: MemoryObjectStore) -> list[Row]:
    """The live rows of a view."""
    found: list[Row] = []
    for part in view.files:
        content = store.peek(f"{view.shard}/{part.file.name}")
        table = pq.read_table(io.BytesIO(content)).slice(0, part.row_limit)
        found += _live(part.file.name, table, part.deleted)
    for inline in view.inline:
        found += _live(inline.source, inline.rows, inline.deleted)
    return found


def _live(source: Source, table: pa.Table, deleted: BitMap64) -> list[Row]:
    positions, values = (column.to_pylist() for column in table.columns)
    return [
        Row(source, index, position, value)
        for index, (position, value) in enumerate(zip(positions, values, strict=True))
        if index not in deleted
    ]


def insertion(rows: Sequence[tuple[int, int]], deleted: Sequence[Row] = ()) -> WriteBatch:
    """Insert (position, value) rows and delete others."""
    deletes: dict[Source, BitMap64] = {}
    for row in deleted:
        deletes.setdefault(row.source, BitMap64()).add(row.index)
    arrays = [pa.array([row[column] for row in rows], pa.int64()) for column in (0, 1)]
    inserts = pa.Table.from_arrays(arrays, schema=SCHEMA) if rows else None
    return WriteBatch(inserts, deletes=deletes)


async def create_tables(driver: Driver, keys: Sequence[str]) -> None:
    """All keys of a run in one DDL transaction; those that exist are left alone."""
    txn = driver.begin(ConnectionId(0))
    catalog = (await driver.snapshot(txn)).catalog
    changes = []
    for key in keys:
        if ("public", key) not in catalog.tables:
            oid, shard = await driver.new_table_id()
            changes.append(PutTable(Table(oid, "public", key, shard, COLUMNS, 1)))
    driver.change_catalog(txn, changes)
    await driver.commit(txn)


class Memory:
    """Answers by timestamp: AS OF the same timestamp they must be the same for ever."""

    def __init__(self) -> None:
        self._answers: list[tuple[Timestamp, Operation]] = []
        self.checked = 0

    def keep(self, ts: Timestamp, operations: Sequence[Operation]) -> None:
        """Remember the reads of a transaction that only read."""
        if all(isinstance(operation, (ReadSet, ReadList, Read)) for operation in operations):
            self._answers += [(ts, operation) for operation in operations]

    def choose(self, rng: random.Random) -> tuple[Timestamp, Operation] | None:
        """One of them."""
        return rng.choice(self._answers) if self._answers else None


class Client:
    """One process of the history."""

    def __init__(
        self, world: World, recorder: Recorder, keys: Sequence[str], memory: Memory
    ) -> None:
        self._world = world
        self._recorder = recorder
        self._keys = keys
        self._memory = memory
        self._random = world.random

    async def run(self, first_process: int, transactions: int, values: "Values") -> None:
        """Some transactions one after the other; a new process number after an unknown outcome."""
        process = first_process
        for _ in range(transactions):
            await asyncio.sleep(self._random.random() * 0.02)
            driver = await self._world.server()
            operations = self._choose(values)
            self._recorder.invoke(process, *operations)
            try:
                await self._world.surviving(self._once(driver, process, operations))
            except Crashed:
                self._recorder.info(process)
                process = values.process()
                continue
            if self._random.random() < 0.3:
                with contextlib.suppress(Crashed):
                    await self._world.surviving(self._ask_again(await self._world.server()))

    async def read_all(self, process: int) -> None:
        """Read every key in one transaction."""
        reads = {"s": ReadSet, "r": Read, "l": ReadList}
        operations = tuple(reads[key[0]](key) for key in self._keys)
        driver = await self._world.server()
        self._recorder.invoke(process, *operations)
        await self._once(driver, process, operations)

    async def _ask_again(self, driver: Driver) -> None:
        """An old answer, AS OF its timestamp, between cuts and after crashes."""
        if self._random.random() < 0.3:
            await self._read_now(driver)
            return
        chosen = self._memory.choose(self._random)
        if chosen is None:
            return
        ts, told = chosen
        txn = driver.begin(ConnectionId(0))
        try:
            snapshot = await driver.snapshot(txn, as_of=ts)
            assert snapshot.ts == ts, "AS OF is exact"
            again = await self._perform(driver, txn, ts, snapshot.catalog, told)
        except RequestRefused as refused:
            if refused.sqlstate != "72000":
                raise
            return
        finally:
            driver.abort(txn)
        assert again == told, f"AS OF {ts} said {told}, and now {again}"
        self._memory.checked += 1

    async def _read_now(self, driver: Driver) -> None:
        """AS OF the clock: a timestamp that no commit has had, and that none may have later."""
        key = self._random.choice(self._keys)
        operation = {"s": ReadSet, "r": Read, "l": ReadList}[key[0]](key)
        txn = driver.begin(ConnectionId(0))
        try:
            snapshot = await driver.snapshot(txn, as_of=self._world.clock.now())
            if ("public", key) not in snapshot.catalog.tables:
                return  # a clock that stepped back to before the table's creation
            told = await self._perform(driver, txn, snapshot.ts, snapshot.catalog, operation)
        finally:
            driver.abort(txn)
        self._memory.keep(snapshot.ts, [told])

    def _choose(self, values: "Values") -> tuple[Operation, ...]:
        chosen: list[Operation] = []
        touched: set[str] = set()
        read_only = self._random.random() < 0.4
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            key = self._random.choice(self._keys)
            if key in touched:
                continue
            touched.add(key)
            chosen.append(self._operation(key, values, read=read_only))
        return tuple(chosen)

    def _operation(self, key: str, values: "Values", *, read: bool) -> Operation:
        read = read or self._random.random() < 0.25
        match key[0]:
            case "s":
                return ReadSet(key) if read else Add(key, values.next())
            case "r":
                return Read(key) if read else Write(key, values.next())
            case _:
                return ReadList(key) if read else Append(key, values.next())

    async def _once(self, driver: Driver, process: int, operations: Sequence[Operation]) -> None:
        txn = driver.begin(ConnectionId(process))
        try:
            snapshot = await driver.snapshot(txn)
            told = []
            for operation in operations:
                told.append(
                    await self._perform(driver, txn, snapshot.ts, snapshot.catalog, operation)
                )
                if self._random.random() < 0.3:
                    await asyncio.sleep(self._random.random() * 0.01)
            ts = await driver.commit(txn)
        except RequestRefused as refused:
            if refused.sqlstate not in DEFINITE:
                raise
            self._recorder.fail(process)
            return
        self._recorder.ok(process, *told, ts=ts)
        self._memory.keep(ts, told)

    async def _perform(
        self,
        driver: Driver,
        txn: TransactionId,
        ts: Timestamp,
        catalog: Catalog,
        operation: Operation,
    ) -> Operation:
        table = catalog.tables["public", operation.key]
        if isinstance(operation, Add):
            driver.write(txn, table, insertion([(0, operation.value)]))
            return operation
        (view,) = await driver.scan(txn, ts, [table])
        rows = sorted(rows_of(view, self._world.store), key=lambda row: (row.position, row.value))
        values = tuple(row.value for row in rows)
        match operation:
            case ReadSet(key=key):
                return ReadSet(key, values)
            case ReadList(key=key):
                return ReadList(key, values)
            case Read(key=key):
                assert len(values) <= 1, f"register {key} has {values}: a write was applied twice"
                return Read(key, values[0] if values else None)
            case Write(value=value):
                driver.write(txn, table, insertion([(0, value)], rows))
            case Append(value=value):
                driver.write(txn, table, insertion([(len(rows), value)]))
        return operation


class Values:
    """Values and process numbers, each used once."""

    def __init__(self, first_process: int) -> None:
        self._value = 0
        self._process = first_process

    def next(self) -> int:
        """A value nobody has written."""
        self._value += 1
        return self._value

    def process(self) -> int:
        """A process number nobody has used."""
        self._process += 1
        return self._process
