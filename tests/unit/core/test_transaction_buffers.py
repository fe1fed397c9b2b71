"""Own writes against a model that keeps every row: any mix of writes, savepoints and spilling."""

import random
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from coordinator.core.messages.identities import ConnectionId, Isolation, TransactionId
from coordinator.core.messages.requests import WriteRows
from coordinator.core.own_writes import OwnWrites, OwnWritesMark, final_batch, merge_batches
from coordinator.core.transactions import OLD_BYTES_MAX, Transaction
from sql.catalog.catalog import Table
from storage.batch import DataFile, WriteBatch
from storage.known_rows import KnownRows, OldRows
from storage.types import OWN, Source

OTHER = Source("@17")


@dataclass
class Model:
    """The rows that live, by value; where each has come to; foreign rows that are deleted."""

    live: set[int] = field(default_factory=set[int])
    foreign: set[int] = field(default_factory=set[int])

    def copy(self) -> "Model":
        return Model(set(self.live), set(self.foreign))


class World:
    """Own writes beside the model; files are lists of values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.own = OwnWrites()
        self.model = Model()
        self.files: dict[Source, list[int]] = {}
        self.values = 0
        self.savepoints: list[tuple[OwnWritesMark, Model]] = []

    def fresh(self, count: int) -> list[int]:
        self.values += count
        return list(range(self.values - count, self.values))

    def file(self, values: list[int]) -> DataFile:
        name = Source(f"part-{len(self.files)}.parquet")
        self.files[name] = values
        return DataFile(name, len(values), 100, "{}")

    def insert(self) -> None:
        values = self.fresh(self.random.randint(1, 5))
        self.own.add(WriteBatch(pa.table({"a": values})))
        self.model.live.update(values)

    def stage(self) -> None:
        values = self.fresh(self.random.randint(1, 5))
        self.own.add(WriteBatch(staged=(self.file(values),)))
        self.model.live.update(values)

    def delete(self) -> None:
        deletes: dict[Source, BitMap64] = {}
        places = self.places(self.own.merged())
        for value in self.random.sample(sorted(places), min(len(places), 2)):
            source, row = places[value]
            deletes.setdefault(source, BitMap64()).add(row)
            self.model.live.discard(value)
        foreign = self.random.randint(0, 99)
        deletes[OTHER] = BitMap64([foreign])
        self.model.foreign.add(foreign)
        self.own.add(WriteBatch(deletes=deletes))

    def savepoint(self) -> None:
        self.savepoints.append((self.own.mark(), self.model.copy()))

    def rollback(self) -> None:
        if self.savepoints:
            place = self.random.randrange(len(self.savepoints))
            mark, model = self.savepoints[place]
            del self.savepoints[place + 1 :]
            self.own.rewind(mark)
            self.model = model.copy()

    def spill(self) -> None:
        table = self.own.rows
        if table is None:
            return
        values = table.column("a").to_pylist()
        cut = self.random.randint(0, len(values))
        files = [self.file(part) for part in (values[:cut], values[cut:]) if part]
        self.savepoints = [
            (mark.spilled(files, len(values)), model) for mark, model in self.savepoints
        ]
        self.own.spilled(files)

    def places(self, batch: WriteBatch) -> dict[int, tuple[Source, int]]:
        """Where each live row of a batch is."""
        rows = [] if batch.inserts is None else batch.inserts.column("a").to_pylist()
        slices = [(OWN, rows), *((file.name, self.files[file.name]) for file in batch.staged)]
        return {
            value: (source, row)
            for source, values in slices
            for row, value in enumerate(values)
            if row not in batch.deletes.get(source, ())
        }

    def check(self) -> None:
        batch = self.own.merged()
        assert set(self.places(batch)) == self.model.live
        assert set(batch.deletes.get(OTHER, ())) == self.model.foreign
        final = final_batch(batch)
        assert OWN not in final.deletes
        assert set(self.places(final)) == self.model.live


@pytest.mark.parametrize("seed", range(60))
def test_any_mix_is_what_the_model_says(seed: int) -> None:
    world = World(seed)
    steps = [world.insert, world.insert, world.delete, world.savepoint, world.rollback]
    steps += [world.stage, world.spill]
    for _ in range(60):
        world.random.choice(steps)()
        if world.random.random() < 0.5:
            world.check()
    world.check()


def test_many_small_writes_are_few_pieces() -> None:
    own = OwnWrites()
    for value in range(4096):
        own.add(WriteBatch(pa.table({"a": [value]}), deletes={OTHER: BitMap64([value])}))
    table = own.rows
    assert table is not None
    assert table.column("a").num_chunks <= 13
    assert table.column("a").to_pylist() == list(range(4096))
    assert len(own.mark().deletes) <= 13


def test_a_mark_keeps_no_rows() -> None:
    own = OwnWrites()
    own.add(WriteBatch(pa.table({"a": [1, 2]})))
    assert own.mark() == OwnWritesMark(2, (), ())


def test_batches_of_a_group_are_merged_in_order() -> None:
    file = DataFile(Source("f.parquet"), 1, 1, "{}")
    batches = [
        WriteBatch(pa.table({"a": [1]}), deletes={OTHER: BitMap64([1])}),
        WriteBatch(staged=(file,), deletes={OTHER: BitMap64([2])}),
        WriteBatch(pa.table({"a": [2]})),
    ]
    merged = merge_batches(batches)
    assert merged.inserts is not None
    assert merged.inserts.column("a").to_pylist() == [1, 2]
    assert merged.staged == (file,)
    assert merged.deletes == {OTHER: BitMap64([1, 2])}


def test_old_values_are_bounded() -> None:
    txn = Transaction(
        TransactionId(1), ConnectionId(1), Isolation.STRICT_SERIALIZABLE, read_only=False
    )
    table = Table(1, "public", "t", "shard", ())
    rows = KnownRows.of(pa.table({"a": list(range(1000))}))
    for row in range(3000):
        old = OldRows({OTHER: BitMap64([row])}, rows)
        batch = WriteBatch(deletes={OTHER: BitMap64([row])})
        txn.write(WriteRows(txn.id, table, batch, old))
        kept = sum(part.rows.nbytes for parts in txn.replaced.values() for part in parts)
        assert kept <= OLD_BYTES_MAX
    assert not txn.replaced
