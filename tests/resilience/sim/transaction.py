"""The life of one transaction as a session of a server runs it: snapshots, statements, the commit.

    block:   begin ─▶ snapshot ─▶ statements ─▶ commit
                                    └ locks ─▶ [begins again at a newer snapshot] ─▶ done
    single:  begin ─▶ [lease] ─▶ snapshot ─▶ statement ─▶ commit; after a conflict from the start,
             and after Blocked once it holds what was in the way

INVARIANTS
  H2  `asked_to_commit` is True before the server could have committed anything.
  H3  unless it asked for a stale one, a transaction's first snapshot, and at read committed every
      one, has all commits that were called done before. At the other levels another one comes only
      after a lock, and all that was told before is true at it, too.
  H4  a single statement always finishes: who has a lease loses to nobody.

Modelled on `coordinator/session/statement_runner.py`. What statements do: `session.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from coordinator.core.messages.identities import BEHIND_REAL_TIME, ConnectionId, Isolation
from coordinator.core.messages.replies import RefusedReason, Snapshot
from coordinator.driver.coordination import LockBlocks, RequestRefused
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from storage.types import Timestamp
from tests.resilience.history.events import Key, Operation
from tests.resilience.sim.locks import SessionLocks, StatementRestart
from tests.resilience.sim.memory import Answer, Memory
from tests.resilience.sim.server import Server
from tests.resilience.sim.world import Broken, World

T = TypeVar("T")


@dataclass(slots=True)
class Result:
    """How a transaction went: what it was told, and its timestamp, if it has a place in the order
    that real time is part of.
    """

    operations: tuple[Operation, ...]
    ts: Timestamp | None


STRICT = Isolation.STRICT_SERIALIZABLE

ATTEMPTS_MAX = 10
"""As the server's default."""

AGAIN_MAX = 300
"""A statement that begins again so often makes no progress."""

Work = Callable[[], Awaitable[tuple[Operation, ...]]]


