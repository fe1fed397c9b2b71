"""What the suite of conformance needs of an upstream, for each kind of reader.

A new kind of reader joins by a class here and a line in `tests/conformance/test_slot_reader.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ingest.postgres.fold import fold_changes
from ingest.reader import (
    ReaderFailure,
    ReadLimits,
    SourceBatch,
    SourceProgress,
    SourceReader,
    UpstreamChange,
    UpstreamTable,
)
from tests.ingest.slot_upstream import SlotReader, SlotUpstream
from tests.ingest.upstream_database import UpstreamDatabase

REFERENCE = "public.t"


class Subject(Protocol):
    """An upstream with the table `t (id int primary key, value text)` and one source."""

    def commit(self, writes: Sequence[tuple[int, str | None]]) -> None:
        """One transaction: a value for an id; None deletes."""
        ...

    def contents(self) -> dict[int, str]: ...

    def reader(self) -> SourceReader:
        """A new one of the same source."""
        ...

    def acknowledged(self) -> int | None:
        """Up to where upstream may forget; None if the source has nothing there."""
        ...

    def lose(self) -> None:
        """Upstream forgets what was not acknowledged."""
        ...


class ScriptedSubject:
    def __init__(self) -> None:
        self.upstream = SlotUpstream()

    def commit(self, writes: Sequence[tuple[int, str | None]]) -> None:
        self.upstream.commit(writes)

    def contents(self) -> dict[int, str]:
        return dict(self.upstream.rows)

    def reader(self) -> SourceReader:
        return SlotReader(self.upstream, "slot")

    def acknowledged(self) -> int | None:
        slot = self.upstream.slots.get("slot")
        return None if slot is None else slot.acknowledged

    def lose(self) -> None:
        self.upstream.lose("slot")


class PostgresSubject:
    """`parted`: every change comes as a part of its transaction."""

    def __init__(self, database: UpstreamDatabase, *, parted: bool = False) -> None:
        self.database = database
        self._part_size = 1 if parted else None
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY, value text)",
            "CREATE PUBLICATION p FOR TABLE t",
        )

    def commit(self, writes: Sequence[tuple[int, str | None]]) -> None:
        with self.database.connection.transaction():
            for id_, value in writes:
                if value is None:
                    self.database.connection.execute("DELETE FROM t WHERE id = %s", (id_,))
                    continue
                self.database.connection.execute(
                    "INSERT INTO t VALUES (%s, %s) "
                    "ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                    (id_, value),
                )

    def contents(self) -> dict[int, str]:
        return dict(self.database.rows("SELECT id, value FROM t"))

    def reader(self) -> SourceReader:
        return self.database.reader(part_size=self._part_size)

    def acknowledged(self) -> int | None:
        return dict(self.database.slots()).get(self.database.slot)

    def lose(self) -> None:
        """A slot that was made again does not have what the old one had."""
        self.database.drop_slots()


class Follower:
    """A table as the coordinator keeps it: a snapshot, then batches."""

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        self.rows: dict[int, str] = {}
        self.batches: list[SourceBatch] = []
        self.parts = 0
        self.tables: list[UpstreamTable] = []
        self.progress = SourceProgress({}, {})

    async def load(self) -> None:
        """Snapshot and start."""
        self.tables = [
            one for one in (await self.reader.inspect()).tables if one.reference == REFERENCE
        ]
        self.progress = await self.reader.prepare(self.tables)
        async for part in self.reader.snapshot():
            rows = part.rows.to_pydict()
            self.rows.update(zip(rows["id"], rows["value"], strict=True))
        await self.start(self.reader, self.progress)

    async def start(self, reader: SourceReader, progress: SourceProgress) -> None:
        self.reader = reader
        identity = await reader.start(progress, self.tables)
        self.progress = SourceProgress(progress.position, identity)

    async def read(self, limits: ReadLimits | None = None) -> SourceBatch:
        batch = await self._read_whole(limits or ReadLimits(wait_ms=20))
        self.batches.append(batch)
        folded = fold_changes(batch.changes.get(REFERENCE, ()), [0])
        if folded.truncated:
            self.rows.clear()
        for key in folded.gone:
            self.rows.pop(key[0], None)
        self.rows.update({key[0]: row.row[1] for key, row in folded.rows.items()})
        self.progress = SourceProgress(batch.upto, self.progress.identity)
        return batch

    async def _read_whole(self, limits: ReadLimits) -> SourceBatch:
        """With all parts of a transaction that has begun; they move nothing."""
        changes: dict[str, list[UpstreamChange]] = {}
        while True:
            part = await self.reader.read(limits)
            self.parts += not part.ends
            for name, some in part.changes.items():
                changes.setdefault(name, []).extend(some)
            if part.ends:
                return replace(part, changes=changes)
            assert part.upto == self.progress.position, "a part moves the position"

    async def catch_up(self, limits: ReadLimits | None = None) -> None:
        """Read all that is committed upstream by now."""
        newest = (await self.reader.newest())["lsn"]
        while self.progress.position["lsn"] < newest:
            await self.read(limits)

    async def read_until_failure(self, limits: ReadLimits) -> ReaderFailure:
        while True:
            try:
                await self.read(limits)
            except ReaderFailure as failure:
                return failure

    def changes(self) -> list[UpstreamChange]:
        """All that were read, in order."""
        return [one for batch in self.batches for one in batch.changes.get(REFERENCE, ())]


def fill(subject: Subject, transactions: int = 6) -> None:
    """Each transaction marks its rows with its number, and has a number of rows of its own."""
    for number in range(transactions):
        rows = range(100 * number, 100 * number + number % 3 + 1)
        subject.commit([(id_, f"{number}") for id_ in rows])


def assert_whole(follower: Follower) -> None:
    """No transaction of `fill` is in two batches."""
    seen: set[str] = set()
    for batch in follower.batches:
        marks = {change.new[1] for rows in batch.changes.values() for change in rows}
        assert not marks & seen, "an upstream transaction was split over two batches"
        seen |= marks
