"""An upstream in memory with slots, and its reader: the twin of readers that keep one.

The simulation has an upstream of its own, `ScriptedUpstream` (`tests/resilience/sim/upstream.py`):
that one judges what a server shows, this one lets single calls of a reader be looked at.

It has one table, `id int4 primary key, value text`. It may fail on command, forgets what all its
slots have acknowledged, and keeps what it was told.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ingest.reader import (
    ChangeKind,
    Position,
    ReaderFailure,
    ReadLimits,
    SnapshotPart,
    SourceBatch,
    SourceProgress,
    Upstream,
    UpstreamChange,
    UpstreamColumn,
    UpstreamIdentity,
    UpstreamTable,
)
from sql.types.sql_type import INT4, TEXT

TABLE = UpstreamTable(
    "public.t", (UpstreamColumn("id", INT4, not_null=True), UpstreamColumn("value", TEXT)), ("id",)
)
STEP = 10
"""Between the ends of two transactions."""


@dataclass
class HeldSlot:
    acknowledged: int
    holder: SlotReader | None = None


@dataclass
class SlotUpstream:
    """What all its readers see."""

    rows: dict[int, str] = field(default_factory=dict)
    log: list[tuple[int, list[UpstreamChange]]] = field(default_factory=list)
    slots: dict[str, HeldSlot] = field(default_factory=dict)
    forgotten: int = 0
    system: str = "1"
    failures: deque[ReaderFailure] = field(default_factory=deque)
    """Each call of a reader takes one, and fails with it."""
    waiting: list[asyncio.Event] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.log[-1][0] if self.log else self.forgotten

    def commit(self, writes: Sequence[tuple[int, str | None]]) -> None:
        """One transaction: a value for an id; None deletes."""
        changes: list[UpstreamChange] = []
        for id_, value in writes:
            if value is None:
                del self.rows[id_]
                changes.append(UpstreamChange(ChangeKind.DELETE, (id_, None)))
                continue
            kind = ChangeKind.UPDATE if id_ in self.rows else ChangeKind.INSERT
            self.rows[id_] = value
            changes.append(UpstreamChange(kind, None, (id_, value)))
        self.log.append((self.end + STEP, changes))
        for event in self.waiting:
            event.set()

    def lose(self, name: str) -> None:
        """What a slot has not acknowledged."""
        self.forgotten = self.end
        self.log.clear()
        self.slots[name].acknowledged = self.forgotten


class SlotReader:
    """Implements `SourceReader`."""

    def __init__(self, upstream: SlotUpstream, slot: str) -> None:
        self._upstream = upstream
        self._slot = slot
        self._given = 0
        self._is_open = False
        self._failure: ReaderFailure | None = None
        self._came = asyncio.Event()
        self._snapshot: dict[int, str] = {}

    def _maybe_fail(self) -> None:
        if self._upstream.failures:
            raise self._upstream.failures.popleft()

    async def inspect(self) -> Upstream:
        self._maybe_fail()
        return Upstream({"system": self._upstream.system}, (TABLE,))

    async def prepare(self, tables: Sequence[UpstreamTable]) -> SourceProgress:
        self._maybe_fail()
        self._upstream.slots[self._slot] = HeldSlot(self._upstream.end)
        self._snapshot = dict(self._upstream.rows)
        position = {"lsn": self._upstream.end}
        return SourceProgress(position, {"system": self._upstream.system})

    async def snapshot(self) -> AsyncIterator[SnapshotPart]:
        self._maybe_fail()
        columns = {"id": list(self._snapshot), "value": list(self._snapshot.values())}
        schema = pa.schema([("id", pa.int32()), ("value", pa.string())])
        yield SnapshotPart(TABLE.reference, pa.RecordBatch.from_pydict(columns, schema))

    async def start(
        self, progress: SourceProgress, tables: Sequence[UpstreamTable]
    ) -> UpstreamIdentity:
        self._maybe_fail()
        if progress.identity != {"system": self._upstream.system}:
            raise ReaderFailure("55000", "another upstream", broken=True)
        slot = self._upstream.slots.get(self._slot)
        if slot is None:
            raise ReaderFailure("42704", "the slot is gone", broken=True)
        after = progress.position["lsn"]
        if after < self._upstream.forgotten or after > self._upstream.end:
            raise ReaderFailure("55000", "positions are lost", broken=True)
        if slot.holder is not None:
            slot.holder._lose()
        slot.holder = self
        self._given, self._is_open, self._failure = after, True, None
        self._upstream.waiting.append(self._came)
        return progress.identity

    def _lose(self) -> None:
        self._failure = ReaderFailure("08006", "another reader has the slot")
        self._came.set()

    async def read(self, limits: ReadLimits) -> SourceBatch:
        if not self._behind() and self._failure is None:
            self._came.clear()
            try:
                async with asyncio.timeout(limits.wait_ms / 1000):
                    await self._came.wait()
            except TimeoutError:
                pass
        if self._failure is not None:
            raise self._failure
        self._maybe_fail()
        changes: list[UpstreamChange] = []
        taken = 0
        for end, some in self._behind():
            size = 100 * len(some)
            if taken and taken + size > limits.size:
                break
            changes += some
            taken += size
            self._given = end
        by_table = {TABLE.reference: changes} if changes else {}
        return SourceBatch({"lsn": self._given}, by_table, size=taken)

    def _behind(self) -> list[tuple[int, list[UpstreamChange]]]:
        return [one for one in self._upstream.log if one[0] > self._given]

    async def acknowledge(self, upto: Position) -> None:
        assert upto["lsn"] <= self._given, "acknowledged is what was given"
        slot = self._upstream.slots[self._slot]
        slot.acknowledged = max(slot.acknowledged, upto["lsn"])

    async def newest(self) -> Position:
        self._maybe_fail()
        return {"lsn": self._upstream.end}

    async def close(self) -> None:
        if self._is_open:
            self._failure = ReaderFailure("08003", "the source is closed")
            self._came.set()
            self._upstream.waiting.remove(self._came)
            slot = self._upstream.slots.get(self._slot)
            if slot is not None and slot.holder is self:
                slot.holder = None
        self._is_open = False

    async def release(self) -> None:
        await self.close()
        self._upstream.slots.pop(self._slot, None)
