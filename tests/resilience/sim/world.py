"""The world of a simulation: coordinators over twins that outlive them, clocks, and a nemesis.

    World ── start ──▶ Server: recover, Driver.run ──┐
      ▲                                              │ crash, Fenced, Fatal
      └──── twins keep what was durable ◀────────────┘
    nemesis ──▶ clocks, slow shards, a full stash, pauses, cut lines, successors

Every call to stash or store may wait, fail, or end the process, as the odds say (`odds.py`). A
crash takes one process; a power failure takes all, and what was not durable.

INVARIANTS
  W1  the seed decides everything: same seed, same trace.
  W2  some server is always up or being started, until `end`.
  W3  a server that ends for a reason that no fault explains is a failure of the run.
"""

import asyncio
import random
import traceback
import zlib
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from coordinator.driver.sources import SourceComponents
from storage.errors import Determinate, Fatal, Indeterminate
from storage.memory import MemoryObjectStore, MemoryStash
from storage.types import Timestamp
from tests.resilience.history.events import Finding
from tests.resilience.sim.faults import (
    FaultyObjectStore,
    FaultyStash,
    Late,
    PromptFaultyStash,
    TwoStepStore,
)
from tests.resilience.sim.grants import Holders
from tests.resilience.sim.key_changes import key_index
from tests.resilience.sim.odds import CALM, Odds, draw_settings
from tests.resilience.sim.rows import Reader
from tests.resilience.sim.server import Server, WallClock, is_bug
from tests.resilience.sim.staging import spool
from tests.resilience.sim.upstream import ScriptedUpstream
from tests.resilience.sim.view_maintenance import ViewMaintenance

T = TypeVar("T")

LINE_S = 0.05
"""How long a server waits for an answer over a line that is cut."""

STARTING = 0.15
"""Share of the losses that hit a server that is starting. Larger: with many timelines it would not
come up in bad weather."""


class Gone(Exception):
    """The server does not answer any more; whoever waited for it does not know."""


class Broken(Exception):
    """There is a finding; going on would only hide it."""


@dataclass(slots=True)
class Tally:
    """What happened in a run."""

    crashes: int = 0
    power_failures: int = 0
    successions: int = 0
    pauses: int = 0
    fenced: int = 0
    late: int = 0
    asked_again: int = 0
    maintained: int = 0
    inserted_alone: int = 0
    changed_by_key: int = 0
    not_by_key: int = 0
    changed_inside: int = 0
    taken_inside: int = 0
    taken_alone: int = 0
    stale: int = 0
    heard: int = 0
    progressed: int = 0
    followed_up_to: int = 0
    fetches: int = 0
    fed: int = 0
    recent: int = 0
    locked: int = 0
    waited: int = 0
    began_again: int = 0
    blocked: int = 0
    timed_out: int = 0
    granted: int = 0
    dropped: int = 0
    doubted: int = 0
    accepted: int = 0
    attached: int = 0
    attached_by_units: int = 0
    read_stored: int = 0
    followed: int = 0


