"""One transaction as a session of a server runs it; its answers are remembered (`memory.py`).

    run:    begin ─▶ snapshot ─▶ body: rows, insert, statement, think .. ─▶ commit
    alone:  begin ─▶ [lease] ─▶ the same; after a conflict from the start, as statements do

INVARIANTS
  H2  `asked_to_commit` is True before the server could have committed anything.
  H3  unless it asked for a stale one, a transaction's first snapshot, and at read committed every
      one, has all commits that were called done before; at the other levels there is only one.
  H4  a single statement always finishes: who has a lease loses to nobody.
  H5  a transaction that was nothing but one insert may go as an insert alone, at its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from compute.access.foreign_key_probe import ForeignKeyProbe
from compute.access.key_predicates import KeyPredicate
from coordinator.core.messages import (
    CatalogChange,
    ConnectionId,
    Insertion,
    Isolation,
    PutReadHold,
    PutTable,
    RefusedReason,
    RemoveTable,
    Snapshot,
)
from coordinator.core.predicates import ReadPredicate
from coordinator.driver.coordination import RequestRefused
from coordinator.transaction.notifications import PendingNotifications
from sql.catalog.catalog import SYSTEM_TIMELINE, NameDependency, ReadHold, Table
from sql.catalog.catalog import Key as TableKey
from storage.batch import DataFile, ShardView
from storage.delta.files import encode_file
from storage.errors import NotFound
from storage.types import Source, Timestamp
from tests.resilience.history.events import Key, Operation
from tests.resilience.sim.memory import Memory
from tests.resilience.sim.rows import (
    COLUMNS,
    Content,
    ContentEncoder,
    KeyRead,
    Row,
    arrow,
    insertion,
    number_of,
    old_rows,
    table_of,
    timeline_of,
)
from tests.resilience.sim.server import Server
from tests.resilience.sim.world import Broken, World


@dataclass(slots=True)
class Result:
    """How a transaction went: what it was told, and its timestamp, if it has a place in the order
    that real time is part of.
    """

    operations: tuple[Operation, ...]
    ts: Timestamp | None


NOBODYS = -1
"""A value that no transaction ever commits."""

STRICT = Isolation.STRICT_SERIALIZABLE

ATTEMPTS_MAX = 10
"""As the server's default."""

Body = Callable[["Session"], Awaitable[tuple[Operation, ...]]]


