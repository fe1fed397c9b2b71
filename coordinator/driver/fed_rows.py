"""Make a write of a fed table's shard of the changes that its upstream has committed.

    changes ─ folded (S4) ─▶ rows that go: found by key, or by all values ─▶ deletes
                          └▶ rows that come, UNCHANGED taken from ours    ─▶ inline, or staged files

INVARIANTS
  S4  and S5 of `ingest/postgres/fold.py`: the table is then as if the changes were done one by one.
  W1  the view has all that is committed: only the source writes to the table (F5 of
      `core/sources`), one batch after the other.
  W2  no value is made up: one that upstream left out, and that we have not, makes a bad record.
  W3  the values of few rows that go come with the write, for the validation of transactions that
      have read them. Of many nothing is known, which counts as everything.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from compute.access.equal_rows import find_equal_rows
from compute.access.key_index import KeyIndex
from compute.access.key_predicates import NewKeys
from compute.access.located_rows import fetch_located_rows
from compute.access.row_keys import row_keys
from compute.reference.arrow import BatchMaker, to_values
from coordinator.driver.maintenance_effects import RunBlocking
from ingest.postgres.fold import (
    FoldedChanges,
    FoldedKey,
    FoldedRow,
    exact_values,
    fold_bag,
    fold_changes,
)
from ingest.reader import (
    UNCHANGED,
    BadRecord,
    ChangeRow,
    ReaderFailure,
    RecordPlace,
    Unchanged,
    UpstreamChange,
)
from sql.catalog.catalog import Key, Table
from sql.catalog.sources import feed_key
from sql.types.sql_type import Value
from storage.batch import DataFile, RowIdentity, ShardView, WriteBatch, all_rows, bytes_of
from storage.known_rows import KnownRows, OldRows
from storage.types import ShardId, Source, Timestamp

FED_BYTES_MAX: Final = 4 << 20
"""Rows of a batch that go into the txns shard itself. Larger: bigger commits."""

OLD_ROWS_MAX: Final = 1_000
"""Rows that go of which the values are kept (W3)."""

ON_THE_LOOP_MAX: Final = 50
"""Changes that are folded on the loop. Larger: longer stalls; fewer hand-overs to a thread."""


class RowSpooler(Protocol):
    """Rows on their way into staged files."""

    async def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in order."""
        ...

    async def finish(self) -> Sequence[DataFile]:
        """Close the files and make them durable; they count once a commit names them."""
        ...

    async def discard(self) -> None:
        """Remove whatever was written."""
        ...


RowSpool: TypeAlias = Callable[[ShardId, pa.Schema], RowSpooler]


@dataclass(frozen=True, slots=True)
class FedWrite:
    """What a batch does to one shard, and what is known of the rows that go. `errors`: records that
    no row could be made of.
    """

    batch: WriteBatch
    old: tuple[OldRows, ...] = ()
    errors: tuple[BadRecord, ...] = ()


NOTHING_FED: Final = FedWrite(WriteBatch())


class CopiedRows:
    """The rows of a table that a copy brings, in memory as long as they are few."""

    def __init__(self, schema: pa.Schema, spooler: Callable[[], RowSpooler] | None) -> None:
        self._schema = schema
        self._open = spooler
        self._spooler: RowSpooler | None = None
        self._pending: list[pa.RecordBatch] = []
        self._bytes = 0

    async def take(self, rows: pa.RecordBatch) -> None:
        """Rows in the order of the table's columns."""
        taken = pa.RecordBatch.from_arrays(list(rows.columns), schema=self._schema)
        if self._spooler is not None:
            await self._spooler.write(taken)
            return
        self._pending.append(taken)
        self._bytes += bytes_of(taken)
        if self._open is not None and self._bytes > FED_BYTES_MAX:
            self._spooler = self._open()
            pending, self._pending = self._pending, []
            for batch in pending:
                await self._spooler.write(batch)

    async def finish(self) -> WriteBatch:
        """All of them."""
        if self._spooler is not None:
            return WriteBatch(staged=tuple(await self._spooler.finish()))
        if not self._bytes:
            return WriteBatch()
        return WriteBatch(pa.Table.from_batches(self._pending, schema=self._schema))

    async def discard(self) -> None:
        """Remove whatever was staged."""
        if self._spooler is not None:
            await self._spooler.discard()


