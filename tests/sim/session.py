"""One transaction as a session of a server runs it, and what is remembered of its answers.

    Session.run(body): begin ─▶ snapshot ─▶ body: rows, insert, think .. ─▶ commit

INVARIANTS
  H1  an answer at a timestamp never changes: asked again AS OF it, later and after restarts, it is
      the same, or 72000 (`Memory`).
  H2  `asked_to_commit` is True before the server could have committed anything.
  H3  a transaction that was nothing but one insert may go as an insert alone, at its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from coordinator.core.messages import (
    CatalogChange,
    ConnectionId,
    Isolation,
    PutTable,
    RemoveTable,
    Snapshot,
)
from sql.catalog import Table
from sql.errors import SqlError
from storage.batch import DataFile
from storage.delta.files import encode_file
from storage.types import Source, Timestamp
from tests.history.events import Key, Operation, Read, ReadList, ReadSet
from tests.history.replay import Answer as JudgedAnswer
from tests.sim.rows import (
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
)
from tests.sim.server import Server
from tests.sim.world import World

Answer = tuple[tuple[int, int], ...] | None
"""Positions and values of a key; None: there is no such table."""


class Memory:
    """Answers by timestamp and key (H1)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._answers: dict[tuple[Timestamp, Key], Answer] = {}
        self._asked: list[tuple[Timestamp, Key]] = []
        self._travels: set[tuple[Timestamp, Key]] = set()

    def keep(self, ts: Timestamp, key: Key, answer: Answer) -> None:
        """Remember, or compare with what was told before."""
        known = self._answers.setdefault((ts, key), answer)
        if known != answer:
            self._world.found("as-of", f"{key} AS OF {ts} was {known}, and now it is {answer}")

    def travelled(self, ts: Timestamp, key: Key) -> None:
        """This was an answer to AS OF, which no history has."""
        self._travels.add((ts, key))

    def answers(self) -> list[JudgedAnswer]:
        """The answers to AS OF, for the judge who replays."""
        found: list[JudgedAnswer] = []
        for ts, key in sorted(self._travels):
            answer = self._answers[ts, key]
            if answer is not None and key[0] in READS:
                operation = read_of(key, [value for _, value in answer])
                found.append(JudgedAnswer(ts, operation, "AS OF"))
        return found

    def choose(self) -> tuple[Timestamp, Key] | None:
        """Something told before."""
        if len(self._asked) < len(self._answers):
            self._asked = list(self._answers)
        return self._world.random.choice(self._asked) if self._asked else None


@dataclass(slots=True)
class Result:
    """How a transaction went: what it was told, and its timestamp."""

    operations: tuple[Operation, ...]
    ts: Timestamp


READS: dict[str, type[Read] | type[ReadSet] | type[ReadList]] = {
    **dict.fromkeys("gpqs", ReadSet),
    **dict.fromkeys("l", ReadList),
    **dict.fromkeys("abcder", Read),
}
"""What a table holds, by the first letter of its name."""


def read_of(key: Key, values: Sequence[int]) -> Operation:
    """An answer in the words of the judges."""
    kind = READS[key[0]]
    if kind is Read:
        return Read(key, values[-1] if values else None)
    return kind(key, tuple(values))


NOBODYS = -1
"""A value that no transaction ever commits."""

Body = Callable[["Session"], Awaitable[tuple[Operation, ...]]]


