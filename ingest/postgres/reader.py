"""The reader of PostgreSQL: a snapshot, then the stream of one slot.

    stream ─▶ assembler ─▶ whole transactions ─▶ check of the publication ─▶ SourceBatch

INVARIANTS
  F2  a batch is whole transactions of upstream, in its order, or a part of one that is told to be
      one: it has come from upstream because that has committed it.
  S3  a batch is given only after a check of the publication that began when its last commit had
      come; so is a position without changes.
  I1  a position without changes is one up to which upstream has sent everything, told while no
      transaction was between Begin and Commit, and given after all batches before it.
  S8  decoding holds the loop for a few milliseconds at most.
  A1  nothing is acknowledged that was not given.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from ingest.postgres.libpq_link import LibpqLink, PostgresAddress, quote_text
from ingest.postgres.log_markers import LogMarkers
from ingest.postgres.pgoutput import (
    LogicalMessage,
    MalformedMessage,
    RelationMessage,
    decode_message,
    parse_lsn,
)
from ingest.postgres.publication import (
    PublicationState,
    check_columns,
    check_publication,
    check_stash,
    check_state,
    check_system,
    fetch_state,
    identify_system,
    names_standby,
)
from ingest.postgres.replication_connection import ReplicationStream, StreamData
from ingest.postgres.slots import (
    check_slot,
    create_slot,
    drop_earlier,
    drop_slot,
    drop_unused,
    free_slot,
    slot_of,
)
from ingest.postgres.snapshot import PIECE_SECONDS, begin_snapshot, copy_table
from ingest.postgres.transaction_assembler import (
    RECORD_SIZE_MAX,
    TransactionAssembler,
    UpstreamTransaction,
    batch_of,
)
from ingest.postgres.upstream_tables import (
    PublishedTable,
    fetch_tables,
    fetch_types,
    find_tables,
)
from ingest.reader import (
    Position,
    ReaderFailure,
    ReadLimits,
    SnapshotPart,
    SourceBatch,
    SourceProgress,
    Upstream,
    UpstreamIdentity,
    UpstreamTable,
)

MESSAGE_PREFIX: Final = "meridian"
SLOT_SECONDS: Final = 30.0
_IDLE_SECONDS: Final = 1.0
"""So often an idle publication moves its slot; at once if upstream's commits may wait for us."""
_WATCH_SECONDS: Final = 10.0
_FLUSH_SINCE: Final = 170_000
PART_SIZE: Final = 4 << 20
"""Bytes of a transaction that are taken before its end; their changes take ten times as much.
Smaller: more look-ups of old rows.
"""


