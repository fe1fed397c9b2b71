"""The nemesis: troubles that last for a while, beside the faults of single calls (`world.py`).

INVARIANTS
  M1  every trouble ends, at the latest when the nemesis is told to stop.
"""

import asyncio
from collections.abc import Callable, Coroutine

from coordinator.core.messages.locks import DropLocks
from tests.resilience.sim.server import Server
from tests.resilience.sim.world import World

HOUR_US = 3_600_000_000


class Nemesis:
    """See the module."""

    def __init__(self, world: World, *, guards: bool = False) -> None:
        self._world = world
        self._guards = guards
        self._random = world.random

    async def run(self) -> None:
        """Trouble after trouble, until cancelled."""
        world = self._world
        if not world.stormy.trouble_ms:
            return
        try:
            while True:
                await self._wait(world.stormy.trouble_ms * 2)
                if self._random.random() < world.stormy.succession:
                    await self._succession()
                elif self._random.random() < world.stormy.locks_lost:
                    self._lose_locks()
                elif world.stormy.days and self._random.random() < world.stormy.days:
                    await self._days()
                else:
                    await self._any_of(self._full, self._slow_shard, self._clock, self._slow)
        finally:
            self._heal()

    async def _any_of(self, *troubles: Callable[[], Coroutine[None, None, None]]) -> None:
        await self._random.choice(troubles)()

    async def _wait(self, ms_max: float) -> None:
        await asyncio.sleep(self._random.random() * ms_max / 1_000)

    def _heal(self) -> None:
        world = self._world
        world.full = False
        world.slow_shard = None
        for server in world.servers:
            server.wall.go()
            server.cut_off = False
            server.slowness = 1.0
            server.process.resume()

    def _victim(self) -> Server | None:
        alive = [server for server in self._world.servers if not server.over.done()]
        return self._random.choice(alive) if alive else None

    # --- of one coordinator ------------------------------------------------------------------

    async def _full(self) -> None:
        self._world.note("the stash is full")
        self._world.full = True
        await self._wait(150)
        self._world.full = False

    async def _slow_shard(self) -> None:
        self._world.slow_shard = self._random.randrange(3)
        self._world.note(f"shards {self._world.slow_shard} of 3 are slow")
        await self._wait(400)
        self._world.slow_shard = None

    async def _slow(self) -> None:
        server = self._victim()
        if server is not None:
            self._world.note(f"server {server.number} is slow")
            server.slowness = 12.0
            await self._wait(200)
            server.slowness = 1.0

    def _lose_locks(self) -> None:
        """Of all timelines, or of some (K6 of `coordinator/core/locking/__init__.py`)."""
        server = self._victim()
        if server is None or not server.is_up or server.process.halted:
            return
        self._world.note(f"all locks of server {server.number} are lost")
        for driver in server.driver.lines:
            if self._random.random() < 0.8:
                driver.deliver(DropLocks(self._guards))
                self._world.tally.dropped += 1

    async def _clock(self) -> None:
        server = self._victim()
        if server is None:
            return
        clock = server.wall
        match self._random.randrange(4):
            case 0:
                self._world.note("a clock stands still")
                clock.stop()
                await self._wait(300)
                clock.go()
            case 1:
                self._world.note("a clock jumps two hours ahead, and back")
                clock.offset_us += 2 * HOUR_US
                await self._wait(100)
                clock.offset_us -= 2 * HOUR_US
            case _:
                step = self._random.choice((-HOUR_US, -3_000_000, 3_000_000))
                self._world.note(f"a clock steps by {step} us")
                clock.offset_us += step

    async def _days(self) -> None:
        """A clock is days ahead or behind for a while; somebody may accept it, or start the server
        again, which believes it, too.
        """
        server = self._victim()
        if server is None:
            return
        step = self._random.choice((-30, -3, -1, 1, 10, 400)) * 24 * HOUR_US
        self._world.note(f"a clock jumps by {step} us, and back later")
        server.wall.offset_us += step
        try:
            await self._wait(150)
            self._world.tally.doubted += server.clock.state.doubted
            if self._random.random() < 0.15 and server.accept_clock():
                self._world.note("it is accepted")
                self._world.tally.accepted += 1
                await self._wait(50)
        finally:
            server.wall.offset_us -= step

    # --- of two coordinators -----------------------------------------------------------------

    async def _succession(self) -> None:
        await self._any_of(
            self._succeed,
            self._pause,
            self._pause_and_succeed,
            self._cut_off,
            self._cut_off_and_succeed,
            self._cut_off_and_succeed,
            self._slow,
        )

    async def _succeed(self) -> None:
        if sum(not server.over.done() for server in self._world.servers) < 3:
            self._world.tally.successions += 1
            self._world.start()

    async def _pause(self) -> None:
        server = self._victim()
        if server is not None:
            await self._paused(server, self._wait(150))

    async def _pause_and_succeed(self) -> None:
        """The old leader sleeps through its succession."""
        server = self._victim()
        if server is not None:
            await self._paused(server, self._succeed_and_wait())

    async def _paused(self, server: Server, meanwhile: Coroutine[None, None, None]) -> None:
        self._world.note(f"server {server.number} is paused")
        self._world.tally.pauses += 1
        server.process.pause()
        await meanwhile
        self._world.note(f"server {server.number} is resumed")
        server.process.resume()

    async def _succeed_and_wait(self) -> None:
        await self._wait(20)
        await self._succeed()
        newest = self._world.servers[-1]
        # It may be the paused one itself, if there are enough of them already.
        while not (newest.is_up or newest.over.done() or newest.process.paused):
            await self._wait(20)
        await self._wait(250)

    async def _cut_off(self) -> None:
        await self._alone(self._wait(150))

    async def _cut_off_and_succeed(self) -> None:
        """The old leader cannot hear that it is deposed, and clients still reach it."""
        await self._alone(self._succeed_and_wait())

    async def _alone(self, meanwhile: Coroutine[None, None, None]) -> None:
        alive = [server for server in self._world.servers if server.is_up]
        if not alive:
            meanwhile.close()
            return
        server = alive[-1]
        self._world.note(f"server {server.number} is cut off from the stash")
        server.cut_off = True
        await meanwhile
        server.cut_off = False