class World:
    """See the module."""

    def __init__(self, seed: int | str, odds: Odds) -> None:
        self.random = random.Random(seed)
        self._kinds = random.Random(f"stash of {seed}")
        self.settings = draw_settings(self.random)
        self.is_precise = self.random.random() < 0.7
        """Whether scans say what they depend on (precision locking)."""
        self.is_keyed = self.random.random() < 0.6
        """Whether rows are locked by a primary key, and not by their identity."""
        self.is_checked = self.random.random() < 0.4
        """Whether all files are read again at the end, as by `meridian check`."""
        self.odds = CALM
        self.stormy = odds
        self.is_set_up = False
        """Whether what the workload begins with is there; nobody loses patience before."""
        self.stash = MemoryStash()
        self.store = MemoryObjectStore()
        self.reader = Reader()
        self.upstream = ScriptedUpstream(self.random, self.found, fails_within=0.15)
        self.trace: list[str] = []
        self.findings: list[Finding] = []
        self.tally = Tally()
        self.servers: list[Server] = []
        self.grants = Holders(lambda: self.stash.epoch, self.found)
        self.full = False
        self.slow_shard: int | None = None
        self._clocks = [WallClock(), WallClock()]
        self.since: dict[str, Timestamp] = {}
        """Of the last server's timelines: what foreign readers see before it may be gone."""
        self._ended = False
        self._linked: set[str] = set()

    # --- servers -----------------------------------------------------------------------------

    async def keep_serving(self) -> None:
        """Start a server whenever there is none (W2)."""
        while not self._ended:
            if self.findings:
                raise Broken
            if all(server.over.done() for server in self.servers):
                self.start()
            alive = [server.over for server in self.servers if not server.over.done()]
            await asyncio.wait(alive, return_when=asyncio.FIRST_COMPLETED)

    def start(self) -> Server:
        """Another coordinator, which takes over."""
        number = len(self.servers)
        # One machine, unless coordinators succeed each other: then every other one is elsewhere.
        clock = self._clocks[number % 2 if self.stormy.succession else 0]
        server = Server(
            number,
            clock,
            self.settings,
            self.found,
            jump_max_us=self.stormy.clock_jump_max_us,
            maintain=ViewMaintenance(self, number).maintain,
            sources=self._sources,
        )
        self.servers.append(server)
        fault = partial(self._fault, server)
        stash = self._kinds.choice((FaultyStash, PromptFaultyStash))(self.stash, fault)
        server.over.add_done_callback(lambda _: self._bury(server))
        self.note(f"start {number}")
        server.start(stash, self._store_of(server))
        return server

    def _store_of(self, server: Server) -> FaultyObjectStore:
        store = TwoStepStore(self.store, partial(self._fault_between, server), self._linked)
        return FaultyObjectStore(store, partial(self._fault, server))

    def _sources(self, server: Server) -> SourceComponents:
        def leads() -> bool:
            return server.epoch == self.stash.epoch

        readers = self.upstream.readers(partial(self._fault, server), leads)
        staging = spool(self._store_of(server), self.random)
        in_memory = self.random.choice((0, 100, 1 << 20))
        return SourceComponents(readers, key_index(self.store), staging, in_memory)

    def _bury(self, server: Server) -> None:
        self.note(f"server {server.number} is over: {server.cause!r}")
        deposed = server.epoch is not None and server.epoch < self.stash.epoch
        if is_bug(server, deposed=deposed):
            self.failed(server.cause)
        elif deposed and server.cause is not None:
            self.tally.fenced += 1

    def crash(self, server: Server) -> None:
        """Kill the server where it stands."""
        if not server.over.done():
            self.tally.crashes += 1
            server.kill()

    def fail_power(self) -> None:
        """All processes end, and what was not durable is gone or whole, as it happens."""
        self.note("power failure")
        self.tally.power_failures += 1
        for server in self.servers:
            server.kill()
        self.stash = self.stash.crash()
        self.store = self.store.crash(self._survival)
        # What is found on a disk after a power failure is on the disk.
        self.store.sync_everything()
        self._linked.clear()

    def _survival(self, name: str, content: bytes) -> bytes | None:
        return content if self.random.random() < 0.5 else None

    async def server(self) -> Server:
        """A server to talk to: mostly the newest, sometimes one that may be deposed."""
        while True:
            up = [server for server in self.servers if server.is_up]
            if up:
                return up[-1] if self.random.random() < 0.4 else self.random.choice(up)
            await asyncio.sleep(0.004)

    async def leader(self) -> Server:
        """The server that nobody has deposed, once all are up; only in calm weather."""
        while True:
            alive = [server for server in self.servers if not server.over.done()]
            if alive and all(server.is_up for server in alive):
                leaders = [server for server in alive if server.epoch == self.stash.epoch]
                if leaders:
                    return leaders[0]
            await asyncio.sleep(0.004)

    async def ask(self, server: Server, work: Coroutine[Any, Any, T], patience: float) -> T:
        """Run a session's work in the server. Raises Gone: nobody knows how it ended."""
        task = server.process.start(work)
        await asyncio.wait(
            {task, server.over}, timeout=patience, return_when=asyncio.FIRST_COMPLETED
        )
        if not task.done():
            if not server.over.done() and self.random.random() < 0.7:
                task.cancel()  # the server notices that the client has gone
            raise Gone
        if task.cancelled():
            raise Gone
        return task.result()

    @property
    def is_calm(self) -> bool:
        """True if no fault was ordered for this run."""
        return self.stormy == CALM

    def end(self, last: Server) -> None:
        """No server is started any more; all but the last one are gone."""
        self._ended = True
        for server in self.servers:
            if server is not last:
                server.kill()

    def tear_down(self) -> None:
        """The run is over."""
        self._ended = True
        for server in self.servers:
            server.tear_down()

    # --- faults ------------------------------------------------------------------------------

    async def _fault(self, server: Server, operation: str) -> None:
        rng = self.random
        before = operation.startswith("before")
        if before or rng.random() < 0.4:
            await asyncio.sleep(rng.random() * self.odds.latency_ms_max * server.slowness / 1_000)
        odds = self.odds  # a storm may have ended meanwhile
        if rng.random() < odds.clock_step:
            server.wall.offset_us += rng.randint(-odds.clock_step_us, odds.clock_step_us)
        if rng.random() < odds.crash:
            await self._strike(server, operation)
        self.note(f"{server.number} {operation}")
        if "stash" in operation:
            await self._fault_of_line(server, operation, before=before)
        # A start makes many calls, and one that fails ends it.
        share = 1.0 if server.is_started else STARTING
        if before and rng.random() < odds.lost_request * share:
            if operation == "before stash.transact" and rng.random() < odds.late:
                self.tally.late += 1
                raise Late("injected: a late request", rng.random() * 0.05)
            kind = Indeterminate if rng.random() < 0.5 else Determinate
            raise kind(f"injected: a lost request: {operation}")
        if not before and rng.random() < odds.lost_reply * share:
            raise Indeterminate(f"injected: a lost reply: {operation}")

    async def _fault_of_line(self, server: Server, operation: str, *, before: bool) -> None:
        if server.cut_off:
            await asyncio.sleep(self.random.random() * LINE_S)
            if operation == "before stash.transact" and self.random.random() < 0.3:
                raise Late("injected: a line was cut, a request arrives late", LINE_S)
            raise Indeterminate(f"injected: a line was cut: {operation}")
        if self.full and operation == "before stash.transact":
            raise Determinate("injected: database or disk is full")

    async def _fault_between(self, server: Server, name: str) -> None:
        """The object is there, but not durable."""
        rng = self.random
        slow = self.slow_shard is not None and hash_of(name) % 3 == self.slow_shard
        await asyncio.sleep(rng.random() * self.odds.latency_ms_max * (30 if slow else 1) / 1_000)
        odds = self.odds  # a storm may have ended meanwhile
        if rng.random() < odds.crash:
            await self._strike(server, f"sync {name}")
        if rng.random() < odds.fatal:
            self.note(f"{server.number} cannot sync {name}")
            raise Fatal(f"injected: cannot sync {name}")

    async def _strike(self, server: Server, place: str) -> None:
        """The process, or the machine, ends here."""
        self.note(f"{server.number} crash at {place}")
        if self.random.random() < self.odds.power:
            self.fail_power()
        else:
            self.crash(server)
            if place == "before stash.transact" and self.random.random() < self.odds.late:
                raise Late("injected: sent with the last breath", self.random.random() * LINE_S)
        await server.process.halt_here()

    # --- what is told ------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """A line of the trace."""
        self.trace.append(f"{asyncio.get_running_loop().time():.6f} {text}")

    def found(self, anomaly: str, explanation: str) -> None:
        """Something that must not be."""
        self.note(f"{anomaly}: {explanation}")
        self.findings.append(Finding(anomaly, explanation))

    def failed(self, error: BaseException | None) -> None:
        """An exception that must not be (W3)."""
        self.found("failure", "".join(traceback.format_exception(error)))


def hash_of(name: str) -> int:
    """The same in every process."""
    return zlib.crc32(name.partition("/")[0].encode())