class Session:
    """See the module. One object for each transaction."""

    def __init__(
        self,
        world: World,
        server: Server,
        memory: Memory,
        owner: int,
        isolation: Isolation = Isolation.STRICT_SERIALIZABLE,
    ) -> None:
        self.world = world
        self.random = world.random
        self.asked_to_commit = False
        self._clock = server.clock
        self._driver = server.driver
        self._memory = memory
        self._owner = ConnectionId(owner)
        self._written: set[str] = set()
        self._savepoints = 0
        self._staged: list[DataFile] = []
        self._steps = 0
        self._insert: tuple[Table, Sequence[Content]] | None = None
        self._txn = self._driver.begin(self._owner, isolation=isolation)
        self._snapshot: Snapshot | None = None

    async def run(self, body: Body) -> Result:
        """The whole transaction."""
        try:
            await self.look()
            told = await body(self)
            self.asked_to_commit = True
            if self._steps == 1 and self._insert is not None and self.random.random() < 0.5:
                return Result(told, await self._insert_alone(*self._insert))
            return Result(told, await self._driver.commit(self._txn))
        finally:
            self._driver.disconnected(self._owner)

    async def _insert_alone(self, table: Table, content: Sequence[Content]) -> Timestamp:
        """As a session does with an INSERT that it has bound before (H3)."""
        self._driver.abort(self._txn)
        self.world.tally.inserted_alone += 1
        level = Isolation.STRICT_SERIALIZABLE
        return await self._driver.insert(level, table, content, 24, ContentEncoder(), ())

    # --- what bodies use ---------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The transaction's timestamp and the catalog at it, with its own DDL."""
        assert self._snapshot is not None, "X1: a session looks first"
        return self._snapshot

    async def look(self) -> None:
        """Take the snapshot, or see it with own DDL."""
        self._snapshot = await self._driver.snapshot(self._txn)

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
        encoded = encode_file(arrow(content), "part")
        # Named as engines name theirs, so that vacuum takes it for one (Y3).
        number = Source(f"part-{self._owner:024x}-{len(self._staged):05d}.parquet")
        file = replace(encoded.file, name=number)
        self._staged.append(file)
        place = f"{self.table(name).shard}/{file.name}"
        self._written.add(name)
        self.world.store.write_unsynced(place, encoded.content)
        await asyncio.sleep(self.random.random() * 0.01)
        await self.world.store.sync([place])
        batch = replace(insertion([], instead_of), staged=(file,))
        self._driver.write(self._txn, self.table(name), batch)

    def _write(self, key: Key, content: Sequence[Content], instead_of: Sequence[Row]) -> None:
        name = table_of(key)
        self._written.add(name)
        self._steps += 1
        self._insert = None if instead_of or not content else (self.table(name), content)
        # What an UPDATE has read of the rows that it replaces: everything, less, or nothing.
        known = self.random.choice(((0, 1, 2), (0,), (1,), ()))
        old = old_rows(instead_of, known) if instead_of and known else None
        self._driver.write(self._txn, self.table(name), insertion(content, instead_of), old)

    def _change_your_mind(self, key: Key, instead_of: Sequence[Row]) -> None:
        """Write something, and ROLLBACK TO a savepoint."""
        self._savepoints += 1
        self._driver.savepoint(self._txn, self._savepoints)
        self._write(key, [(number_of(key), 0, NOBODYS)], instead_of)
        self._driver.rollback_to(self._txn, self._savepoints)

    async def define(self, *changes: CatalogChange) -> None:
        """DDL."""
        self._steps += 1
        self._written |= {
            change.table.name for change in changes if isinstance(change, PutTable | RemoveTable)
        }
        self._driver.change_catalog(self._txn, changes)
        await self.look()

    async def new_table(self, name: str) -> Table:
        """A definition that nobody has used."""
        oid, shard = await self._driver.new_table_id()
        return Table(oid, "public", name, shard, COLUMNS)

    def expect(self, condition: bool, anomaly: str, explanation: str) -> None:
        """What must hold in every snapshot."""
        if not condition:
            where = f"at {self.snapshot.ts} in a transaction of p{self._owner}"
            self.world.found(anomaly, f"{explanation} {where}")

    # --- time travel -------------------------------------------------------------------------

    async def ask_again(self) -> None:
        """An old answer, AS OF its timestamp, or a new one AS OF the clock or as it comes (H1).

        What comes at a weak isolation level may be old, but it is true at its timestamp.
        """
        chosen = self._memory.choose()
        if chosen is None:
            return
        ts, key = chosen
        try:
            match self.random.randrange(5):
                case 0:
                    await self._ask(self._now(), key)
                case 1:
                    await self._ask(None, key)
                case _:
                    await self._ask(ts, key)
        except SqlError as error:
            if error.sqlstate not in ("72000", "22023"):
                raise
        finally:
            self._driver.disconnected(self._owner)

    def _now(self) -> Timestamp:
        """About the time; a commit may just be happening there."""
        return Timestamp(self._clock.now() - self.random.randrange(20_000))

    async def _ask(self, asked: Timestamp | None, key: Key) -> None:
        snapshot = await self._driver.snapshot(self._txn, as_of=asked)
        ts = snapshot.ts
        if asked not in (None, ts):
            self.world.found("as-of", f"asked AS OF {asked}, answered at {ts}")
        if ("public", table_of(key)) not in snapshot.catalog.tables:
            self._memory.keep(ts, key, None)
            return
        await self._rows_at(snapshot, [key])
        self._memory.travelled(ts, key)
        self.world.tally.asked_again += 1

    async def _rows_at(self, snapshot: Snapshot, keys: Sequence[Key]) -> list[list[Row]]:
        names = list(dict.fromkeys(table_of(key) for key in keys))
        tables = [snapshot.catalog.tables["public", name] for name in names]
        predicates = [self._predicate(name, keys) for name in names]
        views = await self._driver.scan(self._txn, snapshot.ts, tables, predicates)
        store = self.world.store
        found = {
            name: self.world.reader.rows(view, store)
            for name, view in zip(names, views, strict=True)
        }
        answers: list[list[Row]] = []
        for key in keys:
            name, number = table_of(key), number_of(key)
            rows = sorted(row for row in found[name] if row.key == number)
            answers.append(rows)
            if name not in self._written:
                answer = tuple((row.position, row.value) for row in rows)
                self._memory.keep(snapshot.ts, key, answer)
        return answers

    def _predicate(self, name: str, keys: Sequence[Key]) -> KeyRead | None:
        """What the scan of a table depends on; None: on all of it."""
        if not self.world.is_precise:
            return None
        return KeyRead(frozenset(number_of(key) for key in keys if table_of(key) == name))

    # --- maintenance -------------------------------------------------------------------------

    async def maintain(self) -> None:
        """OPTIMIZE or VACUUM, while others work."""
        try:
            await self.look()
            tables = list(self.snapshot.catalog.tables.values())
            if self.random.random() < 0.6:
                await self._driver.optimize(self.random.sample(tables, 1))
            else:
                await self._driver.vacuum(None)
            self.world.tally.maintained += 1
        finally:
            self._driver.disconnected(self._owner)