class Transaction:
    """See the module. One object for each. `plain`: it locks what its body says and nothing else,
    and waits however long it takes.
    """

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
        plain: bool = False,
    ) -> None:
        self.world = world
        self.random = world.random
        self.asked_to_commit = False
        self.locks = SessionLocks(world, server, owner, patient=plain)
        self.server = server
        self.owner = owner
        self._clock = server.clock
        self._driver = server.driver
        self._memory = memory
        self._owner = ConnectionId(owner)
        self._isolation = isolation
        self._timeline = timeline
        self._staleness_us = staleness_us
        self._single = False
        self._plain = plain
        self._begin()

    def _begin(self) -> None:
        self._renew()
        self._txn = self._driver.begin(
            self._owner, isolation=self._isolation, staleness_us=self._staleness_us
        )
        self.locks.begin(self._txn)

    def _renew(self) -> None:
        """Nothing of the transaction is left but its locks."""
        self.asked_to_commit = False
        self._written: set[str] = set()
        self._used: set[str] = set()
        self._least = Timestamp(0)
        self._steps = 0
        self._snapshot: Snapshot | None = None
        self._in_statement = False
        self._told: dict[Key, Answer] = {}
        self._telling: dict[Key, Answer] = {}
        self._promised: list[tuple[str, str]] = []

    async def run_once(self, work: Work) -> Result:
        """The whole transaction, a block."""
        try:
            return await self._once(work)
        except LockBlocks as blocks:
            # An insert alone has no transaction to wait in: then the long way.
            self._begin()
            await self._wait_for(blocks)
            return await self.run_alone(work)

    async def _once(self, work: Work, *, again: bool = False) -> Result:
        await self.look(again=again)
        told = await work()
        self.asked_to_commit = True
        ts = await self._commit()
        told = self._really(told)
        self.locks.ended()
        for anomaly, explanation in self._promised:
            self.expect(False, anomaly, explanation)
        self.expect(ts >= self._least, "advance", f"to {self._least} ended at {ts}")
        if self._written:
            self._memory.acknowledge(self._timeline, ts)
        # One that only reads and advances is a write to the server, which may put it before others
        # of the same timestamp; to the judge by timestamps it would be a read, after all of them.
        ordered = self._written or (self._isolation is STRICT and not self._least)
        return Result(told, ts if ordered else None)

    async def read_after(self, sources: Sequence[int], timeout_us: int) -> None:
        """It reads from when these sources have come to all that their upstreams have now."""
        self._driver.abort(self._txn)
        await self._driver.await_upstreams(sources, timeout_us)
        self._begin()
        await self.look()

    def _really(self, told: tuple[Operation, ...]) -> tuple[Operation, ...]:
        """What was told, once the outcome is known."""
        return told

    async def _commit(self) -> Timestamp:
        raise AssertionError("whoever knows what it wrote commits it")

    async def run_alone(self, work: Work) -> Result:
        """A single statement: it starts again after a conflict, with a lease of everything that was
        touched (H4), and after a wait without one.
        """
        self._single = True
        leased: list[Table] | None = None
        attempts, again = 1, False
        tally = self.world.tally
        for _ in range(AGAIN_MAX):
            if leased is not None:
                await self._driver.lease(self._txn, leased)
            drops = tally.dropped
            try:
                return await self._once(work, again=again)
            except StatementRestart:
                leased, again = None, True
                self._renew()
            except LockBlocks as blocks:
                leased, again = None, False
                self._renew()
                await self._wait_for(blocks)
            except RequestRefused as refused:
                if refused.reason is RefusedReason.NOT_LOADED:
                    self._driver.abort(self._txn)
                    await self._driver.await_load(refused.source)
                    self._begin()
                    leased, again = None, False
                    continue
                if refused.reason not in (RefusedReason.CONFLICT, RefusedReason.STALE):
                    raise
                # Who lost a lock may find that somebody has taken it, and stands in line with it.
                kept = leased and tally.dropped == drops
                lost = kept and refused.reason is RefusedReason.CONFLICT
                self.expect(not lost, "lease", f"{refused} in spite of the lease")
                attempts, again = attempts + 1, False
                if attempts > ATTEMPTS_MAX:
                    break
                leased = [self.table(name) for name in sorted(self._used)]
                self._driver.abort(self._txn)
                self._begin()
        self.world.found("unfinished", f"after {attempts} attempts")
        raise Broken

    async def _wait_for(self, blocks: LockBlocks) -> None:
        self.world.tally.blocked += 1
        await self.locks.wait_for(blocks)

    def disconnect(self) -> None:
        """The session ends."""
        self.locks.over()
        self._driver.disconnected(self._owner)

    # --- snapshots ---------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The transaction's timestamp and the catalog at it, with its own DDL."""
        assert self._snapshot is not None, "X1: a session looks first"
        return self._snapshot

    @property
    def memory(self) -> Memory:
        """What all sessions of the run were told."""
        return self._memory

    def table(self, name: str) -> Table:
        """As the snapshot has it."""
        return self.snapshot.catalog.tables["public", name]

    async def look(self, *, again: bool = False) -> None:
        """Take the snapshot, or see it with own DDL; at read committed take another one (H3).
        `again`: the server may have moved it.
        """
        before, done = self._snapshot, self._memory.acknowledged(self._timeline)
        self._snapshot = await self._driver.snapshot(self._txn)
        if self._timeline != SYSTEM_TIMELINE.name:
            self._snapshot = await self._driver.snapshot(self._txn, timeline=self._timeline)
        ts, anew = self._snapshot.ts, self._isolation is Isolation.READ_COMMITTED
        if before is not None and not anew:
            kept = ts == before.ts or (again and ts > before.ts)
            self.expect(kept, "moved", f"from {before.ts} to {ts}")
            self._repeat(ts)
        elif self._staleness_us is None and not (
            self.world.stormy.succession and self._isolation in BEHIND_REAL_TIME
        ):
            fresh = ts >= done or (again and not anew)
            self.expect(fresh, "stale", f"reads at {ts}, and {done} was done before")

    def _repeat(self, ts: Timestamp) -> None:
        """Everything that the transaction was told is told at its newest timestamp, too (H3)."""
        for key, answer in self._told.items():
            self._memory.keep(ts, key, answer)
            self._memory.travelled(ts, key)

    # --- statements --------------------------------------------------------------------------

    async def statement(self, work: Callable[[], Awaitable[T]]) -> T:
        """A statement of a block; it begins again if it has waited for a lock. What it writes comes
        last.
        """
        if self._single or self._in_statement:
            return await work()
        self._in_statement = True
        self.locks.begin_statement()
        try:
            if self.locks.waited:
                self.locks.waited = False
                await self._refresh()
            return await self._tried(work)
        finally:
            self._in_statement = False
            self._telling = {}

    async def _tried(self, work: Callable[[], Awaitable[T]]) -> T:
        for _ in range(AGAIN_MAX):
            self._telling = {}
            self._driver.begin_statement(self._txn)
            try:
                told = await work()
            except StatementRestart:
                await self.look(again=True)
            else:
                self._told |= self._telling
                return told
        self.world.found("again", f"a statement of p{self._owner} began {AGAIN_MAX} times")
        raise Broken

    async def _refresh(self) -> None:
        """After an advisory lock: read what those before have left."""
        if self._isolation is not Isolation.READ_COMMITTED:
            await self._driver.refresh(self._txn)
            if self._timeline != SYSTEM_TIMELINE.name:
                await self._driver.refresh(self._txn, self._timeline)
        await self.look(again=True)

    async def think(self) -> None:
        """Sometimes, time passes."""
        if self.random.random() < 0.4:
            await asyncio.sleep(self.random.random() * 0.012)

    def expect(self, condition: bool, anomaly: str, explanation: str) -> None:
        """What must hold in every snapshot."""
        if not condition:
            where = f"at {self.snapshot.ts} in a transaction of p{self._owner}"
            self.world.found(anomaly, f"{explanation} {where}")

    def promise(self, condition: bool, anomaly: str, explanation: str) -> None:
        """What must hold if the transaction commits: it may have lost its locks."""
        if not condition:
            self._promised.append((anomaly, explanation))
