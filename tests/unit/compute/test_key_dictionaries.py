"""Rows of the tail by key: every view finds its own, whichever views were looked at before."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.access.key_index import SMALL_ROWS_MAX, KeyIndex
from compute.access.key_predicates import SingleKey
from compute.arrow import table_schema
from sql.catalog.catalog import Column, Key, Table
from sql.types.sql_type import INT8
from storage.batch import RowIdentity, ShardView, WriteBatch
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp, inline_source

TABLE = Table(
    7, "public", "t", "t", (Column("a", INT8),), keys=(Key("t_pkey", (0,), primary=True),)
)
SCHEMA = table_schema(TABLE.columns)


def rows(*values: int) -> pa.Table:
    return pa.Table.from_arrays([pa.array(list(values), pa.int64())], schema=SCHEMA)


def no_file(*_: object) -> pa.Table:
    raise AssertionError("there are no files")


def found(index: KeyIndex, view: ShardView, key: int) -> list[RowIdentity] | None:
    wanted = SingleKey(TABLE, TABLE.keys[0], (key,))
    return index.places(view, wanted, may_read=True, is_unique=True)


def expected(view: ShardView, key: int) -> list[RowIdentity]:
    """By a look at every row."""
    return [
        (part.source, at)
        for part in view.inline
        for at, value in enumerate(part.rows.column(0).to_pylist())
        if value == key and at not in part.deleted
    ]


@dataclass
class Shard:
    """A shard, and where each key is now."""

    state: ShardState = field(
        default_factory=lambda: ShardState(ShardId("t"), SCHEMA, Timestamp(1))
    )
    places: dict[int, Source] = field(default_factory=dict[int, Source])
    now: int = 1

    def put(self, key: int) -> None:
        """INSERT, or UPDATE of the row that has the key."""
        deletes = self._without(key)
        self._commit(WriteBatch(rows(key), deletes=deletes))
        self.places[key] = inline_source(Timestamp(self.now))

    def remove(self, key: int) -> None:
        """DELETE."""
        self._commit(WriteBatch(None, deletes=self._without(key)))

    def _without(self, key: int) -> dict[Source, BitMap64]:
        before = self.places.pop(key, None)
        return {} if before is None else {before: BitMap64([0])}

    def _commit(self, batch: WriteBatch) -> None:
        self.now += 1
        self.state = self.state.committed(Timestamp(self.now), batch)

    def view(self, ts: int, own: WriteBatch | None = None) -> ShardView:
        return self.state.view(Timestamp(ts), own)


def test_an_older_view_has_a_row_that_came_and_went_between_two_look_ups() -> None:
    shard, index = Shard(), KeyIndex(no_file, no_file)
    shard.put(1)
    assert found(index, shard.view(shard.now), 1) == [(inline_source(Timestamp(2)), 0)]
    shard.put(2)
    then = shard.now
    shard.remove(2)
    shard.put(3)
    assert found(index, shard.view(shard.now), 2) == []
    assert found(index, shard.view(then), 2) == [(inline_source(Timestamp(then)), 0)]


def test_what_a_transaction_has_deleted_is_there_for_others() -> None:
    shard, index = Shard(), KeyIndex(no_file, no_file)
    shard.put(1)
    own = WriteBatch(rows(5), deletes={shard.places[1]: BitMap64([0])})
    assert found(index, shard.view(shard.now, own), 1) == []
    assert found(index, shard.view(shard.now), 1) == [(shard.places[1], 0)]


def test_a_slice_of_many_rows_is_found_in_views_of_any_age() -> None:
    shard, index = Shard(), KeyIndex(no_file, no_file)
    shard.put(1)
    shard.now += 1
    many = rows(*range(10, 12 + SMALL_ROWS_MAX))
    shard.state = shard.state.committed(Timestamp(shard.now), WriteBatch(many))
    large = inline_source(Timestamp(shard.now))
    for ts in (shard.now, 2, shard.now):
        assert found(index, shard.view(ts), 15) == ([] if ts == 2 else [(large, 5)])


@dataclass
class Look:
    """A look-up of a key, in a view of some age, perhaps with own writes on top."""

    view: ShardView
    key: int


def looks(shard: Shard, random_: random.Random) -> Iterator[Look]:
    """Any commits, and look-ups in between."""
    for _ in range(400):
        key = random_.randrange(12)
        match random_.randrange(4):
            case 0 | 1:
                shard.put(key)
            case 2 if key in shard.places:
                shard.remove(key)
            case _:
                own = None
                if random_.random() < 0.3 and shard.places:
                    gone = random_.choice(sorted(shard.places))
                    own = WriteBatch(rows(100), deletes={shard.places[gone]: BitMap64([0])})
                age = random_.choice((0, 0, 1, 3, 20, 300)) if own is None else 0
                yield Look(shard.view(max(1, shard.now - age), own), key)


@pytest.mark.parametrize("seed", range(20))
def test_every_view_finds_its_own(seed: int) -> None:
    shard, index = Shard(), KeyIndex(no_file, no_file)
    for look in looks(shard, random.Random(seed)):
        assert found(index, look.view, look.key) == expected(look.view, look.key)
