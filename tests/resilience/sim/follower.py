"""A client of the simulation that follows a table, and goes on wherever its server has died.

    snapshot, or AS OF the last progress - 1 ─▶ rows, progress ─▶ fold ─▶ Memory (H1), the judge
         ▲                                                  │
         └── killed, hung up, ended, too far behind ◀───────┘

What it has folded outlives the server, as it would at a client.

INVARIANTS
  E1  at each progress T the fold is the table AS OF T - 1: `Memory` compares it with what others
      are told of that timestamp, and `check_replay` with what was acknowledged.
  E2  no row comes behind a progress that it is below, at or past UP TO, or before a strict read
      would see it; and none is taken away that was not there.
  E3  who is told nothing for long has nothing to be told.
  E4  a FETCH that gives no row has waited for as long as it was told to.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

import pyarrow as pa

from coordinator.core.change_streams.steps import SubscriptionRequest
from coordinator.core.messages.identities import ConnectionId
from coordinator.driver.change_streams import ChangeStream
from coordinator.execution.change_streams.row_forms import RelationViews
from coordinator.execution.change_streams.shared_steps import StepSharing
from coordinator.execution.change_streams.telling import tell_changes
from coordinator.transaction.following import ChangeReader
from sql.catalog.catalog import Table
from sql.errors import SqlError
from sql.plan.nodes import ColumnId, Plan, PlanColumn, RelationId, Scan
from sql.statements.bound import BoundQuery, OutputColumn, Subscribe
from sql.types.sql_type import INT8
from storage.known_rows import Points
from storage.types import Timestamp
from tests.resilience.history.events import Key
from tests.resilience.sim.memory import Memory
from tests.resilience.sim.rows import SCHEMA, number_of, timeline_of
from tests.resilience.sim.server import Server
from tests.resilience.sim.world import World

BATCHES_MAX = 120
"""A run is over before; what does not end would hide that a run is stuck."""

LONG_S = 0.4
"""Longer than any progress takes in a server that is well."""

TOO_OLD = "72000"

Content = tuple[int, ...]


class Follower:
    """See the module. One follows a table with the rows of these keys, or, if `only` is given, its
    rows that have this number. A view has the rows of several tables.
    """

    def __init__(
        self,
        world: World,
        memory: Memory,
        name: str,
        keys: Sequence[Key],
        only: int | None = None,
    ) -> None:
        self.name = name
        self._world = world
        self._memory = memory
        self._keys = [key for key in keys if only in (None, number_of(key))]
        self._only = only
        self._fold: Counter[Content] = Counter()
        self._frontier: Timestamp | None = None
        self._server: Server | None = None
        self._follows = False

    @property
    def is_free(self) -> bool:
        """Whether it follows nothing now."""
        return not self._follows or self._server is None or self._server.over.done()

    def start(self, server: Server, owner: int) -> None:
        """Follow until something ends it."""
        self._server, self._follows = server, True
        server.process.start(self._run(server, ConnectionId(owner)))

    async def _run(self, server: Server, session: ConnectionId) -> None:
        try:
            await self._follow(server, session)
        except SqlError as error:
            if error.sqlstate == TOO_OLD:
                # History does not reach back so far: it begins anew.
                self._frontier = None
                self._fold.clear()
        except Exception as error:
            self._world.failed(error)
        finally:
            self._follows = False
            server.driver.disconnected(session)

    async def _follow(self, server: Server, owner: ConnectionId) -> None:
        rng, driver = self._world.random, server.driver
        since = self._frontier
        line = timeline_of(self.name).name
        txn = driver.begin(owner)
        if since is None:
            snapshot = await driver.snapshot(txn, timeline=line)
        else:
            snapshot = await driver.snapshot(txn, as_of=Timestamp(since - 1), timeline=line)
        table = snapshot.catalog.tables["public", self.name]
        up_to: Timestamp | None = None
        if rng.random() < 0.3:
            up_to = Timestamp(snapshot.ts + rng.choice((1, 2, 30, 40_000)))
        asked = () if self._only is None else (Points((0,), frozenset({(self._only,)}), True),)
        wanted = SubscriptionRequest((table,), snapshot.ts, up_to, closes=True, asked=asked)
        stream = await driver.subscribe(txn, wanted)
        driver.abort(txn)
        made = _statement(table, snapshot=since is None)
        place = id(table), since is None, self._only
        subscribe = server.statements.setdefault(place, made)
        reader = ChangeReader()
        told = tell_changes(
            stream,
            subscribe,
            self._rows_of,
            lambda: self._wait(server, stream, reader),
            reader,
            StepSharing(server.told, subscribe),
        )
        rows = told if rng.random() < 0.6 else self._fetched(told, reader)
        try:
            is_whole = await self._take(server, rows, up_to, snapshot=since is None)
            if is_whole and up_to is not None:
                self._world.tally.followed_up_to += 1
                self._expect(self._frontier == up_to, f"ended at {self._frontier}, not {up_to}")
        finally:
            await told.aclose()
            stream.close()

    async def _take(
        self,
        server: Server,
        told: AsyncIterator[pa.RecordBatch],
        up_to: Timestamp | None,
        *,
        snapshot: bool,
    ) -> bool:
        """Fold what is told; whether it came to its end."""
        rng = self._world.random
        fold = Counter() if snapshot else Counter(self._fold)
        for _ in range(BATCHES_MAX):
            batch = await anext(told, None)
            if batch is None:
                return True
            for ts, progressed, diff, *values in _tuples(batch):
                self._check(server, ts, up_to, progressed=bool(progressed))
                if progressed:
                    self._progress(ts, fold)
                else:
                    content = tuple(values)
                    fold[content] += diff
                    gone = fold[content] < 0
                    self._expect(not gone, f"{content} was taken away at {ts}, and was not there")
            if rng.random() < 0.2:
                await asyncio.sleep(rng.random() * 0.06)  # it reads slowly
            if rng.random() < 0.03:
                return False
        return False

    def _check(self, server: Server, ts: int, up_to: Timestamp | None, *, progressed: bool) -> None:
        """E2."""
        name = timeline_of(self.name).name
        core = next(d.core for d in server.driver.lines if d.core.timeline.name == name)
        last = ts - 1 if progressed else ts
        self._expect(last <= core.read_ts, f"{last} is told at {core.read_ts}")
        late = self._frontier is not None and ts < self._frontier
        self._expect(not late, f"{ts} is told behind a progress of {self._frontier}")
        self._expect(up_to is None or last < up_to, f"{last} is told, UP TO {up_to}")

    def _progress(self, ts: int, fold: Counter[Content]) -> None:
        """E1."""
        self._frontier = Timestamp(ts)
        self._fold = +fold
        self._world.tally.progressed += 1
        rows = sorted(self._fold.elements())
        for key in self._keys:
            answer = tuple([(row[1], row[2]) for row in rows if row[0] == number_of(key)])
            self._memory.keep(Timestamp(ts - 1), key, answer)
            self._memory.travelled(Timestamp(ts - 1), key)

    async def _fetched(
        self, told: AsyncGenerator[pa.RecordBatch, None], reader: ChangeReader
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """By FETCHes of some batches, each with a time or without (E4)."""
        rng = self._world.random
        while True:
            timeout_us = rng.choice((None, None, 0, 1_000, 60_000))
            begin, given = asyncio.get_running_loop().time(), 0
            with reader.fetching(timeout_us):
                for _ in range(rng.choice((1, 2, 5, 1_000))):
                    batch = await anext(told, None)
                    if batch is None:
                        return
                    if reader.ends_at(batch):
                        waited = asyncio.get_running_loop().time() - begin
                        late = timeout_us is not None and waited * 1e6 >= timeout_us - 1
                        self._expect(late or given > 0, "a FETCH has ended, and gave no row")
                        break
                    given += 1
                    yield batch
            self._world.tally.fetches += 1
            await asyncio.sleep(rng.random() * 0.05)

    async def _wait(self, server: Server, stream: ChangeStream, reader: ChangeReader) -> bool:
        """E3: time is closed for it all the while, so that a wake-up that does not come is lost."""
        patience = reader.patience()
        if patience is not None:
            return await _is_woken(stream, patience)
        # A server that was paused wakes it in the same moment in which its time is over.
        if not await _is_woken(stream, LONG_S) and not await _is_woken(stream, 0):
            step = stream.take()
            (followed,) = step.shards
            told = not step.is_quiet and followed.state.wrote_between(step.after, step.upto)
            self._expect(not told, f"nobody tells of changes in ({step.after}, {step.upto}]")
        return True

    async def _rows_of(self, _: Plan, views: RelationViews) -> AsyncIterator[pa.RecordBatch]:
        (view,) = views.values()
        rows = self._world.reader.rows(view, self._world.store)
        wanted = [row for row in rows if self._only in (None, row.key)]
        content = [(row.key, row.position, row.value) for row in wanted]
        await asyncio.sleep(self._world.random.random() * 0.003)
        for start in range(0, len(content), 3):
            few = list(zip(*content[start : start + 3], strict=True))
            arrays = [pa.array(column, pa.int64()) for column in few]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def _expect(self, holds: bool, why: str) -> None:
        if not holds:
            self._world.found("followed", f"{self.name}: {why}")


async def _is_woken(stream: ChangeStream, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await stream.wait()
    except TimeoutError:
        return False
    return True


def _tuples(batch: pa.RecordBatch) -> Iterator[tuple[int, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _statement(table: Table, *, snapshot: bool) -> Subscribe:
    """As the binder makes it."""
    columns = [
        PlanColumn(ColumnId(at), column.name, column.type)
        for at, column in enumerate(table.columns)
    ]
    scan = Scan(RelationId(table.shard), table.name, tuple(columns), tuple(range(len(columns))))
    shown = tuple([OutputColumn(column.name, column.type) for column in columns])
    about = [OutputColumn(name, INT8) for name in ("ts", "progressed", "diff")]
    query = BoundQuery(scan, shown, (table,))
    return Subscribe(query, (*about, *shown), snapshot=snapshot, progress=True)