class FedRows:
    """See the module. `index`: None if nothing is ever looked for."""

    def __init__(
        self,
        index: KeyIndex | None,
        spool: RowSpool | None,
        schema_of: Callable[[Table], pa.Schema],
        run_blocking: RunBlocking,
    ) -> None:
        self._index = index
        self._spool = spool
        self._schema_of = schema_of
        self._run_blocking = run_blocking

    def spooler(self, table: Table) -> RowSpooler | None:
        """Stages rows of a table; None: nothing is staged here."""
        if self._spool is None:
            return None
        return self._spool(ShardId(table.shard), self._schema_of(table))

    def snapshot_of(self, table: Table) -> CopiedRows:
        """Takes the rows of a copy of a table."""
        schema, spool = self._schema_of(table), self._spool
        opened = None if spool is None else partial(spool, ShardId(table.shard), schema)
        return CopiedRows(schema, opened)

    def errors_of(
        self,
        table: Table,
        errors: Sequence[BadRecord],
        names: Mapping[str, str],
        now: Timestamp,
    ) -> WriteBatch:
        """The rows of a source's table of errors. `names`: of the tables, by those upstream."""
        rows: list[tuple[Value, ...]] = [
            (
                now, names.get(one.reference, one.reference), json.dumps(dict(one.place)),
                one.key, one.value, one.code, one.message, None,
            )
            for one in errors
        ]  # fmt: skip
        return WriteBatch(pa.Table.from_batches([self._batch(table, rows)]))

    async def write_of(
        self,
        table: Table,
        changes: Sequence[UpstreamChange],
        view: ShardView | None,
        place: RecordPlace,
    ) -> FedWrite:
        """The write of a table's changes. `view`: of the table, if it needs one; `place`: of the
        batch, for records that turn out to be bad. Raises ReaderFailure.
        """
        write, rows = await self.made_of(table, changes, view, place)
        return await self._with_rows(table, write, rows)

    async def made_of(
        self,
        table: Table,
        changes: Sequence[UpstreamChange],
        view: ShardView | None,
        place: RecordPlace,
    ) -> tuple[FedWrite, pa.RecordBatch]:
        """What `write_of` makes, and apart from it the rows that come."""

        def make() -> tuple[FedWrite, pa.RecordBatch]:
            if view is None:
                return NOTHING_FED, self._batch(table, _inserted(changes))
            return self._changed(table, changes, view, place)

        in_memory = view is None or not view.files
        if in_memory and len(changes) <= ON_THE_LOOP_MAX:
            return make()
        return await self._run_blocking(make)

    async def _with_rows(self, table: Table, write: FedWrite, rows: pa.RecordBatch) -> FedWrite:
        """The write with these rows, inline or staged."""
        if not rows.num_rows:
            return write
        deletes = write.batch.deletes
        spooler = None if bytes_of(rows) <= FED_BYTES_MAX else self.spooler(table)
        if spooler is None:
            batch = WriteBatch(pa.Table.from_batches([rows]), deletes=deletes)
        else:
            await spooler.write(rows)
            batch = WriteBatch(staged=tuple(await spooler.finish()), deletes=deletes)
        return FedWrite(batch, write.old, write.errors)

    def _batch(self, table: Table, rows: Sequence[tuple[Value, ...]]) -> pa.RecordBatch:
        maker = BatchMaker([c.type for c in table.columns], self._schema_of(table))
        try:
            return maker.batch(rows)
        except (ValueError, OverflowError, pa.ArrowException) as error:
            message = f"a row of {table.name} cannot be stored: {error}"
            raise ReaderFailure("22000", message, broken=True) from None

    def _changed(
        self,
        table: Table,
        changes: Sequence[UpstreamChange],
        view: ShardView,
        place: RecordPlace,
    ) -> tuple[FedWrite, pa.RecordBatch]:
        """Blocks if the view has files."""
        key = feed_key(table)
        if key is None:
            return self._changed_bag(table, changes, view)
        folded = fold_changes(changes, key.columns)
        found = self._find(table, key, folded, view)
        deletes = all_rows(view) if folded.truncated else _named(found.values())
        old, ours = self._old_rows(table, view, found, _asked(folded))
        rows, errors = _filled(table, key, folded.rows, ours, place)
        # Rows of which nothing is known are as good as any.
        write = FedWrite(WriteBatch(deletes=deletes), old, tuple(errors))
        return write, self._batch(table, rows)

    def _find(
        self, table: Table, key: Key, folded: FoldedChanges, view: ShardView
    ) -> dict[FoldedKey, RowIdentity]:
        """Where the rows are that go, by their keys."""
        gone = sorted(folded.gone, key=repr)
        if not gone or folded.truncated:
            return {}
        assert self._index is not None, "who feeds tables with keys finds their rows"
        keys = NewKeys.of_values(table, key, [tuple(map(_known, values)) for values in gone])
        located = self._index.locate(view, keys, {}, self._index.files(view, keys))
        names = row_keys(key, keys.given)
        return {
            values: located[name]
            for values, name in zip(gone, names, strict=True)
            if name is not None and name in located
        }

    def _old_rows(
        self,
        table: Table,
        view: ShardView,
        found: Mapping[FoldedKey, RowIdentity],
        asked: set[FoldedKey],
    ) -> tuple[tuple[OldRows, ...], Mapping[FoldedKey, ChangeRow]]:
        """What is known of the rows that go (W3), and the rows with the keys that are asked for."""
        few = len(found) <= OLD_ROWS_MAX
        wanted = [(key, place) for key, place in found.items() if few or key in asked]
        if not wanted:
            return (), {}
        assert self._index is not None, "rows were found with it"
        places = [place for _, place in wanted]
        located = fetch_located_rows(view, places, self._index.read_rows).rows
        old = (OldRows(_named(places), KnownRows.of(located)),) if few else ()
        if not asked:
            return old, {}
        columns = [to_values(located.column(at), c.type) for at, c in enumerate(table.columns)]
        values = zip(*columns, strict=True)
        ours = {key: row for (key, _), row in zip(wanted, values, strict=True) if key in asked}
        return old, ours

    def _changed_bag(
        self, table: Table, changes: Sequence[UpstreamChange], view: ShardView
    ) -> tuple[FedWrite, pa.RecordBatch]:
        folded = fold_bag(changes)
        deletes = all_rows(view) if folded.truncated else {}
        old: tuple[OldRows, ...] = ()
        if folded.gone and not folded.truncated:
            assert self._index is not None, "who feeds tables finds their rows"
            gone = [_whole(row) for row in folded.gone]
            places = find_equal_rows(view, table, gone, exact_values, self._index.read_columns)
            deletes = _named(places)
            if places and len(places) <= OLD_ROWS_MAX:
                located = fetch_located_rows(view, places, self._index.read_rows).rows
                old = (OldRows(_named(places), KnownRows.of(located)),)
        rows = self._batch(table, [_whole(row) for row in folded.rows])
        return FedWrite(WriteBatch(deletes=deletes), old), rows