class PostgresReader:
    """Reads one publication by one slot; see `ingest.reader.SourceReader`."""

    def __init__(
        self,
        address: PostgresAddress,
        *,
        publication: str,
        slot: str,
        name: str,
        part_size: int | None = None,
        record_max: int = RECORD_SIZE_MAX,
        slot_seconds: float = SLOT_SECONDS,
        temporary: bool = False,
        stash: str = "",
        epoch: int = 0,
    ) -> None:
        """`slot`: what its names begin with; `epoch`: of the coordinator that makes it (F11).
        `temporary`: the slot ends with the connection, and is never read from. `stash`: the system
        that has our positions, if it is a PostgreSQL (S2).
        """
        self._address = address
        self._publication = publication
        self._prefix, self._epoch = slot, epoch
        self._slot = slot_of(slot, epoch)
        self._name = name
        self._part_size = PART_SIZE if part_size is None else part_size
        self._record_max = record_max
        self._slot_seconds = slot_seconds
        self._temporary = temporary
        self._stash, self._system = stash, ""
        self._side: LibpqLink | None = None
        self._exporting: LibpqLink | None = None
        self._exported: tuple[str, str] = ("", "")
        self._wanted: Sequence[tuple[PublishedTable, UpstreamTable]] = ()
        self._stream: ReplicationStream | None = None
        self._markers = LogMarkers()
        self._tables: Mapping[int, UpstreamTable] = {}
        self._known = PublicationState("", {}, "")
        self._assembler = TransactionAssembler({}, {}, after=0)
        self._forget(0)

    def _forget(self, position: int) -> None:
        """The state of a stream that begins there."""
        self._given = position
        self._newest = 0
        self._idle = position
        self._idle_due = False
        self._idle_at = 0.0
        self._checked_at = 0.0
        self._tidied_at = 0.0
        self._synchronous = True
        self._ready: list[UpstreamTransaction] = []
        self._failure: ReaderFailure | None = None

    async def _side_link(self) -> LibpqLink:
        if self._side is None or self._side.closed:
            self._side = await LibpqLink.connect(self._address, f"{self._name}_watch")
        return self._side

    # ---------------------------------------------------------------- inspect, prepare, snapshot

    async def inspect(self) -> Upstream:
        """See the contract. Tables that cannot be read are told with their obstacle."""
        side = await self._side_link()
        await check_publication(side, self._publication)
        published = await fetch_tables(side, self._publication)
        state = await fetch_state(side, self._publication, ())
        replication = await LibpqLink.connect(self._address, self._name, replication=True)
        try:
            system = await identify_system(replication)
        finally:
            replication.close()
        identity = {
            "system": system.system,
            "timeline": str(system.timeline),
            "database": system.database,
        }
        check_stash(self._stash, system.system, state.synchronous, self._name)
        notices = (_SYNCHRONOUS,) if names_standby(state.synchronous, self._name) else ()
        return Upstream(identity, tuple([one.table for one in published.values()]), notices)

    async def prepare(self, tables: Sequence[UpstreamTable]) -> SourceProgress:
        """A slot with an exported snapshot. The publication is looked at before it is made."""
        await self.close()
        side = await self._side_link()
        await check_publication(side, self._publication)
        published = await fetch_tables(side, self._publication)
        found = find_tables(published, tables, self._publication)
        state = await fetch_state(side, self._publication, list(found))
        self._slot = slot_of(self._prefix, self._epoch)
        if self._temporary:
            await drop_slot(side, self._slot)
        else:
            await drop_earlier(side, self._prefix, self._epoch)
        self._exporting = await LibpqLink.connect(self._address, self._name, replication=True)
        system = await identify_system(self._exporting)
        check_stash(self._stash, system.system, state.synchronous, self._name)
        self._exported = await create_slot(
            self._exporting,
            side,
            self._slot,
            seconds=self._slot_seconds,
            temporary=self._temporary,
        )
        self._wanted = list(zip(found.values(), tables, strict=True))
        identity = {
            "system": system.system,
            "timeline": str(system.timeline),
            "database": system.database,
            **_publication_identity(state, {oid: one.table for oid, one in found.items()}),
        }
        if not self._temporary:
            identity[_SLOT] = self._slot
        return SourceProgress({"lsn": parse_lsn(self._exported[0])}, identity)

    async def snapshot(self) -> AsyncIterator[SnapshotPart]:
        """See the contract. The connection that exports stays as it is until the copy has begun."""
        position, name = self._exported
        assert name, "prepare comes first"
        link = await LibpqLink.connect(self._address, f"{self._name}_copy")
        try:
            await begin_snapshot(link, name)
            for published, table in self._wanted:
                async for part in copy_table(link, published, table, position):
                    yield part
        finally:
            link.close()

    # ---------------------------------------------------------------- start

    async def start(
        self, progress: SourceProgress, tables: Sequence[UpstreamTable]
    ) -> UpstreamIdentity:
        """See the contract; S3 and S5 are checked from the stored identity on."""
        await self.close()
        after = progress.position["lsn"]
        self._forget(after)
        # Before slots had epochs, the name was all of it.
        self._slot = progress.identity.get(_SLOT, self._prefix)
        side = await self._side_link()
        link = await LibpqLink.connect(self._address, self._name, replication=True)
        try:
            system = await check_system(link, progress.identity, after)
            await check_slot(side, self._slot)
            found = await self._find_tables(progress.identity, tables)
            self._known = await self._known_state(progress.identity, found, after)
            self._system = system.system
            check_stash(self._stash, system.system, self._known.synchronous, self._name)
            await free_slot(side, self._slot)
            self._stream = await ReplicationStream.open(link, self._slot, self._publication, after)
            await self._drop_unused(side)
        except BaseException:
            link.close()
            raise
        self._tables = found
        self._assembler = TransactionAssembler(
            found,
            await fetch_types(side),
            after=after,
            later={name: place["lsn"] for name, place in progress.later.items()},
            skip=progress.skip,
            record_max=self._record_max,
        )
        return {
            "system": system.system,
            "timeline": str(system.timeline),
            "database": system.database,
            _SLOT: self._slot,
            **_publication_identity(self._known, found),
        }

    async def _drop_unused(self, side: LibpqLink) -> None:
        """F11. Whoever was deposed may still make one."""
        self._tidied_at = asyncio.get_running_loop().time()
        await drop_unused(side, self._prefix, self._epoch, self._slot)

    async def _find_tables(
        self, identity: UpstreamIdentity, tables: Sequence[UpstreamTable]
    ) -> dict[int, UpstreamTable]:
        """By oid: as they were known, whatever their names are by now; new ones by their names."""
        found: dict[int, UpstreamTable] = {}
        for table in tables:
            text = identity.get(_TABLE + table.reference)
            if text is not None:
                found[int(text.partition(" ")[0])] = table
        new = [table for table in tables if _TABLE + table.reference not in identity]
        if new:
            published = await fetch_tables(await self._side_link(), self._publication)
            oids = find_tables(published, new, self._publication)
            found |= dict(zip(oids, new, strict=True))
        return found

    async def _known_state(
        self, identity: UpstreamIdentity, found: Mapping[int, UpstreamTable], after: int
    ) -> PublicationState:
        """What is compared from here on, after it was compared with what was stored."""
        now = await fetch_state(await self._side_link(), self._publication, list(found))
        stored: dict[int, str] = {}
        for oid, table in found.items():
            text = identity.get(_TABLE + table.reference)
            stored[oid] = now.tables.get(oid, "") if text is None else text.partition(" ")[2]
        publication = identity.get(_PUBLICATION, now.publication)
        known = PublicationState(publication, stored, now.synchronous)
        check_state(self._publication, known, now, _names(found), after, _keyed(found))
        await check_columns(await self._side_link(), known, now, found, after)
        return known

    # ---------------------------------------------------------------- read

    async def read(self, limits: ReadLimits) -> SourceBatch:
        """See the contract."""
        if self._failure is not None and not self._ready:
            raise self._failure
        try:
            await self._gather(limits)
            if not self._ready and (self._has_part() or self._assembler.is_parted):
                # It moves nothing, so the publication is looked at with the end.
                return batch_of(
                    [self._assembler.take_part()], self._given, self._newest, ends=False
                )
            taken = self._take(limits.size)
            upto = taken[-1].end_lsn if taken else self._given
            if not self._ready and self._failure is None:
                upto = max(upto, self._idle)
            await self._watch(upto)
        except ReaderFailure as failure:
            self._failure = failure
            self._ready = []
            raise
        self._given = upto
        return batch_of(taken, upto, self._newest)

    async def _gather(self, limits: ReadLimits) -> None:
        """Until something can be given, or the time is over. What has come is a batch: no waiting
        for more.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limits.wait_ms / 1000
        while self._failure is None and self._size() < limits.size and not self._has_part():
            if await self._take_piece(loop):
                await asyncio.sleep(0)
                continue
            now = loop.time()
            idle_left = self._idle_left(now)
            if self._ready or idle_left <= 0 or now >= deadline:
                break
            await self._streaming().wait(min(deadline - now, idle_left))

    def _has_part(self) -> bool:
        return self._assembler.open_size >= self._part_size

    def _streaming(self) -> ReplicationStream:
        if self._stream is None:
            raise ReaderFailure("08003", "the source is closed")
        return self._stream

    def _size(self) -> int:
        return sum(one.size for one in self._ready)

    def _idle_left(self, now: float) -> float:
        """How long a position without changes waits before it is given."""
        if self._idle <= self._given or self._assembler.is_parted:
            return float("inf")
        if self._idle_due or self._synchronous:
            return 0
        return self._idle_at + _IDLE_SECONDS - now

    async def _take_piece(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Take messages that are here, for a few milliseconds; whether there are more (S8)."""
        stream = self._streaming()
        began = loop.time()
        try:
            while loop.time() - began < PIECE_SECONDS and not self._has_part():
                event = stream.next_event()
                if event is None:
                    return False
                if isinstance(event, StreamData):
                    await self._take_message(event.body)
                elif not self._assembler.is_open:
                    # I1
                    self._idle = max(self._idle, event.wal_end)
        except ReaderFailure as failure:
            if not self._ready:
                raise
            # What came before it is given first.
            self._failure = failure
        return self._failure is None

    async def _take_message(self, body: bytes) -> None:
        try:
            message = decode_message(body)
        except MalformedMessage as error:
            raise ReaderFailure("08P01", f"upstream: {error}", broken=True) from None
        if isinstance(message, RelationMessage) and self._assembler.needs_types(message):
            self._assembler.types = await fetch_types(await self._side_link())
        if isinstance(message, LogicalMessage) and message.prefix == MESSAGE_PREFIX:
            self._reach(self._markers.came(message.content))
        done = self._assembler.feed(message, len(body))
        if done is None:
            return
        if self._ready and not done.changes and not done.errors:
            self._ready[-1].end_lsn = done.end_lsn
        else:
            self._ready.append(done)

    def _reach(self, marker: int) -> None:
        """A message of ours came back: all that was committed before it is here."""
        if marker > self._idle:
            self._idle, self._idle_due = marker, True

    def _take(self, size: int) -> list[UpstreamTransaction]:
        """Whole transactions within the size, at least one (F2)."""
        taken: list[UpstreamTransaction] = []
        total = 0
        while self._ready and (not taken or total + self._ready[0].size <= size):
            total += self._ready[0].size
            taken.append(self._ready.pop(0))
        return taken

    async def _watch(self, upto: int) -> None:
        """S3. Begins after the last commit has come; without news, every few seconds."""
        now = asyncio.get_running_loop().time()
        if upto == self._given and now - self._checked_at < _WATCH_SECONDS:
            return
        side = await self._side_link()
        if now - self._tidied_at >= _WATCH_SECONDS:
            await self._drop_unused(side)
        state = await fetch_state(side, self._publication, list(self._tables))
        names, keyed = _names(self._tables), _keyed(self._tables)
        check_state(self._publication, self._known, state, names, self._given, keyed)
        await check_columns(side, self._known, state, self._tables, self._given)
        check_stash(self._stash, self._system, state.synchronous, self._name)
        self._synchronous = bool(state.synchronous)
        self._newest = state.newest
        self._checked_at = self._idle_at = now
        self._idle_due = False

    # ---------------------------------------------------------------- the others

    async def acknowledge(self, upto: Position) -> None:
        """See the contract (A1)."""
        assert upto["lsn"] <= self._given, "A1: acknowledged is what was given"
        if self._stream is not None:
            self._stream.acknowledge(upto["lsn"])

    async def newest(self) -> Position:
        """A message is written into upstream's log. When it comes back, all before it is here."""
        side = await self._side_link()
        flush = ", true" if side.server_version >= _FLUSH_SINCE else ""
        transactional = "false" if flush else "true"
        with self._markers.asking():
            ((content, lsn),) = await side.query(
                "WITH m AS MATERIALIZED (SELECT "
                f"{quote_text(self._slot)} || '/' || gen_random_uuid() AS content) "
                f"SELECT content, pg_logical_emit_message({transactional}, "
                f"'{MESSAGE_PREFIX}', content{flush}) FROM m"
            )
            position = parse_lsn(lsn or "0/0")
            has_come = self._markers.written(content or "", position)
        if has_come:
            self._reach(position)
            if self._stream is not None:
                self._stream.wake()
        return {"lsn": position}

    async def close(self) -> None:
        """See the contract. What waits in `read` fails with 08003."""
        for link in (self._side, self._exporting):
            if link is not None:
                link.close()
        if self._stream is not None:
            self._stream.close()
        self._side = self._exporting = self._stream = None
        self._exported = ("", "")

    async def release(self) -> None:
        """See the contract (F8)."""
        await self.close()
        side = await LibpqLink.connect(self._address, f"{self._name}_watch")
        try:
            await drop_slot(side, self._slot)
        finally:
            side.close()


_TABLE: Final = "table "
_PUBLICATION: Final = "publication"
_SLOT: Final = "slot"
_SYNCHRONOUS: Final = (
    "upstream names this source in synchronous_standby_names: its commits wait until the source "
    "has loaded; name it there only after that"
)


def _publication_identity(
    state: PublicationState, tables: Mapping[int, UpstreamTable]
) -> dict[str, str]:
    return {_PUBLICATION: state.publication} | {
        _TABLE + table.reference: f"{oid} {state.tables.get(oid, '')}"
        for oid, table in tables.items()
    }


def _names(tables: Mapping[int, UpstreamTable]) -> dict[int, str]:
    return {oid: table.reference for oid, table in tables.items()}


def _keyed(tables: Mapping[int, UpstreamTable]) -> set[int]:
    return {oid for oid, table in tables.items() if table.key}