class Session:
    """See the module. One object for each transaction."""

    def __init__(
        self,
        world: World,
        server: Server,
        memory: Memory,
        owner: int,
        isolation: Isolation = STRICT,
        *,
        timeline: str = SYSTEM_TIMELINE.name,
        staleness_us: int | None = None,
    ) -> None:
        self.world = world
        self.random = world.random
        self.asked_to_commit = False
        self.server = server
        self.owner = owner
        self._clock = server.clock
        self._driver = server.driver
        self._memory = memory
        self._owner = ConnectionId(owner)
        self._isolation = isolation
        self._timeline = timeline
        self._staleness_us = staleness_us
        self._staged: list[DataFile] = []
        self._begin()

    def _begin(self) -> None:
        self._written: set[str] = set()
        self._used: set[str] = set()
        self._savepoints = 0
        self._least = Timestamp(0)
        self._steps = 0
        self._insert: tuple[Table, Sequence[Content]] | None = None
        self._names: tuple[NameDependency, ...] = ()
        self._snapshot: Snapshot | None = None
        self._pending = PendingNotifications(self._driver.notifications.queue.bytes_max)
        self._txn = self._driver.begin(
            self._owner, isolation=self._isolation, staleness_us=self._staleness_us
        )

    async def run(self, body: Body, *, alone: bool = False) -> Result:
        """The whole transaction."""
        try:
            return await (self._alone(body) if alone else self._once(body))
        finally:
            self._driver.disconnected(self._owner)

    async def _once(self, body: Body) -> Result:
        await self.look()
        told = await body(self)
        self.asked_to_commit = True
        ts = await self._commit()
        self.expect(ts >= self._least, "advance", f"to {self._least} ended at {ts}")
        if self._written:
            self._memory.acknowledge(self._timeline, ts)
        # One that only reads and advances is a write to the server, which may put it before others
        # of the same timestamp; to the judge by timestamps it would be a read, after all of them.
        ordered = self._written or (self._isolation is STRICT and not self._least)
        return Result(told, ts if ordered else None)

    async def _commit(self) -> Timestamp:
        pending = self._pending.changes()
        bare = self._steps == 1 and self._timeline == SYSTEM_TIMELINE.name and pending is None
        if bare and self._insert is not None and self.random.random() < 0.5:
            return await self._insert_alone(*self._insert)
        return await self._driver.commit(self._txn, pending)

    async def _insert_alone(self, table: Table, content: Sequence[Content]) -> Timestamp:
        """As a session does with an INSERT that it has bound before (H5)."""
        self._driver.abort(self._txn)
        self.world.tally.inserted_alone += 1
        return await self._driver.insert(
            Insertion(table, content, 24, ContentEncoder(table), self._names)
        )

    async def _alone(self, body: Body) -> Result:
        """Start again after a conflict, with a lease of everything that was touched (H4)."""
        leased: list[Table] = []
        for _ in range(ATTEMPTS_MAX):
            if leased:
                await self._driver.lease(self._txn, leased)
            try:
                return await self._once(body)
            except RequestRefused as refused:
                if refused.reason not in (RefusedReason.CONFLICT, RefusedReason.STALE):
                    raise
                lost = leased and refused.reason is RefusedReason.CONFLICT
                self.expect(not lost, "lease", f"{refused} in spite of the lease")
                leased = [self.table(name) for name in sorted(self._used)]
            self.asked_to_commit = False
            self._driver.abort(self._txn)
            self._begin()
        self.world.found("unfinished", f"after {ATTEMPTS_MAX} attempts")
        raise Broken

    # --- what bodies use ---------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The transaction's timestamp and the catalog at it, with its own DDL."""
        assert self._snapshot is not None, "X1: a session looks first"
        return self._snapshot

    @property
    def memory(self) -> Memory:
        """What all sessions of the run were told."""
        return self._memory

    async def look(self) -> None:
        """Take the snapshot, or see it with own DDL; at read committed take another one (H3)."""
        before, done = self._snapshot, self._memory.acknowledged(self._timeline)
        self._snapshot = await self._driver.snapshot(self._txn)
        if self._timeline != SYSTEM_TIMELINE.name:
            self._snapshot = await self._driver.snapshot(self._txn, timeline=self._timeline)
        ts = self._snapshot.ts
        if before is not None and self._isolation is not Isolation.READ_COMMITTED:
            self.expect(ts == before.ts, "moved", f"from {before.ts} to {ts}")
        elif self._staleness_us is None and not self.world.stormy.succession:
            # Of two coordinators the old one promises real time to strict reads only.
            self.expect(ts >= done, "stale", f"reads at {ts}, and {done} was done before")

    async def think(self) -> None:
        """Sometimes, time passes."""
        if self.random.random() < 0.4:
            await asyncio.sleep(self.random.random() * 0.012)

    def table(self, name: str) -> Table:
        """As the snapshot has it."""
        return self.snapshot.catalog.tables["public", name]

    async def rows(self, *keys: Key) -> list[list[Row]]:
        """The rows of some keys, read in one scan, in the order of their positions."""
        self._steps += 1
        return await self._rows_at(self.snapshot, keys)

    async def required(self, position: int, *keys: Key) -> list[list[Row]]:
        """Rows of some keys of one table, as foreign keys look for them: whether there are some
        with this position is looked at again by the commit, at every level.
        """
        self._steps += 1
        predicate = ForeignKeyProbe(self._keys(keys[0], 1, position))
        return await self._rows_at(self.snapshot, keys, by=predicate)

    async def claimed(self, key: Key) -> bool:
        """Whether a key that is to be unique is taken; the commit looks again, at every level."""
        self._steps += 1
        predicate = self._keys(key, 0, number_of(key))
        (rows,) = await self._rows_at(self.snapshot, [key], by=predicate)
        return bool(rows)

    def _keys(self, key: Key, column: int, value: int) -> KeyPredicate:
        constraint = TableKey("looked_for", (column,))
        return KeyPredicate(self.table(table_of(key)), constraint, frozenset({(value,)}))

    async def look_back(self, ts: Timestamp, *keys: Key) -> None:
        """Read at another timestamp, as far as the tables were there; without own writes."""
        self._steps += 1
        snapshot = await self._driver.snapshot(self._txn, as_of=ts, timeline=self._timeline)
        known = [key for key in keys if ("public", table_of(key)) in snapshot.catalog.tables]
        await self._rows_at(snapshot, known, past=True)
        for key in known:
            self._memory.travelled(ts, key)
        self.world.tally.asked_again += len(known)

    def advance(self, by: int) -> None:
        """The commit moves a timeline without a clock so far ahead."""
        self._steps += 1
        self._least = Timestamp(self.snapshot.ts + by)
        self._driver.advance(self._txn, self._timeline, self._least)

    async def hold(self, name: str, ts: Timestamp | None) -> None:
        """CREATE READ HOLD, at the present if it is not said otherwise."""
        held = await self._driver.hold(self._txn, self._timeline, ts)
        await self.define(PutReadHold(ReadHold(name, self._timeline, held)))

    async def insert(
        self, key: Key, *rows: tuple[int, int], instead_of: Sequence[Row] = ()
    ) -> None:
        """Write rows (position, value) of a key, and delete others."""
        if self.random.random() < 0.08:
            self._change_your_mind(key, instead_of)
        content = [(number_of(key), position, value) for position, value in rows]
        if content and self.random.random() < 0.08:
            await self._write_staged(key, content, instead_of)
        else:
            self._write(key, content, instead_of)

    async def _write_staged(
        self, key: Key, content: Sequence[Content], instead_of: Sequence[Row]
    ) -> None:
        """As a large INSERT does: a file of its own, made durable before the commit names it."""
        name = table_of(key)
        self._steps += 1
        encoded = encode_file(arrow(self.table(name), content), "part")
        # Named as engines name theirs, so that vacuum takes it for one (Y3).
        number = Source(f"part-{self._owner:024x}-{len(self._staged):05d}.parquet")
        file = replace(encoded.file, name=number)
        self._staged.append(file)
        place = f"{self.table(name).shard}/{file.name}"
        self._written.add(name)
        self._used.add(name)
        self.world.store.write_unsynced(place, encoded.content)
        await asyncio.sleep(self.random.random() * 0.01)
        await self.world.store.sync([place])
        batch = replace(insertion(self.table(name), [], instead_of), staged=(file,))
        self._driver.write(self._txn, self.table(name), batch)

    def _write(self, key: Key, content: Sequence[Content], instead_of: Sequence[Row]) -> None:
        name = table_of(key)
        self._written.add(name)
        self._steps += 1
        self._insert = None if instead_of or not content else (self.table(name), content)
        self._used.add(name)
        # What an UPDATE has read of the rows that it replaces: everything, less, or nothing.
        known = self.random.choice(((0, 1, 2), (0,), (1,), ()))
        old = old_rows(instead_of, known) if instead_of and known else None
        self._driver.write(
            self._txn, self.table(name), insertion(self.table(name), content, instead_of), old
        )

    def _change_your_mind(self, key: Key, instead_of: Sequence[Row]) -> None:
        """Write something, and ROLLBACK TO a savepoint."""
        self._savepoints += 1
        self._driver.savepoint(self._txn, self._savepoints)
        self._write(key, [(number_of(key), 0, NOBODYS)], instead_of)
        self._driver.rollback_to(self._txn, self._savepoints)

    async def undone(self, look: Awaitable[object]) -> None:
        """Look at something behind a savepoint, and ROLLBACK TO it: what was seen stays seen."""
        self._savepoints += 1
        number = self._savepoints
        self._driver.savepoint(self._txn, number)
        await look
        self._driver.rollback_to(self._txn, number)

    def notify(self, channel: str, value: int) -> None:
        """NOTIFY."""
        self._pending.notify(channel, str(value))

    def notify_and_regret(self, channel: str, value: int) -> None:
        """NOTIFY behind a savepoint, and ROLLBACK TO it."""
        mark = self._pending.mark()
        self.notify(channel, value)
        self._pending.rewind(mark)

    async def define(self, *changes: CatalogChange) -> None:
        """DDL."""
        self._steps += 1
        self._written |= {
            change.table.name for change in changes if isinstance(change, PutTable | RemoveTable)
        }
        self._driver.change_catalog(self._txn, changes)
        await self.look()

    def rest_on(self, *names: NameDependency) -> None:
        """What the transaction computes rows by (A6 of `coordinator/core/validation.py`)."""
        self._names += names
        self._driver.looked_up(self._txn, names)

    async def new_table(self, name: str) -> Table:
        """A definition that nobody has used."""
        oid, shard = await self._driver.new_table_id()
        return Table(oid, "public", name, shard, COLUMNS, timeline=timeline_of(name).name)

    def expect(self, condition: bool, anomaly: str, explanation: str) -> None:
        """What must hold in every snapshot."""
        if not condition:
            where = f"at {self.snapshot.ts} in a transaction of p{self._owner}"
            self.world.found(anomaly, f"{explanation} {where}")

    # --- reading -----------------------------------------------------------------------------

    async def _rows_at(
        self,
        snapshot: Snapshot,
        keys: Sequence[Key],
        *,
        past: bool = False,
        by: ReadPredicate | None = None,
    ) -> list[list[Row]]:
        names = list(dict.fromkeys(table_of(key) for key in keys))
        self._used.update(names)
        tables = [snapshot.catalog.tables["public", name] for name in names]
        predicates = [by or self._predicate(name, keys) for name in names]
        views = await self._driver.scan(self._txn, snapshot.ts, tables, predicates)
        found = await self._rows_of(dict(zip(names, views, strict=True)))
        answers: list[list[Row]] = []
        for key in keys:
            name, number = table_of(key), number_of(key)
            rows = sorted(row for row in found[name] if row.key == number)
            answers.append(rows)
            if past or name not in self._written:
                answer = tuple((row.position, row.value) for row in rows)
                self._memory.keep(snapshot.ts, key, answer)
                if self._isolation is not STRICT:
                    self._memory.travelled(snapshot.ts, key)
        return answers

    async def _rows_of(self, views: Mapping[str, ShardView]) -> dict[str, list[Row]]:
        """As an engine reads them: whoever lacks a file asks whether it was deposed (E1)."""
        try:
            read, store = self.world.reader.rows, self.world.store
            return {name: read(view, store) for name, view in views.items()}
        except NotFound:
            await self._driver.examine(views.values())
            raise

    def _predicate(self, name: str, keys: Sequence[Key]) -> KeyRead | None:
        """What the scan of a table depends on; None: on all of it."""
        if not self.world.is_precise:
            return None
        return KeyRead(frozenset(number_of(key) for key in keys if table_of(key) == name))
