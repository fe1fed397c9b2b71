"""The upstream of the simulation's source: a log of transactions, and readers that fail.

    produce ──▶ log ──▶ ScriptedReader.snapshot, read ──▶ the server
                 ▲                                            │
                 └──────── forgotten up to here ◀─ acknowledge

It outlives the servers. What is acknowledged, it forgets: who reads there again has lost it. Each
transaction is one of the history: it begins when it is produced, and ends when it is acknowledged.
So the judges say whether every strict read that begins afterwards sees it (F3 of `core/sources`).

INVARIANTS
  U1  nothing is acknowledged that was not given, and nothing is read that is forgotten (F3, F4).
  U2  a reader gives whole transactions, in their order, from where it was started (F6, F9). Some
      come in parts, as large ones do.
  U3  what stands here for a source is gone some time after its DROP (F8); the workload looks.
  U4  a slot has one reader: who starts takes it from whoever had it. It has nothing from before it
      was made.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from ingest.reader import (
    UNCHANGED,
    ChangeKind,
    ChangeRow,
    Position,
    ReaderFailure,
    ReadLimits,
    SnapshotPart,
    SourceBatch,
    SourceProgress,
    Upstream,
    UpstreamChange,
    UpstreamIdentity,
    UpstreamTable,
)
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from storage.errors import StorageError
from tests.resilience.history.events import Operation, Recorder

OFFSET = "offset"
ROWS_OF_PART = 3
"""Of a snapshot: it has several parts, and may fail between them."""
PART_MAX = 4
"""Changes of a part: a large transaction has several parts."""
IDENTITY: UpstreamIdentity = {"log": "1"}
MAIN = "f"
"""The source whose acknowledgements the history has; of others it is only known that they are."""
JOINS = "joins"
"""A slot that ends with its reader."""
SCRIPTED = "scripted"
"""The kind of upstream that a source of the simulation names."""

Fault = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class UpstreamTransaction:
    """Changes by table, and the process of the history that stands for it."""

    changes: Mapping[str, Sequence[UpstreamChange]]
    process: int


@dataclass(slots=True)
class ScriptedSlot:
    """It has the log from `begins` on. `holder`: who reads by it (U4)."""

    begins: int
    holder: "ScriptedReader | None" = None


class ScriptedUpstream:
    """See the module."""

    def __init__(
        self,
        rng: random.Random,
        found: Callable[[str, str], None],
        *,
        fails_within: float = 0.0,
    ) -> None:
        """`fails_within`: share of the reads within a transaction that fail, in any weather."""
        self.random = rng
        self.fails_within = fails_within
        self.found = found
        self.recorder: Recorder | None = None
        self.log: list[UpstreamTransaction] = []
        self.rows: dict[str, list[ChangeRow]] = {}
        self.forgotten = 0
        self.slots: dict[str, ScriptedSlot] = {}
        """What stands here for sources, by their ids, generations and epochs."""
        self.given = 0
        self._drained: asyncio.Event | None = None

    def produce(
        self,
        changes: Mapping[str, Sequence[UpstreamChange]],
        operations: Sequence[Operation],
        process: int,
    ) -> None:
        """A transaction commits upstream."""
        assert self.recorder is not None, "a run records"
        self.log.append(UpstreamTransaction(changes, process))
        for name, some in changes.items():
            self.rows[name] = changed_rows(self.rows.get(name, []), some)
        self.recorder.invoke(process, *operations)

    def acknowledge(self, upto: int) -> None:
        """The server has it: who reads from now on sees it."""
        assert self.recorder is not None, "a run records"
        if upto > self.given:
            self.found("acknowledged", f"{upto} was acknowledged, and {self.given} given")
        for transaction in self.log[self.forgotten : upto]:
            self.recorder.ok(transaction.process)
        self.forgotten = max(self.forgotten, upto)
        if self._drained is not None and self.forgotten == len(self.log):
            self._drained.set()

    async def is_drained(self, longest_s: float) -> bool:
        """Whether everything is acknowledged, after some time."""
        if self.forgotten < len(self.log):
            self._drained = asyncio.Event()
            try:
                async with asyncio.timeout(longest_s):
                    await self._drained.wait()
            except TimeoutError:
                return False
        return self.forgotten == len(self.log)

    def readers(self, fault: Fault, leads: Callable[[], bool]) -> "ScriptedReaders":
        """The readers of a server whose calls `fault` delays, fails or never answers."""
        return ScriptedReaders(self, fault, leads)


@dataclass(frozen=True, slots=True)
class ScriptedReaders:
    """Implements SourceReaders."""

    upstream: ScriptedUpstream
    fault: Fault
    leads: Callable[[], bool]

    async def reader(
        self,
        source: SourceDefinition,
        _connection: ConnectionDefinition | None,
        *,
        joins: bool = False,
        epoch: int = 0,
    ) -> "ScriptedReader":
        """See SourceReaders."""
        assert source.connector == SCRIPTED, "the simulation has no other upstream"
        slot = JOINS if joins else generation_of(source)
        return ScriptedReader(self.upstream, self.fault, self.leads, slot, epoch)

    async def release(
        self, source: SourceDefinition, connection: ConnectionDefinition | None
    ) -> None:
        """See SourceReaders."""
        for generation in range(1, source.generation + 1):
            older = replace(source, generation=generation)
            await (await self.reader(older, connection, epoch=_LAST)).release()


_LAST = 1 << 60
"""Later than all epochs of a run."""


def generation_of(source: SourceDefinition) -> str:
    """What the names of its slots begin with."""
    return f"{source.feed_id}.{source.generation}"


def changed_rows(rows: Sequence[ChangeRow], changes: Sequence[UpstreamChange]) -> list[ChangeRow]:
    """The rows of a table after some changes, one by one. An old row has the first column alone, if
    that is the key.
    """
    found = list(rows)
    for change in changes:
        old, new = change.old, change.new
        if change.kind is ChangeKind.TRUNCATE:
            found = []
            continue
        if change.kind is ChangeKind.UPDATE and old is None:
            old = new
        before = None
        if old is not None:
            at = next(n for n, row in enumerate(found) if _is_same(old, row, change))
            before = found.pop(at)
        if new is not None:
            found.append(
                tuple(
                    [
                        before[n] if value is UNCHANGED and before is not None else value
                        for n, value in enumerate(new)
                    ]
                )
            )
    return found


def _is_same(old: ChangeRow, row: ChangeRow, change: UpstreamChange) -> bool:
    if change.old is None:
        return old[0] == row[0]
    return all(value is UNCHANGED or value == own for value, own in zip(old, row, strict=True))


class ScriptedReader:
    """Implements SourceReader."""

    def __init__(
        self,
        upstream: ScriptedUpstream,
        fault: Fault,
        leads: Callable[[], bool],
        slot: str,
        epoch: int,
    ) -> None:
        self._upstream = upstream
        self._prefix, self._epoch = slot, epoch
        self._slot = f"{slot}.{epoch}"
        self._is_main = slot.partition(".")[0] == MAIN
        self._fault = fault
        self._leads = leads
        self._next = 0
        self._taken = 0
        """Changes of the next transaction that were given as parts of it."""
        self._started = False
        self._closed = False
        self._snapshot: dict[str, list[ChangeRow]] = {}
        self._tables: set[str] = set()
        self._later: Mapping[str, Position] = {}

    async def inspect(self) -> Upstream:
        """See SourceReader."""
        await self._may_fail("before source.inspect")
        return Upstream(IDENTITY, ())

    async def prepare(self, tables: Sequence[UpstreamTable]) -> SourceProgress:
        """See SourceReader."""
        await self._may_fail("before source.prepare")
        if self._prefix != JOINS:
            self._remove(lambda of, epoch: of == self._generation and epoch <= self._epoch)
            self._upstream.slots[self._slot] = ScriptedSlot(len(self._upstream.log))
        await self._may_fail("after source.prepare")
        self._next = len(self._upstream.log)
        rows = self._upstream.rows
        self._snapshot = {one.reference: list(rows.get(one.reference, [])) for one in tables}
        return SourceProgress({OFFSET: self._next}, {**IDENTITY, "slot": self._slot})

    async def snapshot(self) -> AsyncIterator[SnapshotPart]:
        """See SourceReader."""
        for name, rows in self._snapshot.items():
            for first in range(0, len(rows), ROWS_OF_PART):
                await self._may_fail("during source.snapshot")
                part = rows[first : first + ROWS_OF_PART]
                columns = [pa.array(column, pa.int64()) for column in zip(*part, strict=True)]
                yield SnapshotPart(
                    name, pa.RecordBatch.from_arrays(columns, names=["key", "position", "value"])
                )
        if self._is_main:
            self._upstream.given = max(self._upstream.given, self._next)

    async def start(
        self, progress: SourceProgress, tables: Sequence[UpstreamTable]
    ) -> UpstreamIdentity:
        """See SourceReader."""
        await self._may_fail("before source.start")
        self._slot = progress.identity["slot"]
        slot = self._upstream.slots.get(self._slot)
        if slot is None:
            if self._leads() and not self._closed:
                self._upstream.found("slot", f"{self._slot} is started, and is not there")
            raise ReaderFailure("42704", "the slot is gone", broken=True)
        slot.holder = self
        self._next, self._taken, self._started = progress.position[OFFSET], 0, True
        self._tables = {one.reference for one in tables}
        self._later = progress.later
        self._check_not_forgotten()
        self._tidy()
        return {**IDENTITY, "slot": self._slot}

    def _tidy(self) -> None:
        """Whoever was deposed has made slots that nobody uses."""
        self._remove(lambda *made: made < (self._generation, self._epoch))

    @property
    def _generation(self) -> int:
        return int(self._prefix.rpartition(".")[2])

    def _remove(self, is_meant: Callable[[int, int], bool]) -> None:
        family = self._prefix.rpartition(".")[0]
        for name in list(self._upstream.slots):
            source, generation, epoch = name.split(".")
            if source == family and is_meant(int(generation), int(epoch)) and not self._uses(name):
                del self._upstream.slots[name]

    def _uses(self, name: str) -> bool:
        return self._started and name == self._slot

    def _holds(self) -> bool:
        slot = self._upstream.slots.get(self._slot)
        return slot is not None and slot.holder is self

    async def read(self, limits: ReadLimits) -> SourceBatch:
        """See SourceReader; sometimes it stalls."""
        upstream, rng = self._upstream, self._upstream.random
        if not self._started:
            # An exception would only stall the source (F10).
            upstream.found("contract", "a reader reads that nobody has started")
        await self._may_fail("before source.read")
        if self._taken and rng.random() < upstream.fails_within:
            raise ReaderFailure("08006", "the connection is lost within a transaction")
        self._check_holds()
        self._tidy()
        if rng.random() < 0.05:
            await asyncio.sleep(rng.random() * 0.2)
        elif self._next >= len(upstream.log):
            await asyncio.sleep(min(limits.wait_ms / 1_000, rng.random() * 0.02))
        self._check_not_forgotten()
        if self._next < len(upstream.log) and (self._taken or rng.random() < 0.3):
            end = self._next + 1
            some = self._changes_of(self._next)[self._taken :]
            part = some[: rng.randint(0, min(len(some), PART_MAX))]
            ends = len(part) == len(some) and rng.random() < 0.7
        else:
            end = min(len(upstream.log), self._next + rng.choice((1, 1, 2, 5)))
            part = [one for at in range(self._next, end) for one in self._changes_of(at)]
            ends = True
        changes: dict[str, list[UpstreamChange]] = {}
        for name, change in part:
            changes.setdefault(name, []).append(change)
        await self._may_fail("after source.read")
        self._taken = 0 if ends else self._taken + len(part)
        self._next = max(self._next, end if ends else 0)
        if self._is_main:
            upstream.given = max(upstream.given, self._next)
        return SourceBatch({OFFSET: self._next}, changes, ends=ends)

    def _changes_of(self, at: int) -> Sequence[tuple[str, UpstreamChange]]:
        """Of a transaction, those that are wanted."""
        return [
            (name, change)
            for name, some in self._upstream.log[at].changes.items()
            if self._wants(name, at)
            for change in some
        ]

    def _check_holds(self) -> None:
        """U4."""
        if not self._holds():
            raise ReaderFailure("08006", "another reader has the slot")

    def _check_not_forgotten(self) -> None:
        """U1. A reader that is closed, or whose coordinator is deposed, may be behind. So may one
        that has told a position up to which it had no rows of these tables.
        """
        if not self._is_main or not self._leads() or self._closed:
            return
        has = max(self._upstream.forgotten, self._upstream.slots[self._slot].begins)
        for at in range(self._next, has):
            if any(map(partial(self._wants, at=at), self._upstream.log[at].changes)):
                self._upstream.found("lost", f"read at {self._next}, and {at} is gone")
                return

    def _wants(self, table: str, at: int) -> bool:
        return table in self._tables and at >= self._later.get(table, {OFFSET: 0})[OFFSET]

    async def acknowledge(self, upto: Position) -> None:
        """See SourceReader."""
        await self._may_fail("before source.acknowledge")
        self._check_holds()
        if self._is_main:
            self._upstream.acknowledge(upto[OFFSET])
        await self._may_fail("after source.acknowledge")

    async def newest(self) -> Position:
        """See SourceReader."""
        return {OFFSET: len(self._upstream.log)}

    async def close(self) -> None:
        """See SourceReader; a read that waits goes on, and nobody takes what it gives."""
        self._closed = True

    async def release(self) -> None:
        """See SourceReader."""
        await self._may_fail("before source.release")
        self._started = False
        self._remove(lambda of, epoch: of == self._generation and epoch <= self._epoch)
        await self._may_fail("after source.release")

    async def _may_fail(self, place: str) -> None:
        try:
            await self._fault(place)
        except StorageError as error:
            raise ReaderFailure("08006", str(error)) from error
