"""The world of a simulation: one server over twins that outlive it, a wall clock, and a nemesis.

    World ── start ──▶ recover, Driver.run ──┐
      ▲                                      │ crash (drawn at any stash or store call)
      └──── twins keep what was durable ◀────┘

Faults, all drawn from one seed: latency of every call; a lost request (Determinate or
Indeterminate,
nothing happened); a lost reply (Indeterminate, it happened); a crash before or after any call; a
wall
clock that steps forward and back.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from compute.arrow import table_schema
from coordinator.core.settings import CoreSettings
from coordinator.driver import Driver
from coordinator.startup import recover
from sql.catalog import Table
from storage.errors import Determinate, Indeterminate, StorageError
from storage.memory import MemoryObjectStore, MemoryStash
from storage.types import Timestamp
from tests.sim.faults import FaultyObjectStore, FaultyStash

T = TypeVar("T")
START_US = 1_700_000_000_000_000


@dataclass(frozen=True, slots=True)
class Odds:
    """Chances per call."""

    crash: float = 0.01
    lost_request: float = 0.02
    lost_reply: float = 0.02
    latency_ms_max: float = 8.0
    clock_step: float = 0.01


CALM = Odds(crash=0.0, lost_request=0.0, lost_reply=0.0, clock_step=0.0)

SETTINGS = CoreSettings(
    ceiling_step_us=200_000,
    history_us=60_000_000,
    cut_age_us=120_000,
    cut_commits_max=25,
    group_max=8,
)


class Crashed(Exception):
    """The server's process is gone; whoever waited for it does not know."""


class WallClock:
    """The loop's virtual time plus an offset that the nemesis moves."""

    def __init__(self) -> None:
        self.offset_us = 0

    def now(self) -> Timestamp:
        """Microseconds."""
        elapsed = int(asyncio.get_running_loop().time() * 1_000_000)
        return Timestamp(START_US + elapsed + self.offset_us)


class World:
    """See the module. `server()` is the driver of the moment; clients ask again after Crashed."""

    def __init__(self, seed: int, odds: Odds, settings: CoreSettings = SETTINGS) -> None:
        self.random = random.Random(seed)
        self.odds = odds
        self.clock = WallClock()
        self.stash = MemoryStash()
        self.store = MemoryObjectStore()
        self.trace: list[str] = []
        self.crashes = 0
        self._settings = settings
        self._driver: Driver | None = None
        self._running: asyncio.Task[None] | None = None
        self._up = asyncio.Event()
        self._ended = False

    # --- the server's life -------------------------------------------------------------------

    async def serve(self) -> None:
        """Start the server, and again after every crash, until `end`."""
        while not self._ended:
            self._running = asyncio.create_task(self._life())  # noqa: TID251 - the nemesis kills it
            try:
                await self._running
            except (Crashed, asyncio.CancelledError):
                if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    raise
            except BaseExceptionGroup as group:
                if group.split(Crashed)[1] is not None:
                    raise
            if not self._ended:
                self._bury()

    async def _life(self) -> None:
        stash = FaultyStash(self.stash, self._fault)
        store = FaultyObjectStore(self.store, self._fault)
        try:
            driver = await recover(
                stash, store, self.clock, self._settings, schema_of, run_blocking=on_the_spot
            )
        except StorageError as error:
            self._note(f"start-up failed: {error}")
            raise Crashed from error
        self._driver = driver
        self._up.set()
        await driver.run()

    def _bury(self) -> None:
        """What was durable goes on; everything else is gone."""
        self.crashes += 1
        self._note("crash")
        self._driver = None
        self._up.clear()
        self.stash = self.stash.crash()
        self.store = self.store.crash()

    def crash(self) -> None:
        """Kill the server where it stands."""
        self._up.clear()
        if self._running is not None:
            self._running.cancel()

    async def server(self) -> Driver:
        """The running server; waits while it is down."""
        await self._up.wait()
        assert self._driver is not None, "up means that there is a driver"
        return self._driver

    async def end(self) -> None:
        """An orderly stop; faults are over."""
        self.odds = CALM
        driver = await self.server()
        self._ended = True
        await driver.stop()

    # --- faults ------------------------------------------------------------------------------

    async def _fault(self, operation: str) -> None:
        odds = self.odds
        await asyncio.sleep(self.random.random() * odds.latency_ms_max / 1_000)
        if self.random.random() < odds.clock_step:
            self.clock.offset_us += self.random.randint(-400_000, 400_000)
        if self.random.random() < odds.crash:
            self._note(f"crash at {operation}")
            self.crash()
            await asyncio.get_running_loop().create_future()
        self._note(operation)
        if operation.startswith("before") and self.random.random() < odds.lost_request:
            kind = Indeterminate if self.random.random() < 0.5 else Determinate
            raise kind(f"lost request: {operation}")
        if operation.startswith("after") and self.random.random() < odds.lost_reply:
            raise Indeterminate(f"lost reply: {operation}")

    def _note(self, text: str) -> None:
        self.trace.append(f"{asyncio.get_running_loop().time():.6f} {text}")

    async def surviving(self, work: Awaitable[None]) -> None:
        """Wait for something the server was asked; Crashed if the server goes down meanwhile."""
        running = self._running
        assert running is not None, "a server was asked"
        task = asyncio.ensure_future(work)  # noqa: TID251 - ended below in every case
        await asyncio.wait({task, running}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            raise Crashed
        if task.cancelled():
            raise Crashed
        task.result()


def schema_of(table: Table) -> pa.Schema:
    """As the server has it."""
    return table_schema(table.columns)


async def on_the_spot(work: Callable[[], T]) -> T:
    """Run what the server runs in a thread; a simulation has none."""
    return work()