def _inserted(changes: Sequence[UpstreamChange]) -> list[tuple[Value, ...]]:
    """The rows of changes that are all new rows."""
    return [_whole(change.new) for change in changes if change.new is not None]


def _whole(row: ChangeRow) -> tuple[Value, ...]:
    return tuple([_known(value) for value in row])


def _known(value: "Value | Unchanged") -> Value:
    assert not isinstance(value, Unchanged), "W2: the value was sent"
    return value


def _named(places: Iterable[RowIdentity]) -> dict[Source, BitMap64]:
    deletes: dict[Source, BitMap64] = {}
    for source, row in places:
        deletes.setdefault(source, BitMap64()).add(row)
    return deletes


def _asked(folded: FoldedChanges) -> set[FoldedKey]:
    """The keys of our own rows that give a value to a row that comes (S4)."""
    return {
        one.origin
        for one in folded.rows.values()
        if one.origin is not None and UNCHANGED in one.row
    }


def _filled(
    table: Table,
    key: Key,
    folded: Mapping[FoldedKey, FoldedRow],
    ours: Mapping[FoldedKey, ChangeRow],
    place: RecordPlace,
) -> tuple[list[tuple[Value, ...]], list[BadRecord]]:
    """The rows that come, and records of those of which a value is not known (W2)."""
    rows: list[tuple[Value, ...]] = []
    errors: list[BadRecord] = []
    for one in folded.values():
        row = one.row
        if UNCHANGED in row:
            before = None if one.origin is None else ours.get(one.origin)
            if before is None:
                errors.append(_unknown_value(table, key, row, place))
                continue
            row = tuple(
                [own if new is UNCHANGED else new for new, own in zip(row, before, strict=True)]
            )
        rows.append(_whole(row))
    return rows, errors


def _unknown_value(table: Table, key: Key, row: ChangeRow, place: RecordPlace) -> BadRecord:
    assert table.feed is not None, "it is fed"
    names = {table.columns[at].name: str(row[at]) for at in key.columns}
    message = "upstream left out unchanged values of a row that could not be read before"
    return BadRecord(
        table.feed.reference, place, "55000", message, json.dumps(names).encode(), None
    )
