"""The model with columns that come and go, and what its commits change, row by row."""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, ShardView, WriteBatch
from storage.changes import Change, FilePlaces, InlinePlaces, RowPlaces, changes, last_commit
from storage.delta.files import encode_file
from storage.delta.layout import data_path
from storage.delta.recovery import load_shard
from storage.errors import Indeterminate
from storage.row_versions import version_columns
from storage.shard import Definition, ShardState
from storage.types import Source, Timestamp
from tests.unit.storage.delta.model import SCHEMA, SHARD, STEP, Model
from tests.unit.storage.delta.test_vacuum import VacuumedModel

Rows: TypeAlias = dict[int, tuple[object, ...]]
"""Rows by id, with the values of some fields."""
Told: TypeAlias = tuple[int, Rows, Rows]
"""A commit, what came with it and what went."""


@dataclass
class ChangedModel(VacuumedModel):
    """The model with columns that come and go, and the values of all rows ever."""

    definitions: list[Definition] = field(
        default_factory=lambda: [Definition(Timestamp(0), SCHEMA)]
    )
    values: dict[int, dict[str, int]] = field(default_factory=dict)
    fields: int = 0
    rewritten_at: int = 0
    read_rows: dict[Source, list[tuple[int, int, dict[str, object]]]] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        return self.definitions[-1].schema

    def schema_at(self, ts: int) -> pa.Schema:
        return next(d.schema for d in reversed(self.definitions) if d.since <= ts)

    def table(self, keys: Iterable[int]) -> pa.Table:
        """Rows with a value in each column, that of the row's key first."""
        names = self.schema.names[1:]
        rows = [{"k": key, **{name: 1_000 * key + int(name[1:]) for name in names}} for key in keys]
        self.values |= {row["k"]: row for row in rows}
        return pa.Table.from_pylist(rows, self.schema)

    def make_batch(
        self, ts: int, inline: int, staged: tuple[int, ...], deletes: Deletes
    ) -> WriteBatch:
        """Of a staged file of three rows one is gone at once, of some files of two both are."""
        batch = Model.make_batch(self, ts, inline, staged, deletes)
        if batch.inserts is not None:
            batch = replace(batch, rows=self.table(batch.inserts.column("k").to_pylist()))
        own = {
            file.name: BitMap64([1] if file.rows == 3 else [0, 1])
            for file in batch.staged
            if file.rows == 3 or (file.rows == 2 and ts % (3 * STEP) == 0)
        }
        for row in self.rows:
            if row.source in own and row.index in own[row.source]:
                row.died = ts
        batch = replace(batch, deletes={**batch.deletes, **own, **self.dead_again(batch.deletes)})
        self.durable.append((ts, batch))
        return batch

    def dead_again(self, deletes: Deletes) -> Deletes:
        """C7: rows that others have deleted meanwhile, of slices that readers still see."""
        alive = self.state.view(Timestamp(self.now))
        seen = {part.file.name for part in alive.files} | {part.source for part in alive.inline}
        for row in self.rows:
            if row.died is not None and row.died < self.now and row.index == 0:
                left = self.state.surviving({row.source: BitMap64([row.index])})
                if left.keys() <= seen and left.keys().isdisjoint(deletes) and any(left.values()):
                    return left
        return {}

    def stage(self, name: str, keys: list[int]) -> DataFile:
        encoded = encode_file(self.table(keys), name)
        asyncio.run(self.store.inner.create(data_path(SHARD, encoded.file.name), encoded.content))
        self.contents[encoded.file.name] = keys
        return encoded.file

    def flush(self, back: int, offset: int = 3_000) -> None:
        """As before, also at the very timestamp of a commit."""
        cut = self.now - back * STEP + offset
        late = cut > max(self.tried, self.state.cut or -1)
        # A compaction lands at a cut that comes after it.
        if late and self.wants_flush(cut) and (not self.rewritten or cut >= self.rewritten_at):
            with contextlib.suppress(Indeterminate):
                self.state = self.state.flushed(self.make_version(cut))

    def compact(self, chosen: list[int]) -> None:
        super().compact(chosen)
        self.rewritten_at = self.now

    def add_column(self) -> None:
        self.fields += 1
        self.redefine(pa.schema([*self.schema, pa.field(f"c{self.fields}", pa.int64())]))

    def drop_column(self) -> None:
        self.redefine(pa.schema([self.schema[0], *[*self.schema][2:]]))

    def rewrite_rows(self) -> None:
        """Another column, and all rows anew in the same commit."""
        alive = self.live(self.now)
        if alive:
            self.add_column()
            self.now -= STEP
            self.commit(len(alive), (), [*range(len(alive))], 0)

    def redefine(self, schema: pa.Schema) -> None:
        self.now += STEP
        ts = Timestamp(self.now)
        self.definitions.append(Definition(ts, schema))
        self.state = self.state.redefined(ts, schema)

    def loaded(self, since: int | None = None) -> ShardState:
        since = self.since if since is None else since
        known = tuple(self.definitions) if len(self.definitions) > 1 else ()
        empty = ShardState(SHARD, self.schema, Timestamp(0), definitions=known, retention_us=0)
        return asyncio.run(load_shard(self.store, empty, Timestamp(since)))

    def stored_rows(self, name: Source, file: DataFile) -> list[tuple[int, int, dict[str, object]]]:
        """Id, commit and values of the rows of a file, which must still be there."""
        assert self.store.inner.peek(data_path(SHARD, name)), "C5: it can be read"
        if name not in self.read_rows:
            stored = self.stored(name)
            assert file.origins is not None
            versions = [column.to_pylist() for column in version_columns(stored, file.origins)]
            self.read_rows[name] = [*zip(*versions, stored.to_pylist(), strict=True)]
        return self.read_rows[name]

    def rows_of_places(self, places: Iterable[RowPlaces], schema: pa.Schema) -> Rows:
        found: Rows = {}
        for place in places:
            assert place.rows, "a place has a row"
            if isinstance(place, FilePlaces):
                rows = self.stored_rows(place.file.name, place.file)
                chosen = {rows[i][0]: rows[i][2] for i in place.rows}
            else:
                assert place.table.schema.names == schema.names, "C4"
                table = place.table.to_pylist()
                chosen = {place.first_id + i: table[i] for i in place.rows}
            assert found.keys().isdisjoint(chosen), "no row is named twice"
            found |= {
                id_: tuple(row.get(name) for name in schema.names) for id_, row in chosen.items()
            }
        return found

    def rows_of_view(self, view: ShardView) -> Rows:
        places: list[RowPlaces] = [
            FilePlaces(part.file, BitMap64(range(part.row_limit)) - part.deleted)
            for part in view.files
        ]
        for part in view.inline:
            assert part.first_id is not None
            rows = BitMap64(range(part.rows.num_rows)) - part.deleted
            places.append(InlinePlaces(part.source, part.rows, rows, part.first_id))
        return self.rows_of_places(places, view.schema)

    def expected(self, after: int, upto: int) -> list[Told]:
        """The commits that changed something, as the model knows them."""
        names = self.schema_at(upto).names
        told: dict[int, Told] = {}
        for number, row in enumerate(self.rows):
            if row.died != row.born:
                values = tuple(self.values[row.key].get(name) for name in names)
                told.setdefault(row.born, (row.born, {}, {}))[1][number] = values
                if row.died is not None:
                    told.setdefault(row.died, (row.died, {}, {}))[2][number] = values
        return [told[ts] for ts in sorted(told) if after < ts <= upto]

    def told(self, found: Iterable[Change], schema: pa.Schema) -> list[Told]:
        read = self.rows_of_places
        return [(one.ts, read(one.came, schema), read(one.went, schema)) for one in found]

    def check_last_changes(self) -> None:
        """From everywhere to the present."""
        end = self.rows_of_view(self.state.view(Timestamp(self.now)))
        for after in range(self.since, self.now + STEP, STEP):
            self.check_pair(after, self.now, end)

    def check_changes(self) -> None:
        """All pairs of interesting timestamps: commits, cuts, and between them."""
        cuts = {version.cut for version in self.state.versions}
        points = {self.since, self.now + STEP, *cuts, *[cut - 1 for cut in cuts]}
        points |= {ts + more for ts in range(STEP, self.now + STEP, STEP) for more in (-1, 0)}
        asked = sorted(ts for ts in points if ts >= self.since)
        for place, upto in enumerate(asked):
            schema = self.schema_at(upto)
            end = self.rows_of_view(self.state.view(Timestamp(upto), schema=schema))
            for after in asked[: place + 1]:
                self.check_pair(after, upto, end)

    def check_pair(self, after: int, upto: int, end: Rows) -> None:
        schema = self.schema_at(upto)
        found = changes(self.state, Timestamp(after), Timestamp(upto))
        told = self.told(found, schema)
        assert told == self.expected(after, upto), (after, upto)
        begin = self.state.view(Timestamp(after), schema=schema)
        assert folded(self.rows_of_view(begin), told) == end, (after, upto)
        last = last_commit(self.state, Timestamp(after), Timestamp(upto))
        assert last is None or (after < last <= upto and last % STEP == 0), (after, upto)
        assert not told or (last is not None and told[-1][0] <= last), (after, upto)


def folded(rows: Rows, told: Iterable[Told]) -> Rows:
    """C1: what goes was there, with these values; what comes was not."""
    rows = dict(rows)
    for _, came, went in told:
        for id_, values in went.items():
            assert rows.pop(id_) == values
        assert rows.keys().isdisjoint(came)
        rows |= came
    return rows


def play(model: ChangedModel, actions: Iterable[tuple]) -> None:
    for name, *arguments in actions:
        getattr(model, name)(*arguments)
